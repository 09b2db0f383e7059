/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads one mapped perf ring without copying. Records are scanned into a small window that is
 * sorted by time, because the record of an interrupt may precede the older record of the code that
 * it interrupted. The kernel gets space back only by ring_release(); until then every record that
 * was handed out stays where it is. All accesses to data_head and data_tail are in this module.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct decoder;
struct ring;
struct slot;

/* base: the mapping (control page first); pages: of data, a power of two. Returns NULL without
 * memory. */
struct ring *ring_new(void *base, uint32_t pages, const struct decoder *decoder);
/* The same for a BPF ring buffer, mapped as the kernel requires: consumer page, producer page, and
 * twice size bytes of data. time_at: offset of a record's time; -1: it has none, and the time of
 * reading is used. mark: flags of its slots. */
struct ring *ring_new_bpf(void *consumer, const void *producer, uint64_t size, int32_t time_at,
			  uint32_t mark);
/* A ring that the kernel overwrites: mapped read-only and written backward (write_backward of its
 * events). Only ring_dump() makes records readable. */
struct ring *ring_new_backward(void *base, uint32_t pages, const struct decoder *decoder);
/* Makes the records readable up to a time, except those of earlier dumps. To be called when
 * everything of the last dump was released. The ring must be paused until everything of this dump
 * is. Returns 0 or -ENOMEM. */
int ring_dump(struct ring *r, uint64_t until);
bool ring_is_backward(const struct ring *r);
/* Records that are written from now on are ignored. */
void ring_freeze(struct ring *r);
void ring_free(struct ring *r);

/* Sets the ring number that the slots of its records carry; the default is 0. */
void ring_set_number(struct ring *r, uint32_t number);

/* Takes the kernel's head as the end of what will be read. Returns the number of unread bytes. */
uint64_t ring_snapshot(struct ring *r);
uint64_t ring_size(const struct ring *r);

/* Returns the records lost, as far as records that were read so far report it. */
uint64_t ring_lost(const struct ring *r);

/* Scans more records, as many as will soon be moved. Returns the time of the oldest unread record
 * below the snapshot; UINT64_MAX if there is none. */
uint64_t ring_peek(struct ring *r);
/* For the records that ring_peek() found, of which there must be some: the time of the youngest, */
uint64_t ring_newest(const struct ring *r);
/* the time up to which no older records will be found below the snapshot, */
uint64_t ring_sure(const struct ring *r);
/* and the number of those with time <= limit, but at most max. */
int ring_count(const struct ring *r, uint64_t limit, int max);
/* Moves the n oldest records to out, in order. */
void ring_move(struct ring *r, struct slot *out, int n);
/* Gives back the space of all records that were moved. */
void ring_release(struct ring *r);
