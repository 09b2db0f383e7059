/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of a session, private to session_setup.c (everything before the run), session.c (the
 * run) and session_reads.c (what it tells about itself).
 */
#pragma once
#include <stdbool.h>
#include "error.h"
#include "event.h"
#include "session/pace.h"
#include "session/session.h"
#include "source.h"

enum { MAX_CLEARS = 2 }; /* the run's programs, and those that count events of perf */

/* One machine whose events are delivered: the source, or a member of the join. */
struct machine {
	struct source *source;
	struct tasks *tasks;
	struct groups *groups;
	struct resolve *resolve; /* NULL: nothing to symbolize */
	struct vcpus *vcpus;	 /* a guest whose events are those of its threads here; or NULL */
	uint64_t lost, summed_losses; /* sums of its LOST and LOST_SAMPLES records so far */
	uint64_t samples; /* that came from another machine, also those of events that nobody reads
			   */
};

/* The samples of a class so far, besides those that the decoder has counted. */
struct class_samples {
	uint64_t read;
	uint64_t early; /* dropped: not all rings were enabled yet */
	uint64_t rest;	/* not delivered because the run ended before */
};

struct session {
	struct source *source;
	struct machine *machines; /* by member; one without a join */
	uint32_t nr_machines;
	struct push *push;     /* which is the source, then; NULL: nothing is sent */
	struct probes *probes; /* NULL: no probes so far */
	struct workload *workload;
	struct family *family; /* NULL: the run ends with the threads below, or rings report it */
	int32_t *tids; /* target threads, or threads whose end is the end of the run; NULL: CPUs */
	uint32_t nr_tids, nr_tids_ended;
	int32_t *marked; /* threads marked at the start; NULL: the target has no marks */
	uint32_t nr_marked;
	uint64_t stop_time;
	uint64_t events_before_signal; /* that asked the run to end */
	uint64_t watch_at;	       /* when to check again whether the threads have ended */
	struct error notice;
	bool resolves;		 /* an event has stacks, or addresses to symbolize */
	bool resolves_data;	 /* also addresses of data */
	uint32_t stack_parts;	 /* enum stack_parts of all events */
	struct records *records; /* NULL: no events are records */
	uint32_t nr_sampled;	 /* sampled events; the others are only counted */
	uint32_t nr_tracepoints;
	uint32_t wanted;    /* bit set of side-band classes to deliver */
	bool threads_ended; /* all threads of the workload have ended, but not yet its process */
	bool is_target;	    /* the workload is the target */
	bool follows;	    /* the workload's children are waited for, too */
	struct {
		uint8_t *bytes;
		uint32_t n;
	} clears[MAX_CLEARS]; /* to be cleared at the stop */
	uint32_t nr_clears;
	bool stopped, ended, interrupted, per_thread, has_base;
	bool keeps_newest;   /* the rings are overwritten */
	bool cut;	     /* by a signal: what a pipe would still have sent is missing */
	uint64_t base;	     /* source clock, ns */
	uint64_t first_time; /* earlier samples are dropped: not all rings were enabled then, or
			      * nobody asked for them */
	uint64_t interval;   /* ns; 0: none */
	uint64_t duration;   /* ns; 0: unlimited */
	uint64_t end_at;     /* source clock; UINT64_MAX: unlimited, or not known yet */
	uint64_t give_up_at; /* ends the run if a sender with an unknown clock is silent then,
			      * CLOCK_MONOTONIC; 0: never */
	uint64_t tick_at;    /* end of the current interval, source clock; 0: not known yet */
	uint64_t wake_at;    /* limit of the next wait, source clock; 0: none */
	bool looks_around;   /* the owner looks at something every MAX_WAIT */
	bool ticked;	     /* an interval ended after the last events */
	struct slot slots[BATCH_MAX];
	int nr_slots, next_slot;
	int next_copied; /* the slots before it are in the excerpt, or not wanted there */
	struct session_stats stats;
	struct event batch[BATCH_MAX];
	int nr_batch; /* that were handed out */
	struct pace pace;
	struct class_samples samples[EVENT_CLASSES];
};

/* The machine that an event is of. */
static inline struct machine *session_machine(const struct session *s, const struct event *ev)
{
	return &s->machines[ev->flags >> EVENT_MEMBER_SHIFT];
}

/* Looks whether the virtual machines that send are other processes now. */
void session_follow_vms(struct session *s);
/* Sets the time base (ns, source clock) of the events' times. */
void session_set_base(struct session *s, uint64_t time);
