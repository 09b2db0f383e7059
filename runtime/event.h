/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoded event: one cache line, filled once from the perf record, pointing into the mapped
 * ring or file. It is valid until the next batch; timeline_keep() makes a copy that lasts longer.
 */
#pragma once
#include <stdint.h>

/* Event classes: a dense index of what produced the event. The first ones are records that are not
 * samples; the selectors of a session are numbered from EVENT_FIRST in their order. */
enum event_class {
	EVENT_LOST = 0, /* A hole in one ring. It is delivered where the hole begins, or later if it
			   was found later. key: its end (ns), period: number of lost records, 0 if
			   unknown. */
	EVENT_COMM = 1, /* pid, tid: the task; raw: the body of the record */
	EVENT_FORK = 2, /* pid, tid: the new task */
	EVENT_EXIT = 3, /* pid, tid: the task that ended */
	EVENT_MMAP = 4, /* pid, tid: the task that mapped a file; only with stacks */
	EVENT_KSYMBOL = 5,  /* code that was added to the kernel; only with stacks */
	EVENT_FILTERED = 7, /* set by the dispatch loop for unwanted samples */
	EVENT_FIRST = 8,
	EVENT_CLASSES = 4096 /* upper bound of the classes of a session */
};

enum event_flags {
	EVENT_LATE = 1,	     /* older than an event that was delivered before it */
	EVENT_NO_FIRST = 2,  /* may not start a pair */
	EVENT_NO_SECOND = 4, /* may not end a pair */
	EVENT_KEPT = 8,	     /* in a timeline, not in a ring */
	EVENT_NO_START = 16 /* no pair may start with its key: neither this event nor an earlier one
			       starts it */
};

/* Events that session_next() returns at most. */
enum { BATCH_MAX = 1024 };

struct event {
	double time;	       /* ns since the session's time base */
	const uint8_t *raw;    /* payload; for a tracepoint starts with common_type */
	const uint64_t *chain; /* callchain: its length, then addresses; NULL without */
	int64_t key;	       /* key column, written by generated code */
	uint32_t raw_size;     /* readable bytes at raw */
	int32_t pid;	       /* process; -1: unknown */
	int32_t tid;	       /* thread; -1: unknown */
	int32_t cpu;	       /* -1: unknown */
	uint16_t class;
	uint16_t flags;	 /* enum event_flags */
	uint32_t ring;	 /* index of the ring or stream it came through */
	uint64_t period; /* sample period; 1 if unknown */
};

/* A record in time order, as sources hand it to the session. rec points to a perf_event_header. */
struct slot {
	uint64_t time; /* ns, the source's clock */
	const void *rec;
	uint32_t ring;
	uint32_t flags; /* enum event_flags */
};
