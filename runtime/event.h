/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The decoded event: one cache line, filled once from the perf record, with pointers into the
 * mapped ring or file. It is valid until the next batch is requested; timeline_keep() makes a copy
 * that lasts longer.
 */
#pragma once
#include <stdint.h>

/* Event classes: a dense index of the events. The first classes are records other than samples; the
 * events of a session are numbered from EVENT_FIRST, in the order in which they were added. */
enum event_class {
	EVENT_LOST = 0,	   /* a gap in one ring, placed in the stream at its start if possible; key:
			    * its end (ns), period: number of lost records, 0: unknown */
	EVENT_COMM = 1,	   /* pid, tid: the task; raw: the record after its header */
	EVENT_FORK = 2,	   /* pid, tid: the new task */
	EVENT_EXIT = 3,	   /* pid, tid: the task that ended */
	EVENT_MMAP = 4,	   /* pid, tid: the task that mapped a file; only with stacks */
	EVENT_KSYMBOL = 5, /* kernel code was added or removed; only with stacks */
	EVENT_FILTERED = 7, /* set by the dispatch loop: a sample rejected by a filter */
	EVENT_FIRST = 8,
	EVENT_CLASSES = 4096 /* maximum number of classes in one session */
};

enum event_flags {
	EVENT_LATE = 1,	       /* older than an event that was delivered before it */
	EVENT_NO_FIRST = 2,    /* cannot start a pair */
	EVENT_NO_SECOND = 4,   /* cannot end a pair */
	EVENT_KEPT = 8,	       /* in a timeline, not in a ring */
	EVENT_NO_START = 16,   /* cannot start a pair, and cancels an earlier start with its key */
	EVENT_PASSED = 32,     /* its source's condition is true for it (bpf/run/gates.lua) */
	EVENT_MEMBER_SHIFT = 8 /* first of 8 bits: the member of a join that delivered it */
};

/* Maximum number of events per batch of session_next(). */
enum { BATCH_MAX = 1024 };

struct event {
	double time;	       /* ns since the session's time base */
	const uint8_t *raw;    /* payload; for a tracepoint starts with common_type */
	const uint64_t *chain; /* callchain: its length, then addresses; NULL without */
	int64_t key;	       /* key column, written by generated code */
	uint32_t raw_size;     /* readable bytes at raw */
	int32_t pid;	       /* process; -1 unknown */
	int32_t tid;	       /* thread; -1 unknown */
	int32_t cpu;	       /* -1 unknown */
	uint16_t class;
	uint16_t flags;	 /* enum event_flags */
	uint32_t ring;	 /* index of its ring or stream */
	uint64_t period; /* sample period; 1 if unknown */
};

enum {
	SLOT_OWN_SHIFT = 16, /* first of 8 bits of the slot's flags for the source's own forms of
			      * records: 0 is a perf record, other values are up to the source */
	SLOT_OWN_MASK = 0xff,
	SLOT_MEMBER_SHIFT = 24 /* first of 8 bits for the member of a join (pull/join.h) */
};

/* A record in time order, as delivered by sources. rec points to a perf_event_header. */
struct slot {
	uint64_t time; /* ns, the source's clock */
	const void *rec;
	uint32_t ring;
	uint32_t flags; /* enum event_flags */
};
