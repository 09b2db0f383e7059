/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Windows of time in overwritten rings of captured events (capture_ring.h) that programs go on
 * writing. No ring is paused, so no event is lost: the records of a window are copied, from the
 * newest to the oldest, and those that programs have overwritten meanwhile are dropped. The ids in
 * the samples are the classes of their events, and there are no callchains.
 */
#pragma once
#include <stdint.h>

struct event;
struct capture_window;

struct window_info {
	uint64_t whole_from; /* ns: records before it are overwritten; 0: none is */
	uint64_t lost;	     /* records that programs could not write since the start */
};

/* rings: one for each of nr_cpus CPUs, with size bytes of data. They must outlive the window.
 * Returns NULL without memory. */
struct capture_window *capture_window_new(const uint8_t *rings, uint32_t nr_cpus, uint32_t size);
void capture_window_free(struct capture_window *w);

/* Copies the records between two times, in ns; of the times until now, all are in the rings.
 * again = 0: those that were written since the last window, in place of `from`. Returns 0 or
 * -ENOMEM. */
int capture_window_read(struct capture_window *w, uint64_t from, uint64_t until, int again,
			struct window_info *info);
/* Fills `events` with the next events of the window, at most max, and returns how many. base is
 * subtracted from their times. An interrupt's event may come before the one that it interrupted.
 * What they point to is valid until the next window is read. */
int capture_window_next(struct capture_window *w, uint64_t base, struct event *events, int max);
