/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Counters: the events of a evlist that are only counted, for one cpu or for all threads. They have
 * no ring. Events of one group are opened as a group of the kernel, so that one read(2) gets all of
 * them; where a sampled event reads them, they belong to its group and its samples hold them.
 */
#pragma once
#include <stdint.h>

struct counters;
struct error;
struct evlist;
struct count_sums;
struct evset;

/* Opens them for a cpu, -1: for the threads on any cpu, disabled. The evset is the cpu's, for the
 * sampled event that reads them. Threads that have ended are left out. NULL with a message and a
 * negative errno in *code, as evset_open(). Plan and sums must outlive it. */
struct counters *counters_open(const struct evlist *p, const struct evset *evset, int cpu,
			       struct count_sums *sums, int *code, struct error *err);
void counters_close(struct counters *c);
int counters_cpu(const struct counters *c);

int counters_enable(struct counters *c, struct error *err);
void counters_disable(struct counters *c);
/* Adds to the sums what was counted since the last time: one read for each group and target. */
void counters_read(struct counters *c);
