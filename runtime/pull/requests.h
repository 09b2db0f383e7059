/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Requests: the events of a run, kept for the streams that follow the first one when a sender comes
 * back.
 */
#pragma once
#include <stdint.h>

struct error;
struct event_request;
struct source;

struct requests {
	struct event_request *list;
	uint32_t n;
};

/* Copies a request. Returns 0, or -ENOMEM with a message. */
int requests_add(struct requests *r, const struct event_request *req, struct error *err);
/* Adds all of them to a new stream. Returns 0, or a negative errno with a message, also if an event
 * of the first stream has other fields in this one. */
int requests_give(struct requests *r, struct source *first, struct source *stream,
		  struct error *err);
void requests_clear(struct requests *r);
