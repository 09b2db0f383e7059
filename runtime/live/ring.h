/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ring: reads one mapped perf ring without copying. It scans records into a small window that is
 * kept sorted by time, because an interrupt's record may stand before the older record of the
 * code it interrupted. The kernel gets its space back only by ring_release(): until then every
 * record handed out stays where it is. This file holds the only accesses to data_head and
 * data_tail.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct decoder;
struct ring;
struct slot;

/* base: the mapping (control page first), pages: of data, a power of two. NULL: out of memory. */
struct ring *ring_new(void *base, uint32_t pages, const struct decoder *decoder);
/* The same for a BPF ring buffer, mapped as the kernel says: consumer's page, producer's page, and
 * twice size bytes of data. time_at: offset of a record's time, -1: it has none, then it is the
 * time of reading; mark: flags of its slots. */
struct ring *ring_new_bpf(void *consumer, const void *producer, uint64_t size, int32_t time_at,
			  uint32_t mark);
/* A ring that the kernel overwrites: mapped for reading only, written backward (write_backward of
 * its events). It shows nothing but what ring_dump() finds. */
struct ring *ring_new_backward(void *base, uint32_t pages, const struct decoder *decoder);
/* Makes the records readable up to a time that the ring holds and that no dump before had. To be
 * called when all of the last dump was released; its output must be paused until all of this one
 * is. 0 or -ENOMEM. */
int ring_dump(struct ring *r, uint64_t until);
bool ring_is_backward(const struct ring *r);
/* What is written from now on is not seen. */
void ring_freeze(struct ring *r);
void ring_free(struct ring *r);

/* The slots of its records carry this number from now on; 0 before. */
void ring_set_number(struct ring *r, uint32_t number);

/* Takes the kernel's head as the end of what will be read. Returns the unread bytes. */
uint64_t ring_snapshot(struct ring *r);
uint64_t ring_size(const struct ring *r);

/* Records lost, as the records told that were read so far. */
uint64_t ring_lost(const struct ring *r);

/* Looks at more of them, as many as will soon be moved. Time of the oldest unread record below the
 * snapshot; UINT64_MAX when there is none. */
uint64_t ring_peek(struct ring *r);
/* Of what ring_peek() found, which must have been something: the time of the youngest, */
uint64_t ring_newest(const struct ring *r);
/* the time up to which no older records will be found below the snapshot, */
uint64_t ring_sure(const struct ring *r);
/* and how many there are with time <= limit; max if they are more. */
int ring_count(const struct ring *r, uint64_t limit, int max);
/* Moves the n oldest of them to out, in order. */
void ring_move(struct ring *r, struct slot *out, int n);
/* Gives back the space of all records that were moved. */
void ring_release(struct ring *r);
