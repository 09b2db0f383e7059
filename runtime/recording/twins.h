/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Twins: attributes of a recording that sample the same tracepoint, such as one with a filter and
 * one without. What happened once is a sample of each of them, one after the other on its CPU and
 * with the same data. It is an event once.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct decoder;
struct perf_event_header;
struct twins;

/* Finds the twins among the attributes, to be called after all were added. Sets *t to NULL if there
 * are none. Returns 0 or -ENOMEM. */
int twins_new(const struct decoder *d, uint32_t nr_rings, struct twins **t);
void twins_free(struct twins *t);

/* Whether a sample is what a twin has sampled already. The samples of a ring must come in their
 * order. t: may be NULL. */
bool twins_have(struct twins *t, const struct perf_event_header *rec, uint32_t ring, uint64_t time);
/* Returns for how many samples that was so. t: may be NULL. */
uint64_t twins_count(const struct twins *t);
