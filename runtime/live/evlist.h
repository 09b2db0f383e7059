/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of a live source: which ones to open with which attributes, and on which CPUs, threads
 * or cgroups. The evlist itself opens only the directories of the cgroups.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "os/cpus.h"
#include "live/live.h"

struct decoder;
struct error;

enum { TASK_PAGES = 16 }; /* size of a ring that only reports tasks */

/* Events with the same targets, which share rings. */
enum evlist_group { GROUP_EVENTS, GROUP_TASKS, GROUP_EVERYWHERE, NR_GROUPS };

/* An event, as it is opened on each CPU or thread. */
struct evsel {
	struct perf_event_attr attr;
	const struct live_event *event; /* NULL: the one that reports names and ends of tasks */
	struct cpus cpus;
	enum evlist_group group;
	int index;	 /* in the decoder; unused for counted events */
	uint32_t leader; /* of a counted event: index of the first one of its group */
};

/* The pid argument of perf_event_open(). */
struct targets {
	const int32_t *list;
	uint32_t n;
	unsigned long flags;
};

struct evlist {
	struct live_config config;
	struct evsel *evsels; /* the last one reports tasks */
	uint32_t nr_evsels;
	struct evsel *counted; /* events without samples */
	uint32_t nr_counted;
	int sampler;	  /* evsel whose samples hold the counts; -1: the counts are read */
	bool has_clock;	  /* times are CLOCK_MONOTONIC */
	bool has_lost;	  /* the kernel counts lost records */
	bool has_ksymbol; /* the kernel reports code that is added to it */
	/* There is one ring per thread, whatever CPU it runs on; else the rings belong to CPUs.
	 * (The kernel refuses to map a ring for an event that new threads inherit and that is on
	 * all CPUs.) */
	bool per_thread;
	/* Threads are counted on all CPUs, with one counter per thread. */
	bool counts_threads;
	struct cpus cpus; /* online at the start: each gets its rings, unless per_thread */
	struct targets targets[NR_GROUPS];
	int32_t *cgroup_fds;
	int nr_cgroup_fds;
};

/* Adds the attributes of all events to the decoder. The events and tids of config must outlive the
 * evlist. Returns NULL with a message. */
struct evlist *evlist_new(const struct live_config *config, struct decoder *decoder,
			  struct error *err);
void evlist_free(struct evlist *list);

/* Calls perf_event_open(2), which libperf does not offer with flags. Returns a descriptor or a
 * negative errno. group: descriptor of the group's leader, or -1. */
int evlist_open_event(const struct perf_event_attr *attr, int target, int cpu, int group,
		      unsigned long flags);
/* Explain why the kernel refused to open an event (NULL: the one that reports tasks), or its
 * filter. Return code. */
int evlist_open_error(const struct evlist *list, const struct live_event *ev, int code,
		      struct error *err);
int evlist_filter_error(const struct live_event *ev, int code, struct error *err);
/* Returns whether an event is to be opened on the CPU. */
bool evlist_is_for(const struct evlist *list, const struct evsel *sel, int cpu);
