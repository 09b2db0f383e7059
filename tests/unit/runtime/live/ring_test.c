/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings in plain memory, written to as the kernel would: order within a ring, wrapping, released
 * space, losses; and the merge of many compared with a full sort, for random interleavings. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"
#include "live/merge.h"
#include "live/ring.h"

enum { PAGE = 4096, MAX = 512 };

/* The kernel's side of a ring. */
struct producer {
	struct perf_event_mmap_page *page;
	uint64_t size, lost; /* lost: not reported yet */
};

/* The contents of a sample here: its time, its number, and padding that depends on both. */
struct sample {
	struct perf_event_header header;
	uint64_t time, number;
	uint8_t padding[];
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost, time;
};

static struct decoder *make_decoder(void)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_TIME, .sample_id_all = 1};
	struct decoder *d = decoder_new();

	assert_int_equal(decoder_add_attr(d, &attr, NULL), 0);
	assert_int_equal(decoder_check(d, NULL), 0);
	return d;
}

static void producer_init(struct producer *p, uint32_t pages)
{
	p->page = aligned_alloc(PAGE, (1 + pages) * PAGE);
	memset(p->page, 0, (1 + pages) * PAGE);
	p->page->data_offset = PAGE;
	p->page->data_size = pages * PAGE;
	p->size = pages * PAGE;
	p->lost = 0;
}

static bool put_bytes(struct producer *p, const void *record, uint64_t size)
{
	uint64_t head = p->page->data_head, at = head % p->size;
	uint64_t part = size < p->size - at ? size : p->size - at;
	uint8_t *data = (uint8_t *)p->page + PAGE;

	if (head + size - p->page->data_tail > p->size)
		return false;
	memcpy(data + at, record, part);
	memcpy(data, (const uint8_t *)record + part, size - part);
	p->page->data_head = head + size;
	return true;
}

/* Returns false if there is no space; the next record that fits reports the loss. */
static bool put_sample(struct producer *p, uint64_t time, uint64_t number, uint32_t padding)
{
	uint8_t bytes[sizeof(struct sample) + 512];
	struct sample *s = (struct sample *)bytes;
	uint64_t size = sizeof(*s) + padding;

	s->header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE, .size = size};
	s->time = time;
	s->number = number;
	memset(s->padding, (int)(time + number), padding);
	if (p->lost) {
		struct lost_record l = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(l)},
					.lost = p->lost,
					.time = time};

		if (p->page->data_head + sizeof(l) + size - p->page->data_tail > p->size) {
			p->lost++;
			return false;
		}
		assert_true(put_bytes(p, &l, sizeof(l)));
		p->lost = 0;
	}
	if (put_bytes(p, s, size))
		return true;
	p->lost++;
	return false;
}

/* Whether the record is unchanged. */
static void check_intact(const struct slot *slot)
{
	const struct sample *s = slot->rec;

	assert_int_equal(s->header.type, PERF_RECORD_SAMPLE);
	assert_int_equal(s->time, slot->time);
	for (uint32_t i = 0; i + sizeof(*s) < s->header.size; i++)
		assert_int_equal(s->padding[i], (uint8_t)(s->time + s->number));
}

static uint64_t number_of(const struct slot *slot)
{
	return ((const struct sample *)slot->rec)->number;
}

/* Takes up to max records with time <= limit. */
static int take(struct ring *r, uint64_t limit, struct slot *out, int max)
{
	int n = ring_peek(r) == UINT64_MAX ? 0 : ring_count(r, limit, max);

	ring_move(r, out, n);
	return n;
}

/* The records of an interrupt precede the older record that it interrupted. */
static void sorts_nearly_sorted_records(void **state)
{
	static const uint64_t times[] = {10, 30, 20, 40, 70, 60, 50, 80, 80, 75};
	static const uint64_t sorted[] = {10, 20, 30, 40, 50, 60, 70, 75, 80, 80};
	struct decoder *d = make_decoder();
	struct slot out[MAX];
	struct producer p;
	struct ring *r;

	(void)state;
	producer_init(&p, 1);
	r = ring_new(p.page, 1, d);
	ring_set_number(r, 3);
	assert_int_equal(ring_size(r), PAGE);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	for (int i = 0; i < 10; i++)
		put_sample(&p, times[i], i, 0);
	assert_int_equal(ring_peek(r), UINT64_MAX); /* no snapshot yet */
	assert_int_equal(ring_snapshot(r), 10 * sizeof(struct sample));
	assert_int_equal(ring_peek(r), 10);
	assert_int_equal(take(r, 45, out, 2), 2);
	assert_int_equal(take(r, 45, out + 2, MAX), 2);
	assert_int_equal(take(r, 45, out + 4, MAX), 0);
	ring_set_number(r, 7);
	assert_int_equal(ring_peek(r), 50);
	assert_int_equal(take(r, UINT64_MAX - 1, out + 4, MAX), 6);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(out[i].time, sorted[i]);
		assert_int_equal(out[i].ring, i < 4 ? 3 : 7);
		assert_int_equal(out[i].flags, 0);
		check_intact(&out[i]);
	}
	assert_true(number_of(&out[8]) <
		    number_of(&out[9])); /* records with one time keep their order */
	assert_int_equal(ring_peek(r), UINT64_MAX);
	ring_free(r);
	decoder_free(d);
	free(p.page);
}

