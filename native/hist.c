/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A value's bucket is its exponent (the group) and the six bits after its leading bit. Group 0
 * holds the values below 128 one by one, in two octaves' worth of buckets: there a bucket is one
 * value wide.
 */
#include "hist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SUB_BITS = 6,
	SUBS = 1 << SUB_BITS,
	GROUPS = 64 - SUB_BITS, /* exponents 6 to 63 */
};

struct hist {
	struct hist_stats stats; /* min is UINT64_MAX while empty */
	uint64_t threshold;
	uint64_t *group[GROUPS]; /* counts of the buckets; NULL without a value */
};

struct hist_set {
	int64_t threshold;
	uint32_t n;
	struct hist *hist[];
};

static size_t group_size(unsigned int group)
{
	return group ? SUBS : 2 * SUBS;
}

struct hist *hist_new(int64_t threshold)
{
	struct hist *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->threshold = threshold < 0 ? UINT64_MAX : (uint64_t)threshold;
	h->stats.min = UINT64_MAX;
	return h;
}

void hist_free(struct hist *h)
{
	if (!h)
		return;
	for (unsigned int i = 0; i < GROUPS; i++)
		free(h->group[i]);
	free(h);
}

static int allocate_group(struct hist *h, unsigned int group)
{
	h->group[group] = calloc(group_size(group), sizeof(uint64_t));
	return h->group[group] ? 0 : -ENOMEM;
}

static uint64_t saturating_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

typedef unsigned __int128 uint128_t; /* not in the header, which LuaJIT reads */

static uint128_t squares_of(uint64_t high, uint64_t low)
{
	return (uint128_t)high << 64 | low;
}

static __always_inline void add_squares(struct hist_stats *s, uint128_t squares)
{
	uint128_t sum;

	if (__builtin_add_overflow(squares_of(s->squares_high, s->squares_low), squares, &sum))
		sum = ~(uint128_t)0;
	s->squares_low = (uint64_t)sum;
	s->squares_high = (uint64_t)(sum >> 64);
}

static unsigned int group_of(uint64_t v)
{
	return 63 - SUB_BITS - (unsigned int)__builtin_clzll(v | SUBS);
}

static uint64_t not_negative(int64_t value)
{
	return value < 0 ? 0 : (uint64_t)value;
}

/* Counts one value, for which there is room, except in the stats: those are in s, which the caller
 * may keep in registers. */
static __always_inline void count(struct hist *h, struct hist_stats *s, uint64_t v)
{
	unsigned int group = group_of(v);

	h->group[group][(v >> group) - (group ? SUBS : 0)]++;
	s->count++;
	s->sum = saturating_add(s->sum, v);
	add_squares(s, (uint128_t)v * v);
	/* Both are rare: a branch costs less than writing the same value again. */
	if (__builtin_expect(v < s->min, 0))
		s->min = v;
	if (__builtin_expect(v > s->max, 0))
		s->max = v;
	if (__builtin_expect(v > h->threshold, 0))
		s->over++;
}

static __always_inline int add_unsigned(struct hist *h, struct hist_stats *s, uint64_t v)
{
	unsigned int group = group_of(v);

	if (__builtin_expect(!h->group[group], 0) && allocate_group(h, group) < 0)
		return -ENOMEM;
	count(h, s, v);
	return 0;
}

static __always_inline int add(struct hist *h, struct hist_stats *s, int64_t value)
{
	int ret = add_unsigned(h, s, not_negative(value));

	if (__builtin_expect(value < 0, 0) && !ret)
		s->negative++;
	return ret;
}

int hist_add(struct hist *h, int64_t value)
{
	return add(h, &h->stats, value);
}

int hist_add_unsigned(struct hist *h, uint64_t value)
{
	return add_unsigned(h, &h->stats, value);
}

