/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What live.c, the source, and live_attach.c, what it is attached to, know of it. For nobody else.
 */
#pragma once
#include <poll.h>
#include <stdbool.h>
#include <linux/perf_event.h>
#include "live/bpf_ring.h"
#include "live/counters.h"
#include "error.h"
#include "live/live.h"
#include "live/merge.h"
#include "live/evlist.h"
#include "source.h"
#include "live/count_sums.h"
#include "live/evset.h"

/* A PERF_RECORD_LOST with the trailer that the attributes ask for. */
struct loss {
	struct perf_event_header header;
	uint64_t id, lost, tid, time, cpu, identifier;
};

/* What is attached to: one cpu, or all threads. */
struct attached {
	struct evset *evset;
	int cpu;
	bool gone; /* the cpu went offline, its rings are still to be read */
};

/* What a cpu did between coming online and being attached to. */
struct hole {
	uint64_t from; /* ns */
	bool is_told;
	struct loss loss;
};

/* Where a ring of the merge comes from. */
struct origin {
	struct evset *evset; /* NULL: a BPF program */
	uint32_t ring;	     /* number within the evset */
	uint32_t polled;     /* number of its descriptor that is polled */
	bool is_level;	     /* which is ready as long as there is anything to read */
	int bpf_cpu;	     /* of a BPF program's ring; -1: that of all */
	bool bpf_gone;	     /* which went offline, the ring is still to be read */
};

struct live {
	struct source source;
	struct formats *formats; /* NULL: nobody asked yet */
	struct event_request *requests;
	uint32_t nr_requests;
	struct bpf_output_class *outputs; /* of BPF programs */
	uint32_t nr_outputs;
	struct evlist *evlist;
	struct bpf_rings *bpf; /* NULL without */
	struct merge *merge;   /* rings; poll, origins and ring_tid have one entry for each */
	struct pollfd *poll;   /* fd -1 when all that wrote to the ring has ended */
	struct origin *origins;
	int32_t *ring_tid;
	struct attached **attached;
	uint32_t nr_attached, nr_ended;
	uint32_t nr_lasting;	    /* rings whose events do not end with the threads */
	struct counters **counters; /* of each cpu that has some, or of the threads */
	uint32_t nr_counters;
	struct count_sums *sums;
	bool stopped, final_loss_sent;
	bool dumping, dumped_last; /* rings that are overwritten are paused, until they are read */
	uint64_t dumped_until;
	int hotplug; /* descriptor; negative: cpus are not watched */
	uint64_t hotplug_checked, hotplug_next;
	struct cpus watched; /* online, and attached to as far as there is anything for cpus */
	struct cpus came;    /* and not yet asked for by next_cpu() */
	struct hole *holes;
	uint32_t nr_holes;
	uint64_t untold; /* what rings lost and did not tell before they were closed */
	struct loss final_loss, bpf_loss;
	int64_t nap; /* ns, between looks at rings that are ready as long as they are not empty */
};

/* Attaches to all that the evlist names. 0, or a negative errno with a message. */
int live_attach_all(struct live *live, struct error *err);
/* Makes the rings of all that is attached to readable. The decoder must know the ids by now. */
int live_add_rings(struct live *live, struct error *err);
/* Starts what is counted on a cpu, -1: on all of them, or the threads. */
int live_enable_counters(struct live *live, int cpu, struct error *err);
/* Attaches to cpus that have come and detaches from those that went. To be called when nothing that
 * was handed out is in use. */
void live_follow_cpus(struct live *live);
/* A CPU that came, once; -1: no more. */
int live_next_cpu(struct source *src);
/* Records of an evset that were lost and that no record in its rings told of. */
uint64_t live_untold(const struct live *live, const struct evset *evset);