/* The tail passes a record only when it and all records written before it have been taken. */
static void releases_taken_records(void **state)
{
	enum { SIZE = sizeof(struct sample) };
	struct decoder *d = make_decoder();
	struct slot out[MAX];
	struct producer p;
	struct ring *r;

	(void)state;
	producer_init(&p, 1);
	r = ring_new(p.page, 1, d);
	put_sample(&p, 30, 0, 0);
	put_sample(&p, 10, 1, 0);
	put_sample(&p, 20, 2, 0);
	put_sample(&p, 40, 3, 0);
	ring_snapshot(r);
	assert_int_equal(take(r, 20, out, MAX), 2);
	assert_int_equal(p.page->data_tail, 0);
	ring_release(r); /* the first one in the ring is not taken yet */
	assert_int_equal(p.page->data_tail, 0);
	assert_int_equal(take(r, 30, out, MAX), 1);
	ring_release(r);
	assert_int_equal(p.page->data_tail, 3 * SIZE);
	put_sample(&p, 50, 4, 0);
	assert_int_equal(ring_snapshot(r), 2 * SIZE);
	assert_int_equal(take(r, UINT64_MAX - 1, out, MAX), 2);
	ring_release(r);
	assert_int_equal(p.page->data_tail, 5 * SIZE);
	assert_int_equal(ring_snapshot(r), 0);
	ring_free(r);
	decoder_free(d);
	free(p.page);
}

/* A ring of one page, repeatedly filled to the last byte with records of all sizes: each comes out
 * whole, also the one that wraps around the end, and stays whole until it is released. */
static void wraps(void **state)
{
	struct decoder *d = make_decoder();
	uint64_t time = 1, written = 0, taken = 0, wrapped = 0;
	struct slot out[MAX];
	struct producer p;
	struct ring *r;

	(void)state;
	producer_init(&p, 1);
	r = ring_new(p.page, 1, d);
	srand(2);
	while (taken < 20000) {
		int n;

		while (!p.lost && put_sample(&p, time, written, rand() % 65 * 8)) {
			written++;
			time++;
		}
		p.lost = 0; /* not tested here */
		ring_snapshot(r);
		n = take(r, UINT64_MAX - 1, out, 1 + rand() % 20);
		assert_true(n > 0);
		for (int i = 0; i < n; i++) {
			const uint8_t *at = out[i].rec;

			assert_int_equal(number_of(&out[i]), taken++);
			wrapped += at < (uint8_t *)p.page || at >= (uint8_t *)p.page + 2 * PAGE;
		}
		for (int i = 0; i < n; i++)
			check_intact(&out[i]);
		ring_release(r);
	}
	assert_true(wrapped > 1000);
	ring_free(r);
	decoder_free(d);
	free(p.page);
}

/* A ring in which records go on after the end, into a margin; other words of its control page are
 * not looked at, and its head steps back after each record. */
static void does_not_wrap(void **state)
{
	enum { SIZE = 2 * PAGE, MARGIN = 1024 };
	struct decoder *d = make_decoder();
	struct perf_event_mmap_page *page = aligned_alloc(PAGE, 4 * PAGE);
	uint64_t head = 0, written = 0, taken = 0, over = 0;
	uint8_t *data = (uint8_t *)page + PAGE;
	struct slot out[MAX];
	struct ring *r;

	(void)state;
	memset(page, 0, 4 * PAGE);
	page->data_offset = 12345;
	page->data_size = 77;
	r = ring_new_linear(page, 2, d, false);
	assert_int_equal(ring_size(r), SIZE);
	srand(3);
	while (taken < 20000) {
		int n;

		while (head + 2 * MARGIN - page->data_tail < SIZE) {
			struct sample *s = (struct sample *)(data + head % SIZE);
			uint32_t padding = rand() % 65 * 8;

			s->header = (struct perf_event_header){.type = PERF_RECORD_SAMPLE,
							       .size = sizeof(*s) + padding};
			s->time = ++written;
			s->number = written - 1;
			memset(s->padding, (int)(s->time + s->number), padding);
			head += s->header.size;
		}
		page->data_head = head;
		ring_snapshot(r);
		page->data_head = page->data_tail; /* an older value, stored late */
		assert_int_equal(ring_snapshot(r), head - page->data_tail);
		n = take(r, UINT64_MAX - 1, out, 1 + rand() % 20);
		assert_true(n > 0);
		for (int i = 0; i < n; i++) {
			const struct perf_event_header *rec = out[i].rec;

			assert_int_equal(number_of(&out[i]), taken++);
			check_intact(&out[i]);
			over += (const uint8_t *)rec + rec->size > data + SIZE;
			assert_true((const uint8_t *)rec >= data &&
				    (const uint8_t *)rec < data + SIZE);
		}
		ring_release(r);
	}
	assert_true(over > 500);
	ring_free(r);
	decoder_free(d);
	free(page);
}

