// SPDX-License-Identifier: GPL-2.0-only
#include "live/capture_window.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/perf_event.h>
#include "event.h"
#include "live/capture_ring.h"

enum {
	DISORDER = 10000000, /* ns by which a record may be older than the one before it */
	LOOK_PERIOD = 10000, /* ns between looks for running programs */
	HEADER = 40,	     /* bytes at the start of a record, with its time */
	RAW_SIZE = 40,	     /* offsets in a sample */
	RAW = 44
};

/* A copied record. */
struct record {
	uint64_t time;
	uint64_t end;	 /* position in the ring after it */
	uint64_t offset; /* in the copies */
};

/* The part of the window that is in one ring. */
struct part {
	const uint8_t *ring;
	uint64_t read;		/* position of the newest record of earlier windows; 0: none */
	struct record *records; /* from the newest to the oldest */
	uint32_t nr, max;	/* nr: that are not yet taken */
	uint8_t *copies;
	uint64_t bytes, max_bytes;
};

struct capture_window {
	struct part *parts;
	uint32_t nr_parts, size;
	uint32_t *heap; /* parts that have records; the one with the oldest is the first */
	uint32_t nr_heap;
};

struct capture_window *capture_window_new(const uint8_t *rings, uint32_t nr_cpus, uint32_t size)
{
	struct capture_window *w = calloc(1, sizeof(*w));
	size_t each = CAPTURE_DATA + (size_t)size + CAPTURE_MARGIN;

	if (!w)
		return NULL;
	w->nr_parts = nr_cpus;
	w->size = size;
	w->parts = calloc(nr_cpus, sizeof(*w->parts));
	w->heap = calloc(nr_cpus, sizeof(*w->heap));
	if (!w->parts || !w->heap) {
		capture_window_free(w);
		return NULL;
	}
	for (uint32_t i = 0; i < nr_cpus; i++)
		w->parts[i].ring = rings + i * each;
	return w;
}

void capture_window_free(struct capture_window *w)
{
	if (!w)
		return;
	for (uint32_t i = 0; w->parts && i < w->nr_parts; i++) {
		free(w->parts[i].records);
		free(w->parts[i].copies);
	}
	free(w->parts);
	free(w->heap);
	free(w);
}

static uint64_t get(const struct part *p, unsigned int at)
{
	return __atomic_load_n((const uint64_t *)(p->ring + at), __ATOMIC_ACQUIRE);
}

/* Returns the position of the newest record. It and all older ones are written completely: a
 * program counts itself as running before it reserves its record, and until it has written it. */
static uint64_t newest(const struct part *p)
{
	struct timespec period = {.tv_nsec = LOOK_PERIOD};

	for (;;) {
		uint64_t reserved = get(p, CAPTURE_RESERVED);

		if (!get(p, CAPTURE_NEST))
			return reserved;
		nanosleep(&period, NULL);
	}
}

/* Returns a larger array, or NULL without memory. */
static void *grown(void *array, uint64_t need, size_t each, uint64_t *max)
{
	while (*max < need)
		*max = *max ? *max * 2 : 4096;
	return realloc(array, *max * each);
}

static int copy(struct part *p, const uint8_t *rec, uint32_t size, struct record record)
{
	if (p->nr == p->max) {
		uint64_t max = p->max;
		void *records = grown(p->records, (uint64_t)p->nr + 1, sizeof(record), &max);

		if (!records)
			return -ENOMEM;
		p->records = records;
		p->max = max;
	}
	if (p->bytes + size > p->max_bytes) {
		void *copies = grown(p->copies, p->bytes + size, 1, &p->max_bytes);

		if (!copies)
			return -ENOMEM;
		p->copies = copies;
	}
	memcpy(p->copies + p->bytes, rec, size);
	record.offset = p->bytes;
	p->records[p->nr++] = record;
	p->bytes += size;
	return 0;
}

/* Drops the records that programs have overwritten meanwhile. end: where the last one ends that was
 * looked at. Returns whether there were any. */
static bool drop_overwritten(struct part *p, uint32_t size, uint64_t end)
{
	uint64_t head;

	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	head = get(p, CAPTURE_RESERVED);
	while (p->nr && p->records[p->nr - 1].end - head > size)
		p->nr--;
	return end - head > size;
}

