/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The events of an evlist that are only counted, for one CPU or for all threads. They have no ring.
 * The events of a group are opened as a group of the kernel, so that a single read(2) gets all of
 * them. If a sampled event reads them, they belong to its group, and its samples hold their counts.
 */
#pragma once
#include <stdint.h>

struct counters;
struct error;
struct evlist;
struct count_sums;
struct evset;

/* Opens the counters of a CPU, or with -1 those of the threads on any CPU, disabled. The evset is
 * the CPU's, for the sampled event that reads them. Threads that have exited are skipped. Returns
 * NULL with a message and a negative errno in *code, as evset_open(). The evlist and the sums must
 * outlive the counters. */
struct counters *counters_open(const struct evlist *evlist, const struct evset *evset, int cpu,
			       struct count_sums *sums, int *code, struct error *err);
void counters_close(struct counters *c);
int counters_cpu(const struct counters *c);

int counters_enable(struct counters *c, struct error *err);
void counters_disable(struct counters *c);
/* Adds to the sums what was counted since the last call: one read per group and target. */
void counters_read(struct counters *c);