/* A gap is at the place of its start: after the last record before it. */
static void places_losses(void **state)
{
	struct decoder *d = make_decoder();
	const struct perf_event_header *rec;
	struct slot out[MAX];
	struct producer p;
	struct ring *r;

	(void)state;
	producer_init(&p, 1);
	r = ring_new(p.page, 1, d);
	put_sample(&p, 10, 0, 0);
	put_sample(&p, 20, 1, 0);
	p.lost = 5;
	put_sample(&p, 90, 2, 0);
	ring_snapshot(r);
	assert_int_equal(take(r, 50, out, MAX), 3);
	rec = out[2].rec;
	assert_int_equal(rec->type, PERF_RECORD_LOST);
	assert_int_equal(out[2].time, 20);
	assert_int_equal(ring_lost(r), 5);
	assert_int_equal(take(r, 100, out, MAX), 1);
	assert_int_equal(out[0].time, 90);
	ring_free(r);
	decoder_free(d);
	free(p.page);
}

/* A ring whose bytes are not records is abandoned, not read forever. */
static void survives_invalid_records(void **state)
{
	struct decoder *d = make_decoder();
	struct slot out[MAX];
	struct producer p;
	struct ring *r;

	(void)state;
	producer_init(&p, 1);
	r = ring_new(p.page, 1, d);
	put_sample(&p, 10, 0, 0);
	p.page->data_head += 64; /* of zeros */
	ring_snapshot(r);
	assert_int_equal(take(r, UINT64_MAX - 1, out, MAX), 1);
	assert_int_equal(take(r, UINT64_MAX - 1, out, MAX), 0);
	ring_release(r);
	assert_int_equal(p.page->data_tail, p.page->data_head);
	ring_free(r);
	decoder_free(d);
	free(p.page);
}

enum { MAX_RINGS = 37, SAMPLES = 20000 };

struct world {
	struct decoder *decoder;
	int nr_rings;
	struct producer producers[MAX_RINGS];
	struct merge *merge;
	uint64_t now, written, lost, reported; /* written: samples, each has its number */
	uint64_t times[SAMPLES];	       /* by number; 0: lost */
	uint8_t seen[SAMPLES];
	uint64_t nr_seen, nr_late, last;
};

static struct world *new_world(unsigned int seed)
{
	struct world *w = calloc(1, sizeof(*w));

	srand(seed);
	w->decoder = make_decoder();
	w->merge = merge_new(true);
	w->now = 1000;
	w->nr_rings = 1 + seed * 7 % MAX_RINGS;
	for (int i = 0; i < w->nr_rings; i++) {
		producer_init(&w->producers[i], 1);
		assert_int_equal(merge_add(w->merge, ring_new(w->producers[i].page, 1, w->decoder)),
				 0);
	}
	return w;
}

static void free_world(struct world *w)
{
	merge_free(w->merge);
	decoder_free(w->decoder);
	for (int i = 0; i < w->nr_rings; i++)
		free(w->producers[i].page);
	free(w);
}

static void write_sample(struct world *w, int ring, uint64_t time)
{
	if (w->written == SAMPLES)
		return;
	if (put_sample(&w->producers[ring], time, w->written, rand() % 20 * 8))
		w->times[w->written] = time;
	else
		w->lost++;
	w->written++;
}

