/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Group reads: in a group such as perf's {a,b}:S, only the leader is sampled, and its samples hold
 * the counts of all members (PERF_SAMPLE_READ). Such a sample stands for one event of each member
 * that has counted since the previous sample; its period is what it has counted, as in perf script.
 *
 * A member's event has the task, CPU and stack of the sample, but no fields of its own: these are
 * 0, except for the common ones.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct decoder;
struct event;
struct group_reads;
struct layout;

struct group_reads *group_reads_new(void);
void group_reads_free(struct group_reads *g);
/* Makes room for the payloads of all classes. Returns 0 or -ENOMEM. */
int group_reads_reserve(struct group_reads *g, const struct decoder *d);

/* Whether samples of a layout hold counts that belong to ids. */
bool group_reads_are_in(const struct layout *l);
/* Fills ev[0..max) with the events of a sample of n words. Returns as decoder_decode(). */
int group_reads_decode(struct group_reads *g, const struct decoder *d, const struct layout *l,
		       const uint64_t *words, unsigned int n, struct event *ev, int max);
