/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events that outlive their batch, copied into chunks in the order in which they are kept. A chunk
 * is recycled when none of its events is needed any more, so memory follows what is needed at the
 * same time, not the length of the run.
 */
#pragma once
#include <stdint.h>

struct event;
struct timeline;

/* max_bytes bounds the chunks in use (0: 256 MiB; one chunk of 64 KiB is always allowed). */
struct timeline *timeline_new(uint64_t max_bytes);
void timeline_free(struct timeline *tl);

/* Returns a copy of the event with its payload and callchain, flagged EVENT_KEPT; NULL beyond
 * max_bytes, without memory, or for a payload of more than 16 MiB. The copy lives until it was
 * released as often as it was kept and retained. */
struct event *timeline_keep(struct timeline *tl, const struct event *ev);
void timeline_retain(struct event *ev);
void timeline_release(struct timeline *tl, struct event *ev);

/* Returns the bytes of the chunks in use. */
uint64_t timeline_bytes(const struct timeline *tl);
