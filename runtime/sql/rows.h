/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kept events in tables, each in time order: what SQL sees as rows, and what the page of --serve
 * shows. The copies are in a timeline. When they take more memory than allowed, the oldest events
 * of all tables are dropped, which is counted.
 */
#pragma once
#include <stdint.h>

struct event;
struct rows;

struct rows_stats {
	uint64_t added;	      /* events since rows_new() */
	uint64_t dropped;     /* of them, for lack of memory */
	double dropped_until; /* ns: the time of the last one; -INFINITY: none */
};

/* max_bytes bounds the copies. Returns NULL without memory. */
struct rows *rows_new(uint64_t max_bytes);
void rows_free(struct rows *r);
/* Keeps events of class from now on. Returns the number of its table, from 0, or a negative errno.
 */
int rows_add_table(struct rows *r, uint16_t class);
/* Keeps events of class in the table of another one. Returns 0 or -EINVAL. */
int rows_share_table(struct rows *r, uint16_t class, uint32_t table);
/* Keeps those of n events whose class has a table. */
void rows_add(struct rows *r, const struct event *events, int n);
/* Drops all events. */
void rows_clear(struct rows *r);

uint32_t rows_count(const struct rows *r, uint32_t table);
/* The rows of a table in time order, valid until rows are added or dropped. */
struct event *const *rows_of(const struct rows *r, uint32_t table);
/* Returns how many rows are older than time. */
uint32_t rows_before(const struct rows *r, uint32_t table, double time);
/* The bytes of all copies. */
uint64_t rows_bytes(const struct rows *r);
void rows_read_stats(const struct rows *r, struct rows_stats *out);
