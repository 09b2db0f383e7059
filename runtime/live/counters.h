/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters: the counted events of an evlist, on one CPU or on all threads. They have no ring. The
 * events of a group are opened as a perf group, so that one read(2) reads all of them. If a sampled
 * event reads them, they belong to its group, and its samples contain their counts.
 */
#pragma once
#include <stdint.h>

struct counters;
struct error;
struct evlist;
struct count_sums;
struct evset;

/* Opens the counters of a CPU (-1: of the threads, on any CPU), disabled. The evset is the CPU's,
 * for the sampled event that reads them. Threads that have exited are skipped. NULL with a message
 * and a negative errno in *code, as in evset_open(). The evlist and sums must outlive it. */
struct counters *counters_open(const struct evlist *evlist, const struct evset *evset, int cpu,
			       struct count_sums *sums, int *code, struct error *err);
void counters_close(struct counters *c);
int counters_cpu(const struct counters *c);

int counters_enable(struct counters *c, struct error *err);
void counters_disable(struct counters *c);
/* Adds the counts since the last call to the sums, with one read(2) per group and target. */
void counters_read(struct counters *c);
