/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Ring: a reader of one mapped perf ring buffer, without copies. It scans records into a small
 * window sorted by time, because the record of an interrupt can precede the older record of the
 * interrupted code. Delivered records stay valid until ring_release() returns their space to the
 * kernel. Only this module accesses data_head and data_tail.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct decoder;
struct ring;
struct slot;

/* base: the mapping, control page first; pages: of data, a power of two. NULL: out of memory. */
struct ring *ring_new(void *base, uint32_t pages, const struct decoder *decoder);
/* Like ring_new(), for a BPF ring buffer in the kernel's layout: consumer page, producer page, and
 * twice size bytes of data. time_at: offset of a record's time, -1: use the time of reading; mark:
 * flags of its slots. */
struct ring *ring_new_bpf(void *consumer, const void *producer, uint64_t size, int32_t time_at,
			  uint32_t mark);
/* Like ring_new(), for a ring that a BPF program writes: of the control page only head and tail are
 * used, records never wrap around the end but go on after it, and the head may briefly step back.
 * is_backward: like ring_new_backward(), and the tail is not used. */
struct ring *ring_new_linear(void *base, uint32_t pages, const struct decoder *decoder,
			     bool is_backward);
/* Like ring_new(), for an overwritten ring: mapped read-only, written backward (write_backward).
 * Only records found by ring_dump() are visible. */
struct ring *ring_new_backward(void *base, uint32_t pages, const struct decoder *decoder);
/* Makes the ring's records between two times readable, except those of earlier dumps. Call it when
 * all records of the last dump are released. Output must be paused until all records of this one
 * are released. Returns 0 or -ENOMEM. */
int ring_dump(struct ring *r, uint64_t from, uint64_t until);
/* Returns the time from which on the last dump has all records; 0: all since the dump before, or
 * since the start. */
uint64_t ring_whole_from(const struct ring *r);
bool ring_is_backward(const struct ring *r);
/* Ignores records written from now on. */
void ring_freeze(struct ring *r);
void ring_free(struct ring *r);

/* Sets the ring number in the slots of its records; initially 0. */
void ring_set_number(struct ring *r, uint32_t number);

/* Reads the kernel's head, up to which records will be read. Returns the number of unread bytes. */
uint64_t ring_snapshot(struct ring *r);
uint64_t ring_size(const struct ring *r);

/* Returns the number of lost records reported by the records read so far. */
uint64_t ring_lost(const struct ring *r);

/* Fills the window with records that will soon be moved. Returns the time of the oldest unread
 * record below the snapshot; UINT64_MAX if there is none. */
uint64_t ring_peek(struct ring *r);
/* The following functions require that ring_peek() has found a record. */
/* Returns the time of the newest record in the window. */
uint64_t ring_newest(const struct ring *r);
/* Returns the time up to which all records below the snapshot are in the window. */
uint64_t ring_sure(const struct ring *r);
/* Returns the number of records in the window with time <= limit, at most max. */
int ring_count(const struct ring *r, uint64_t limit, int max);
/* Moves the n oldest records to out, in order. */
void ring_move(struct ring *r, struct slot *out, int n);
/* Releases the space of all moved records. */
void ring_release(struct ring *r);
