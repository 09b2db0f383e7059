/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Plan of a live source: which events are to be opened with which attributes, and on which cpus,
 * threads or cgroups. Nothing is open yet but the cgroups' directories.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "os/cpus.h"
#include "source.h"

struct decoder;
struct error;

enum { TASK_PAGES = 16 }; /* of a ring that only reports tasks */

/* Events that are opened for the same targets, and so share rings. */
enum evlist_group { GROUP_EVENTS, GROUP_TASKS, GROUP_EVERYWHERE, NR_GROUPS };

/* An event as it is opened wherever it is. */
struct evsel {
	struct perf_event_attr attr;
	const struct event_request *event; /* NULL: the one that reports names and ends of tasks */
	struct cpus cpus;
	enum evlist_group group;
	int index;	 /* of the decoder; of a counted event nothing */
	uint32_t leader; /* of a counted event: number of the one whose group it is in */
};

/* What perf_event_open() takes as its pid. */
struct targets {
	const int32_t *list;
	uint32_t n;
	unsigned long flags;
};

struct evlist {
	const struct event_request *requests; /* outputs of BPF programs among them are left out */
	uint32_t nr_requests;
	struct source_target target;
	struct evsel *evsels; /* the last one reports tasks */
	uint32_t nr_evsels;
	struct evsel *counted; /* events without samples */
	uint32_t nr_counted;
	int sampler;	  /* evsel whose samples hold the counts; -1: they are read */
	bool has_clock;	  /* times are those of CLOCK_MONOTONIC */
	bool has_lost;	  /* the kernel counts what it loses */
	bool has_ksymbol; /* tells of code that the kernel gets */
	/* One ring for each thread, whatever cpu it runs on; else the rings are those of cpus. (The
	 * kernel maps no ring for an event that new threads inherit and that is on all cpus.) */
	bool per_thread;
	/* What is counted are threads on all cpus: one counter for each thread. */
	bool counts_threads;
	struct cpus cpus; /* online at the start: each gets its rings, unless per_thread */
	struct targets targets[NR_GROUPS];
	int32_t *cgroup_fds;
	int nr_cgroup_fds;
};

/* Adds the attributes of all events to the decoder. The requests and what target points to must
 * last as long as the evlist. NULL with a message. */
struct evlist *evlist_new(const struct event_request *requests, uint32_t n,
			  const struct source_target *target, struct decoder *decoder,
			  struct error *err);
void evlist_free(struct evlist *p);

/* perf_event_attr.sample_type of an event whose payload is the sample's words. */
uint64_t evlist_sample_type(const struct event_request *ev);
/* perf_event_open(2), with a negative errno. (libperf's takes no flags.) group: descriptor of its
 * leader, -1: none. */
int evlist_open_event(const struct perf_event_attr *attr, int target, int cpu, int group,
		      unsigned long flags);
/* Says why the kernel refused to open an event (NULL: the one of tasks), or its filter. Returns
 * code. */
int evlist_open_error(const struct evlist *p, const struct event_request *ev, int code,
		      struct error *err);
int evlist_filter_error(const struct event_request *ev, int code, struct error *err);
/* Whether an event is to be opened on the cpu. */
bool evlist_is_for(const struct evlist *p, const struct evsel *b, int cpu);
/* File descriptors that all of it takes. */
uint64_t evlist_nr_files(const struct evlist *p);
