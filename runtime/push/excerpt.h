/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Excerpt: a file with some records of a live source, chosen one by one, as a recording that perf
 * reads, too.
 */
#pragma once
#include <stdint.h>

struct error;
struct event_request;
struct excerpt;
struct slot;
struct source;

/* Creates the file, which stays empty until the first record. src: open, with these events. NULL
 * with a message. */
struct excerpt *excerpt_new(struct source *src, const char *path,
			    const struct event_request *const *events, uint32_t n,
			    struct error *err);
/* Without excerpt_end(), the file lacks its end. */
void excerpt_free(struct excerpt *x);

/* Copies a record. Times must not go back. Returns 0, or a negative errno with a message. */
int excerpt_add(struct excerpt *x, const struct slot *slot, struct error *err);
/* Names a task from a time on (ns). The same. */
int excerpt_name(struct excerpt *x, int32_t pid, int32_t tid, const char *name, uint64_t time,
		 struct error *err);
/* Completes the file. The same. */
int excerpt_end(struct excerpt *x, struct error *err);