int hist_merge(struct hist *h, const struct hist *from)
{
	const struct hist_stats *f = &from->stats;
	struct hist_stats *s = &h->stats;

	for (unsigned int i = 0; i < GROUPS; i++)
		if (from->group[i] && !h->group[i] && allocate_group(h, i) < 0)
			return -ENOMEM;
	for (unsigned int i = 0; i < GROUPS; i++)
		for (size_t j = 0; from->group[i] && j < group_size(i); j++)
			h->group[i][j] += from->group[i][j];
	s->count += f->count;
	s->sum = saturating_add(s->sum, f->sum);
	add_squares(s, squares_of(f->squares_high, f->squares_low));
	s->min = f->min < s->min ? f->min : s->min;
	s->max = f->max > s->max ? f->max : s->max;
	s->over += f->over;
	s->negative += f->negative;
	return 0;
}

void hist_clear(struct hist *h)
{
	for (unsigned int i = 0; i < GROUPS; i++)
		if (h->group[i])
			memset(h->group[i], 0, group_size(i) * sizeof(uint64_t));
	h->stats = (struct hist_stats){.min = UINT64_MAX};
}

void hist_read(const struct hist *h, struct hist_stats *out)
{
	*out = h->stats;
	if (!out->count)
		out->min = 0;
}

/* Returns the middle of a bucket, within the values that were seen. */
static uint64_t bucket_value(const struct hist *h, unsigned int group, size_t sub)
{
	uint64_t v = (uint64_t)(sub + (group ? SUBS : 0)) << group;

	v += group ? 1ULL << (group - 1) : 0;
	v = v < h->stats.min ? h->stats.min : v;
	return v > h->stats.max ? h->stats.max : v;
}

uint64_t hist_quantile(const struct hist *h, double q)
{
	double rank = ceil(q * (double)h->stats.count); /* 1 for the smallest value */
	uint64_t seen = 0;

	if (!h->stats.count)
		return 0;
	if (rank <= 1)
		return h->stats.min;
	if (rank >= (double)h->stats.count)
		return h->stats.max;
	for (unsigned int i = 0; i < GROUPS; i++)
		for (size_t j = 0; h->group[i] && j < group_size(i); j++) {
			seen += h->group[i][j];
			if (h->group[i][j] && (double)seen >= rank)
				return bucket_value(h, i, j);
		}
	return h->stats.max;
}

double hist_variance(const struct hist *h)
{
	const struct hist_stats *s = &h->stats;
	uint128_t squares = squares_of(s->squares_high, s->squares_low);
	uint64_t mean;
	double rest;

	if (!s->count || s->sum == UINT64_MAX || squares == ~(uint128_t)0)
		return NAN;
	/* Distances from the whole part of the mean: their squares add up to less than 2^128. */
	mean = s->sum / s->count;
	squares += ((uint128_t)mean * mean * s->count) - (((uint128_t)mean * s->sum) << 1);
	rest = (double)(s->sum % s->count) / (double)s->count;
	return (double)squares / (double)s->count - rest * rest;
}

void hist_log2(const struct hist *h, uint64_t rows[HIST_LOG2_ROWS])
{
	memset(rows, 0, HIST_LOG2_ROWS * sizeof(*rows));
	for (unsigned int i = 0; i < GROUPS; i++)
		for (size_t j = 0; h->group[i] && j < group_size(i); j++) {
			uint64_t v = (uint64_t)(j + (i ? SUBS : 0)) << i;

			rows[v ? 2 + 63 - __builtin_clzll(v) : 1] += h->group[i][j];
		}
	rows[0] = h->stats.negative;
	rows[1] -= h->stats.negative;
}

struct hist_set *hist_set_new(uint32_t n, int64_t threshold)
{
	struct hist_set *s = calloc(1, sizeof(*s) + n * sizeof(*s->hist));

	if (!s)
		return NULL;
	s->n = n;
	s->threshold = threshold;
	return s;
}

void hist_set_free(struct hist_set *s)
{
	for (uint32_t i = 0; s && i < s->n; i++)
		hist_free(s->hist[i]);
	free(s);
}

