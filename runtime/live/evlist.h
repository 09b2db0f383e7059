/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Evlist: the events of a live source with their attributes, CPUs, threads and cgroups. Nothing is
 * open yet except the directories of the cgroups.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "os/cpus.h"
#include "source.h"

struct decoder;
struct error;

/* Events with the same targets, which share rings. */
enum evlist_group { GROUP_EVENTS, GROUP_TASKS, GROUP_EVERYWHERE, NR_GROUPS };

/* An event and its attributes on all targets. */
struct evsel {
	struct perf_event_attr attr;
	const struct event_request *event; /* NULL: the event that reports tasks */
	struct cpus cpus;
	enum evlist_group group;
	int index;	 /* in the decoder; unused for counted events */
	uint32_t leader; /* of a counted event: index of its group's leader */
};

/* The pid arguments of perf_event_open(). */
struct targets {
	const int32_t *list;
	uint32_t n;
	unsigned long flags;
};

struct evlist {
	const struct event_request *requests; /* those of BPF programs are skipped */
	uint32_t nr_requests;
	struct source_target target;
	struct evsel *evsels; /* sampled events; the last one reports tasks */
	uint32_t nr_evsels;
	struct evsel *counted; /* counted events */
	uint32_t nr_counted;
	int sampler;	   /* evsel whose samples contain the counts; -1: they are read */
	bool has_clock;	   /* the kernel supports CLOCK_MONOTONIC for events */
	bool has_lost;	   /* the kernel counts lost records */
	bool has_cgroup;   /* the kernel reports new control groups, if they are wanted */
	bool has_ksymbol;  /* the kernel reports new kernel code */
	bool has_build_id; /* the kernel can report mapped files by build id */
	/* One ring per thread, on whatever CPU it runs; otherwise the rings belong to CPUs. (The
	 * kernel does not map a ring for an inherited event on all CPUs.) */
	bool per_thread;
	/* One counter per thread, on all CPUs; otherwise the counters belong to CPUs. */
	bool counts_threads;
	uint32_t task_pages; /* of a ring with only task records */
	struct cpus cpus;    /* online at the start: each one gets rings, unless per_thread */
	struct targets targets[NR_GROUPS];
	int32_t *cgroup_fds;
	int nr_cgroup_fds;
};

/* Creates the evlist and adds the attributes of all events to the decoder. The requests and the
 * pointers in target must outlive it. NULL with a message. */
struct evlist *evlist_new(const struct event_request *requests, uint32_t n,
			  const struct source_target *target, struct decoder *decoder,
			  struct error *err);
void evlist_free(struct evlist *evlist);

/* Returns the sample_type of an event whose payload is the sample's own words. */
uint64_t evlist_sample_type(const struct event_request *ev);
/* Calls perf_event_open(2); returns a descriptor or a negative errno. (libperf's takes no flags.)
 * group: descriptor of the leader, -1: none. */
int evlist_open_event(const struct perf_event_attr *attr, int target, int cpu, int group,
		      unsigned long flags);
/* Describe why the kernel rejected an event (NULL: the task event) or its filter. Return code. */
int evlist_open_error(const struct evlist *evlist, const struct event_request *ev, int code,
		      struct error *err);
int evlist_filter_error(const struct event_request *ev, int code, struct error *err);
/* Returns how many of those that the kernel counts each sample is at least; 0: unknown. */
uint32_t evlist_per_sample(const struct event_request *ev);
/* Whether each event that the kernel counts is part of a sample, or lost, but for those at the end.
 * Others are counted by time, have a frequency, or do not fit into samples of so many events. */
bool evlist_is_exact(const struct evlist *evlist, const struct event_request *ev);
/* Whether an event is opened on the CPU. */
bool evlist_is_for(const struct evlist *evlist, const struct evsel *sel, int cpu);
/* Returns the number of file descriptors needed. */
uint64_t evlist_nr_files(const struct evlist *evlist);
