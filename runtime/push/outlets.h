/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What all outlets of a run share: the clock and secret, memory, and what the user is told.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "clocks/clock_pair.h"
#include "error.h"
#include "push/group.h"
#include "push/push_clock.h"
#include "wire/bytes.h"
#include "wire/secret.h"

struct kvm_ptp;
struct source;

struct outlets {
	int poller; /* epoll: readable when an outlet has something to do */
	struct secret secret;
	struct bytes symbols;  /* records with the kernel's symbols; empty: stacks are not sent */
	struct bytes messages; /* lines for the user */
	struct push_clock clock;
	uint64_t epoch;
	uint32_t clockid;   /* of the records' times; UINT32_MAX: another one */
	bool is_live;	    /* the records' times are now */
	bool is_local;	    /* their tasks are those of this machine */
	bool is_foreign;    /* they are sent on for another kernel */
	const char *host;   /* the machine that they are sent on for; NULL: this one, or unknown */
	bool has_addresses; /* receivers need the mappings of tasks, to name what they show */
	uint32_t trailer_words; /* at the end of records other than samples */
	uint64_t wall_zero;	/* when the records' clock was 0, wall time in ns; 0: unknown */
	struct clock_pair first_pair;
	struct kvm_ptp *ptp; /* the clock of this guest's host; NULL: there is none */
	struct group_pool pool;
	void *zstd; /* a compression context */
};

/* Gets what outlets share, which begins as zeros. Returns 0, or a negative errno with a message. */
int outlets_init(struct outlets *all, struct error *err);
/* Notes what the streams of an open source have in common. */
void outlets_describe(struct outlets *all, const struct source *src);
/* Frees what outlets_init() got, and what has been added. */
void outlets_clear(struct outlets *all);
/* Adds a line for the user. */
void __attribute__((format(printf, 2, 3))) outlets_tell(struct outlets *all, const char *fmt, ...);
