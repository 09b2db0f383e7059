/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of the live source, private to live.c (the source) and live_attach.c (its targets).
 */
#pragma once
#include <poll.h>
#include <stdbool.h>
#include <linux/perf_event.h>
#include "live/bpf_ring.h"
#include "live/capture_ring.h"
#include "live/counters.h"
#include "error.h"
#include "live/live.h"
#include "live/merge.h"
#include "live/evlist.h"
#include "source.h"
#include "live/count_sums.h"
#include "live/evset.h"

/* A PERF_RECORD_LOST with the trailer selected by the attributes. */
struct loss {
	struct perf_event_header header;
	uint64_t id, lost, tid, time, cpu, identifier;
};

/* A target: one CPU, or all threads. */
struct attached {
	struct evset *evset;
	int cpu;
	bool gone; /* the CPU went offline, its rings are not yet drained */
};

/* The time between a CPU coming online and being attached. */
struct gap {
	uint64_t from; /* ns */
	bool is_reported;
	struct loss loss;
};

/* The origin of a ring of the merge. */
struct origin {
	struct evset *evset; /* NULL: a BPF program */
	uint32_t ring;	     /* index in the evset */
	uint32_t polled;     /* index of the polled descriptor */
	bool is_level;	     /* the descriptor is ready whenever the ring is not empty */
	int bpf_cpu;	     /* CPU of a BPF program's ring; -1: all CPUs */
	bool bpf_gone;	     /* that CPU went offline, the ring is not yet drained */
};

/* What is polled after the rings. */
enum more {
	MORE_WAKE,    /* wake_fd of the source */
	MORE_SIGNALS, /* see process/signals.h */
	MORE_HOTPLUG,
	MORE_CAPTURES, /* a ring of captured events has filled */
	NR_MORE
};

struct live {
	struct source source;
	struct formats *formats; /* opened on demand */
	struct event_request *requests;
	uint32_t nr_requests;
	struct bpf_output_class *outputs; /* of BPF programs */
	uint32_t nr_outputs;
	struct evlist *evlist;
	struct bpf_rings *bpf;		/* NULL: no outputs */
	struct capture_rings *captures; /* NULL: no event is captured */
	struct merge *merge; /* all rings; poll, origins and ring_tid have an entry per ring */
	struct pollfd *poll; /* fd is -1 when all writers of the ring have ended; then enum more */
	struct origin *origins;
	int32_t *ring_tid;
	struct attached **attached;
	uint32_t nr_attached, nr_ended;
	uint32_t nr_lasting;	    /* rings whose events do not end with the threads */
	struct counters **counters; /* of CPUs, or of the threads */
	uint32_t nr_counters;
	struct count_sums *sums;
	bool stopped, final_loss_sent;
	bool dumping, dumped_last; /* overwritten rings are paused until they have been read */
	bool has_overwritten;	   /* a ring of which records were overwritten before that */
	uint64_t dumped_until;
	int hotplug; /* descriptor; negative: hotplug is not watched */
	uint64_t hotplug_checked, hotplug_next;
	struct cpus watched;	 /* CPUs online at the last check */
	struct cpus came_online; /* not yet returned by next_cpu() */
	struct gap *gaps;
	uint32_t nr_gaps;
	uint64_t unreported;	       /* losses of closed rings that no record reported */
	struct source_account *closed; /* by request: of CPUs that went offline */
	struct loss final_loss, bpf_loss;
	bool has_early; /* a record that woke us was still too young to be delivered */
	int64_t nap;	/* ns between checks of rings with level-triggered descriptors */
};

/* Attaches to all targets of the evlist. Returns 0, or a negative errno with a message. */
int live_attach_all(struct live *live, struct error *err);
/* Adds the rings of all targets to the merge. The decoder must know all ids. */
int live_add_rings(struct live *live, struct error *err);
/* Enables the counters of a CPU; -1: of all CPUs, or the threads. */
int live_enable_counters(struct live *live, int cpu, struct error *err);
/* Attaches to CPUs that came online and detaches from those that went offline. No delivered record
 * may be in use. */
void live_follow_cpus(struct live *live);
/* Returns each CPU that came online once; -1: no more. */
int live_next_cpu(struct source *src);
/* Returns the number of lost records of an evset that no record in its rings reported. */
uint64_t live_unreported(const struct live *live, const struct evset *evset);
