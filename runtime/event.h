/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoded event: one cache line, filled once from the perf record, pointing into the mapped
 * ring or file. It is valid until the next batch is asked for; whoever needs it longer copies it
 * with timeline_keep().
 */
#pragma once
#include <stdint.h>

/* Event classes: a dense index of what produced the event. The first ones are the records that
 * are no samples; the selectors of a session are numbered from EVENT_FIRST in their order. */
enum event_class {
	EVENT_LOST = 0,	    /* A hole in one ring. It stands in the stream where the hole begins, if
			     * that was not over yet; key: its end (ns), period: the records lost, 0:
			     * nobody knows. */
	EVENT_COMM = 1,	    /* pid, tid: the task; raw: the record behind its header */
	EVENT_FORK = 2,	    /* pid, tid: the new task */
	EVENT_EXIT = 3,	    /* pid, tid: the task that ended */
	EVENT_MMAP = 4,	    /* pid, tid: the task that mapped a file; only with stacks */
	EVENT_KSYMBOL = 5,  /* code that the kernel got; only with stacks */
	EVENT_FILTERED = 7, /* what the dispatch loop makes of a sample that is not wanted */
	EVENT_FIRST = 8,
	EVENT_CLASSES = 4096 /* upper bound of classes in one session */
};

enum event_flags {
	EVENT_LATE = 1,	     /* older than an event that was delivered before it */
	EVENT_NO_FIRST = 2,  /* may not start a pair */
	EVENT_NO_SECOND = 4, /* may not end a pair */
	EVENT_KEPT = 8,	     /* lives in a timeline, not in a ring */
	EVENT_NO_START = 16 /* nothing may start with its key: neither itself nor what did before */
};

struct event {
	double time;	       /* ns since the session's time base */
	const uint8_t *raw;    /* payload; for a tracepoint starts with common_type */
	const uint64_t *chain; /* callchain: its length, then addresses; NULL without */
	int64_t key;	       /* key column, written by generated code */
	uint32_t raw_size;     /* bytes behind raw that may be read */
	int32_t pid;	       /* process; -1 unknown */
	int32_t tid;	       /* thread; -1 unknown */
	int32_t cpu;	       /* -1 unknown */
	uint16_t class;
	uint16_t flags;	 /* enum event_flags */
	uint32_t ring;	 /* index of the ring or stream it came through */
	uint64_t period; /* sample period; 1 where it is not known */
};

/* A record in time order: what sources hand to the session. rec points to a perf_event_header. */
struct slot {
	uint64_t time; /* ns, the source's clock */
	const void *rec;
	uint32_t ring;
	uint32_t flags; /* enum event_flags */
};