/* What a CPU does at a time: nothing, a record, or one that interrupts precede. */
static void write_some(struct world *w)
{
	int ring = rand() % w->nr_rings, interrupts = rand() % 8 ? 0 : rand() % 6;
	uint64_t begin = w->now++;

	for (int i = 0; i < interrupts; i++)
		write_sample(w, ring, w->now += rand() % 2);
	write_sample(w, ring, begin);
	w->now += rand() % 3;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Takes the available records, in batches; returns the number of samples. */
static int take_all(struct world *w)
{
	struct slot out[64];
	uint64_t horizon;
	int n, all = 0;

	while ((n = merge_next(w->merge, out, 1 + rand() % 64, UINT64_MAX, &horizon)) > 0) {
		for (int i = 0; i < n; i++) {
			const struct perf_event_header *rec = out[i].rec;

			if (rec->type == PERF_RECORD_LOST) {
				w->reported += ((const struct lost_record *)rec)->lost;
				continue;
			}
			check_intact(&out[i]);
			assert_in_range(number_of(&out[i]), 0, w->written - 1);
			assert_int_equal(out[i].time, w->times[number_of(&out[i])]);
			assert_false(w->seen[number_of(&out[i])]++);
			assert_int_equal(!!(out[i].flags & EVENT_LATE), out[i].time < w->last);
			w->nr_late += out[i].time < w->last;
			w->last = out[i].time > w->last ? out[i].time : w->last;
			all++;
		}
		w->nr_seen += n;
		merge_release(w->merge);
	}
	return all;
}

static void check_world(struct world *w)
{
	take_all(w);
	for (uint64_t i = 0; i < w->written; i++)
		assert_int_equal(w->seen[i], w->times[i] != 0);
	for (int i = 0; i < w->nr_rings; i++)
		w->reported += w->producers[i].lost; /* after the last record */
	assert_int_equal(w->reported, w->lost);
}

/* If no CPU is in the middle of writing when rings are read, the result is a full sort. */
static void merge_is_a_sort(void **state)
{
	static uint64_t sorted[SAMPLES];

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct world *w = new_world(seed);
		uint64_t n = 0;

		while (w->written < SAMPLES) {
			for (int i = rand() % 60; i >= 0; i--)
				write_some(w);
			take_all(w);
		}
		check_world(w);
		assert_int_equal(w->nr_late, 0);
		for (uint64_t i = 0; i < w->written; i++)
			if (w->times[i])
				sorted[n++] = w->times[i];
		qsort(sorted, n, sizeof(sorted[0]), by_time);
		assert_int_equal(w->last, sorted[n - 1]);
		free_world(w);
	}
}

/* If one is, late records are still delivered, once, and are marked, exactly those. */
static void late_ones_are_marked(void **state)
{
	uint64_t late = 0, lost = 0;

	(void)state;
	for (unsigned int seed = 1; seed <= 20; seed++) {
		struct world *w = new_world(seed);
		uint64_t behind[MAX_RINGS] = {0};

		while (w->written < SAMPLES) {
			int ring = rand() % w->nr_rings;

			/* A record whose time was read a while ago. */
			if (!behind[ring])
				behind[ring] = w->now;
			if (rand() % 4 == 0) {
				write_sample(w, ring, behind[ring]);
				behind[ring] = 0;
			}
			w->now += rand() % 5;
			if (rand() % 300 == 0)
				take_all(w);
		}
		check_world(w);
		late += w->nr_late;
		lost += w->lost;
		free_world(w);
	}
	assert_true(late > 100);
	assert_true(lost > 100);
}

/* Disorder that no window covers: the late record is in the middle of a batch, marked. */
static void late_in_a_batch(void **state)
{
	enum { PAGES = 4, N = 400, LATE = 300 };
	struct decoder *d = make_decoder();
	struct merge *merge = merge_new(true);
	uint64_t horizon, newest = 0;
	struct slot out[MAX];
	struct producer p;
	int late = 0;

	(void)state;
	producer_init(&p, PAGES);
	assert_int_equal(merge_add(merge, ring_new(p.page, PAGES, d)), 0);
	for (int i = 0; i < N; i++)
		put_sample(&p, i == LATE ? 1 : 1000 + i, i, 0);
	assert_int_equal(merge_next(merge, out, MAX, UINT64_MAX, &horizon), N);
	for (int i = 0; i < N; i++) {
		assert_int_equal(!!(out[i].flags & EVENT_LATE), out[i].time < newest);
		late += out[i].time < newest;
		newest = out[i].time > newest ? out[i].time : newest;
	}
	assert_int_equal(late, 1);
	assert_int_equal(merge_delivered(merge), 1000 + N - 1);
	merge_free(merge);
	decoder_free(d);
	free(p.page);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_nearly_sorted_records),
		cmocka_unit_test(releases_taken_records),
		cmocka_unit_test(wraps),
		cmocka_unit_test(does_not_wrap),
		cmocka_unit_test(places_losses),
		cmocka_unit_test(survives_invalid_records),
		cmocka_unit_test(merge_is_a_sort),
		cmocka_unit_test(late_ones_are_marked),
		cmocka_unit_test(late_in_a_batch),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
