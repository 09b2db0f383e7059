/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Push: a source that wraps another one and sends the samples of some of its events to other hosts,
 * or writes them to a file, as a stream in perf's pipe format (see wire/own_records.h). These
 * samples are taken out of what the session gets, unless push_keep() was called. All other records
 * are sent and delivered.
 */
#pragma once
#include <stdint.h>

struct clock_axis;
struct error;
struct push;
struct source;

enum { PUSH_MAX = 64 /* addresses of a run */ };

/* What an address got so far. */
struct push_totals {
	uint64_t events;	/* produced for it */
	uint64_t sent, dropped; /* events, of all receivers together */
	uint32_t receivers;	/* now */
};

/* A receiver that is there now. */
struct push_receiver {
	const char *name; /* valid until the next session_next() */
	uint64_t sent, dropped;
};

/* Takes over the source, but not on failure: NULL with a message. */
struct push *push_new(struct source *inner, struct error *err);
/* The source to use in place of the inner one. It owns the push. */
struct source *push_source(struct push *p);

/* Adds an address, see wire/channel.h. Returns its bit for event_request.push, or a negative errno
 * with a message. Nothing listens before the source is opened. */
int push_add(struct push *p, const char *address, struct error *err);
/* Sets the file of the secret; NULL: that of the environment, if there is one. */
int push_set_secret(struct push *p, const char *path, struct error *err);
/* Sends the times of this clock, see push_clock.h. Takes over the axis. offset: what it adds. */
void push_set_clock(struct push *p, struct clock_axis *axis, int64_t offset);
/* Delivers the samples that are sent, too. */
void push_keep(struct push *p);
/* Ends the stream after so many samples. */
void push_limit(struct push *p, uint64_t samples);

/* Sends what is left, for at most two seconds, and ends the streams. The source's end does the
 * same. Returns 0, or a negative errno with a message. */
int push_finish(struct push *p, struct error *err);
/* Returns why this guest's host is not told how their clocks relate; "": it is, or has no guest
 * here. */
const char *push_no_ptp(const struct push *p);
/* Takes the lines for the user since the last call, each with its newline; "" if there are none.
 * Valid until the next call of any function. */
const char *push_take_messages(struct push *p);
void push_read_totals(const struct push *p, int bit, struct push_totals *out);
/* Returns 0 if there is no receiver with this index. */
int push_read_receiver(const struct push *p, int bit, uint32_t index, struct push_receiver *out);
