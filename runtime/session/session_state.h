/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What session.c, the run, and session_setup.c, all that comes before it, know of a session. For
 * nobody else.
 */
#pragma once
#include <stdbool.h>
#include "error.h"
#include "event.h"
#include "session/session.h"
#include "source.h"

enum { MAX_BATCH = 1024 };

struct session {
	struct source *source;
	struct probes *probes; /* NULL: none were needed */
	struct workload *workload;
	int32_t *tids; /* that are attached to, or end the run; NULL: cpus */
	uint32_t nr_tids, nr_tids_ended;
	int32_t *marked; /* threads that the target's marks had at the start; NULL: it has none */
	uint32_t nr_marked;
	uint64_t stop_time;
	uint64_t watch_at; /* when to look again whether they have ended */
	struct error notice;
	struct tasks *tasks;
	bool resolves;		 /* some event has a stack, or addresses to look up */
	uint32_t stack_parts;	 /* that events ask for: enum stack_parts */
	struct resolve *resolve; /* NULL: nothing is to be looked up */
	struct records *records; /* NULL: none are events */
	uint32_t nr_sampled;	 /* events with samples; the others are only counted */
	uint32_t wanted;	 /* bit set of side-band classes that are delivered */
	bool threads_ended;	 /* but not their process */
	bool stopped, ended, interrupted, per_thread, has_base;
	uint64_t base;	     /* source clock, ns */
	uint64_t first_time; /* samples before it are from rings that counted before all did */
	uint64_t interval;   /* ns; 0: none */
	uint64_t duration;   /* ns; 0: no end */
	uint64_t end_at;     /* source clock; UINT64_MAX: not known, or no end */
	uint64_t tick_at;    /* end of the running interval, source clock; 0: not known yet */
	uint64_t wake_at;    /* source clock; nobody waits beyond it. In the past: no bound */
	bool ticked;	     /* the last thing delivered was the end of an interval */
	struct slot slots[MAX_BATCH];
	int nr_slots, next_slot;
	struct session_stats stats;
	uint64_t summed_losses; /* by the LOST_SAMPLES records so far */
	struct event batch[MAX_BATCH];
};

/* The time (ns, source clock) that the times of events are counted from. */
void session_set_base(struct session *s, uint64_t time);