/* Finds histogram i, and creates it if it is new. Returns 0, -ENOMEM or -EINVAL. */
static int find_hist(struct hist_set *s, uint32_t i, struct hist **h)
{
	if (i >= s->n)
		return -EINVAL;
	if (__builtin_expect(!s->hist[i], 0))
		s->hist[i] = hist_new(s->threshold);
	*h = s->hist[i];
	return *h ? 0 : -ENOMEM;
}

static __attribute__((noinline)) int add_first(struct hist_set *s, uint32_t i, int64_t value)
{
	struct hist *h;
	int ret = find_hist(s, i, &h);

	return ret ? ret : add(h, &h->stats, value);
}

int hist_set_add(struct hist_set *s, uint32_t i, int64_t value)
{
	struct hist *h = i < s->n ? s->hist[i] : NULL;

	/* A call would make the loop save registers. */
	if (__builtin_expect(!h || !h->group[group_of(not_negative(value))], 0))
		return add_first(s, i, value);
	count(h, &h->stats, not_negative(value));
	if (__builtin_expect(value < 0, 0))
		h->stats.negative++;
	return 0;
}

int hist_set_add_unsigned(struct hist_set *s, uint32_t i, uint64_t value)
{
	struct hist *h;
	int ret = find_hist(s, i, &h);

	return ret ? ret : hist_add_unsigned(h, value);
}

int hist_set_add_column(struct hist_set *s, const uint32_t *i, const double *value, uint32_t stride,
			uint32_t n)
{
	const char *id = (const char *)i, *at = (const char *)value;

	/* A run of values for the same histogram keeps its stats in registers. */
	while (n) {
		uint32_t number = *(const uint32_t *)id;
		struct hist_stats stats;
		struct hist *h;
		int ret = find_hist(s, number, &h);

		if (ret)
			return ret;
		stats = h->stats;
		for (; n && *(const uint32_t *)id == number && !ret; n--) {
			ret = add(h, &stats, (int64_t) * (const double *)at);
			id += stride;
			at += stride;
		}
		h->stats = stats;
		if (ret)
			return ret;
	}
	return 0;
}

static int add_to_bucket(struct hist *h, unsigned int at, uint64_t n)
{
	unsigned int group = at < 2 * SUBS ? 0 : at / SUBS - 1;

	if (!h->group[group] && allocate_group(h, group) < 0)
		return -ENOMEM;
	h->group[group][at - (group ? (group + 1) * SUBS : 0)] += n;
	return 0;
}

int hist_set_add_bucket(struct hist_set *s, uint32_t i, uint32_t bucket, uint64_t n)
{
	struct hist *h;
	int ret = bucket < HIST_BUCKETS ? find_hist(s, i, &h) : -EINVAL;

	return ret ? ret : add_to_bucket(h, bucket, n);
}

int hist_set_add_sums(struct hist_set *s, uint32_t i, const struct hist_sums *sums,
		      const uint64_t *buckets)
{
	uint64_t min = ~sums->not_min;
	struct hist *h;
	int ret = find_hist(s, i, &h);

	for (unsigned int at = 0; buckets && at < HIST_BUCKETS && !ret; at++)
		if (buckets[at])
			ret = add_to_bucket(h, at, buckets[at]);
	if (ret)
		return ret;
	h->stats.count += sums->count;
	h->stats.sum = saturating_add(h->stats.sum, sums->sum);
	add_squares(&h->stats, squares_of(sums->squares_high, sums->squares_low));
	if (sums->count && min < h->stats.min)
		h->stats.min = min;
	if (sums->max > h->stats.max)
		h->stats.max = sums->max;
	h->stats.over += sums->over;
	h->stats.negative += sums->negative;
	return 0;
}

int64_t hist_set_threshold(const struct hist_set *s)
{
	return s->threshold;
}

struct hist *hist_set_get(const struct hist_set *s, uint32_t i)
{
	return i < s->n ? s->hist[i] : NULL;
}

void hist_set_clear(struct hist_set *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if (s->hist[i])
			hist_clear(s->hist[i]);
}
