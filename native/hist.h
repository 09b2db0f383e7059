/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Histogram of integers with quantiles, usually latencies in ns. Log-linear: every octave (power
 * of two) has 64 buckets, so that a quantile is off by at most 1/128 of its value, and values
 * below 128 are exact. An octave is allocated by its first value: some 4 KiB for latencies that
 * spread over 1:256, at most 30 KiB for any input.
 */
#pragma once
#include <stdint.h>

struct hist;
struct hist_set; /* histograms by small integers, allocated when first added to */

struct hist_stats {
	uint64_t count;
	uint64_t sum;	   /* stays at UINT64_MAX where it would exceed that */
	uint64_t min, max; /* 0 while count is 0 */
	uint64_t over;	   /* values strictly greater than the threshold */
	uint64_t negative; /* values that were negative, and were taken as 0 */
};

enum { HIST_LOG2_ROWS = 65 };

/* threshold: see hist_stats.over; a negative one counts nothing. NULL when out of memory. */
struct hist *hist_new(int64_t threshold);
void hist_free(struct hist *h);

/* Returns 0, or -ENOMEM and leaves the value out. */
int hist_add(struct hist *h, int64_t value);
/* Adds what from holds; over and negative add up too. Returns 0, or -ENOMEM and changes nothing. */
int hist_merge(struct hist *h, const struct hist *from);
/* Forgets the values, keeps threshold and memory. */
void hist_clear(struct hist *h);

void hist_read(const struct hist *h, struct hist_stats *out);
/* The smallest value that at least the fraction q (0..1) of the values does not exceed; 0 without
 * values. */
uint64_t hist_quantile(const struct hist *h, double q);
/* Counts by power of two: rows[0] negative, rows[1] zero, rows[2 + i] from 2^i below 2^(i+1). */
void hist_log2(const struct hist *h, uint64_t rows[HIST_LOG2_ROWS]);

/* Histograms 0 to n - 1, each with the threshold. NULL when out of memory. */
struct hist_set *hist_set_new(uint32_t n, int64_t threshold);
void hist_set_free(struct hist_set *s);
/* hist_add() to number i. Returns 0, -ENOMEM, or -EINVAL if there is no such number. */
int hist_set_add(struct hist_set *s, uint32_t i, int64_t value);
/* The same for n values, which are cut to integers. Both columns may be members of one array of
 * structs of stride bytes. */
int hist_set_add_column(struct hist_set *s, const uint32_t *i, const double *value, uint32_t stride,
			uint32_t n);
/* Number i, which the set owns; NULL before the first hist_set_add(). */
struct hist *hist_set_get(const struct hist_set *s, uint32_t i);
/* hist_clear() of all. */
void hist_set_clear(struct hist_set *s);
