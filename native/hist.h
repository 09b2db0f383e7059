/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A histogram of integers of 64 bits with quantiles, usually latencies in ns. It is log-linear:
 * every octave (power of two) has 64 buckets, so a quantile is off by at most 1/128 of its value,
 * and values below 128 are exact. An octave is allocated by its first value: about 4 KiB for
 * latencies that spread over 1:256, at most 30 KiB for any input.
 */
#pragma once
#include <stdint.h>

struct hist;
struct hist_set; /* histograms by small integers, each allocated by its first value */

struct hist_stats {
	uint64_t count;
	uint64_t sum;	   /* stops at UINT64_MAX */
	uint64_t min, max; /* 0 while count is 0 */
	uint64_t over;	   /* values strictly greater than the threshold */
	uint64_t negative; /* negative values, which count as 0 */
	/* 2^64 * high + low: the sum of the squares; stops at 2^128 - 1 */
	uint64_t squares_low, squares_high;
};

enum { HIST_LOG2_ROWS = 66, HIST_BUCKETS = 59 * 64 };

/* Values that someone else has counted, such as a BPF program. All 0: none. A wide one has the
 * lower and upper halves of all values in sum and sum_high. */
struct hist_sums {
	uint64_t count, sum;
	uint64_t not_min; /* ~ of the smallest value */
	uint64_t max;
	union {
		uint64_t over, sum_high;
	};
	uint64_t failed;
	uint64_t negative;
	uint64_t squares_low, squares_high;
};

/* threshold: see hist_stats.over; if it is negative, nothing counts as over. Returns NULL without
 * memory. */
struct hist *hist_new(int64_t threshold);
void hist_free(struct hist *h);

/* Returns 0, or -ENOMEM without counting the value. */
int hist_add(struct hist *h, int64_t value);
int hist_add_unsigned(struct hist *h, uint64_t value);
/* Adds the values of from, including over and negative. Returns 0, or -ENOMEM without changing
 * anything. */
int hist_merge(struct hist *h, const struct hist *from);
/* Forgets the values but keeps threshold and memory. */
void hist_clear(struct hist *h);

void hist_read(const struct hist *h, struct hist_stats *out);
/* Returns the smallest value that at least the fraction q (0..1) of the values do not exceed; 0
 * without values. */
uint64_t hist_quantile(const struct hist *h, double q);
/* Returns the variance: the mean of the squared distances from the mean. It is exact but for the
 * rounding of the result. NAN without values, or if a sum has stopped. */
double hist_variance(const struct hist *h);
/* Counts by power of two: rows[0] negative values, rows[1] zeros, rows[2 + i] values from 2^i to
 * below 2^(i+1). */
void hist_log2(const struct hist *h, uint64_t rows[HIST_LOG2_ROWS]);

/* Creates histograms 0 to n - 1 with the same threshold. Returns NULL without memory. */
struct hist_set *hist_set_new(uint32_t n, int64_t threshold);
void hist_set_free(struct hist_set *s);
/* Calls hist_add() for histogram i. Returns 0, -ENOMEM, or -EINVAL if there is no such
 * histogram. */
int hist_set_add(struct hist_set *s, uint32_t i, int64_t value);
int hist_set_add_unsigned(struct hist_set *s, uint32_t i, uint64_t value);
/* The same for n values, which are truncated to integers. Both columns may be members of an array
 * of structs of stride bytes. */
int hist_set_add_column(struct hist_set *s, const uint32_t *i, const double *value, uint32_t stride,
			uint32_t n);
/* Adds values that were counted elsewhere, and are not wide, to histogram i. buckets: HIST_BUCKETS
 * counts; the bucket of a value with the leading bit 2^e is 64 (e - 6) + (value >> (e - 6)), or the
 * value itself if it is less than 128. NULL: only the stats are known, and no quantiles. Returns as
 * hist_set_add(). */
int hist_set_add_sums(struct hist_set *s, uint32_t i, const struct hist_sums *sums,
		      const uint64_t *buckets);
/* Adds n values to such a bucket of histogram i, but not to its stats. Returns as
 * hist_set_add(). */
int hist_set_add_bucket(struct hist_set *s, uint32_t i, uint32_t bucket, uint64_t n);
int64_t hist_set_threshold(const struct hist_set *s);
/* Returns histogram i, which the set owns; NULL before its first hist_set_add(). */
struct hist *hist_set_get(const struct hist_set *s, uint32_t i);
/* Calls hist_clear() for all histograms. */
void hist_set_clear(struct hist_set *s);