/* Copies the records of a ring, and says in *whole_from from when on none is missing; 0: none is.
 * What it looks at may be overwritten at the same time, so it believes no size. */
static int read_part(struct part *p, uint32_t ring_size, uint64_t from, uint64_t until, bool again,
		     uint64_t *whole_from)
{
	uint64_t head = newest(p), last = again ? 0 : p->read, at = head;
	uint64_t oldest = until + 1, read = last;
	bool has_begun = false, has_all = false;
	int ret = 0;

	p->nr = p->bytes = 0;
	while (!ret) {
		const uint8_t *rec = p->ring + CAPTURE_DATA + (at & (ring_size - 1));
		uint64_t words[HEADER / 8], time;
		uint32_t size;
		bool is_sample;

		has_all = at == last;
		if (has_all)
			break;
		memcpy(words, rec, sizeof(words));
		size = words[0] >> 48;
		is_sample = (uint32_t)words[0] == PERF_RECORD_SAMPLE;
		if (size < HEADER || size % 8 || size > CAPTURE_MARGIN ||
		    at + size - head > ring_size)
			break;
		time = words[is_sample ? 3 : 4];
		if (!has_begun && time <= until) {
			has_begun = true;
			read = at;
		}
		at += size;
		oldest = time;
		if (time + DISORDER < from)
			break;
		if (has_begun && is_sample && time >= from)
			ret = copy(p, rec, size, (struct record){.time = time, .end = at});
	}
	p->read = read;
	if (drop_overwritten(p, ring_size, at)) {
		oldest = p->nr ? p->records[p->nr - 1].time : until + 1;
		has_all = false;
	}
	*whole_from = has_all || oldest <= from ? 0 : oldest;
	return ret;
}

static uint64_t next_time(const struct capture_window *w, uint32_t i)
{
	const struct part *p = &w->parts[w->heap[i]];

	return p->records[p->nr - 1].time;
}

/* Moves entry i of the heap down to its place. */
static void sink(struct capture_window *w, uint32_t i)
{
	for (;;) {
		uint32_t child = 2 * i + 1, part = w->heap[i];

		if (child + 1 < w->nr_heap && next_time(w, child + 1) < next_time(w, child))
			child++;
		if (child >= w->nr_heap || next_time(w, i) <= next_time(w, child))
			return;
		w->heap[i] = w->heap[child];
		w->heap[child] = part;
		i = child;
	}
}

int capture_window_read(struct capture_window *w, uint64_t from, uint64_t until, int again,
			struct window_info *info)
{
	*info = (struct window_info){0};
	w->nr_heap = 0;
	for (uint32_t i = 0; i < w->nr_parts; i++) {
		uint64_t whole_from;

		if (read_part(&w->parts[i], w->size, again ? from : 0, until, again, &whole_from))
			return -ENOMEM;
		if (whole_from > info->whole_from)
			info->whole_from = whole_from;
		info->lost += get(&w->parts[i], CAPTURE_LOST);
		if (w->parts[i].nr)
			w->heap[w->nr_heap++] = i;
	}
	for (uint32_t i = w->nr_heap / 2; i-- > 0;)
		sink(w, i);
	return 0;
}

int capture_window_next(struct capture_window *w, uint64_t base, struct event *events, int max)
{
	int n = 0;

	while (n < max && w->nr_heap) {
		struct part *p = &w->parts[w->heap[0]];
		const struct record *record = &p->records[--p->nr];
		const uint8_t *rec = p->copies + record->offset;
		const uint64_t *words = (const uint64_t *)rec;

		events[n++] = (struct event){
			.time = (double)(int64_t)(record->time - base),
			.raw = rec + RAW,
			.raw_size = *(const uint32_t *)(rec + RAW_SIZE),
			.pid = (int32_t)words[2],
			.tid = (int32_t)(words[2] >> 32),
			.cpu = (int32_t)words[4],
			.class = (uint16_t)words[1],
			.ring = w->heap[0],
			.period = 1,
		};
		if (!p->nr)
			w->heap[0] = w->heap[--w->nr_heap];
		sink(w, 0);
	}
	return n;
}
