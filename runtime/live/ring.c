/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/ring.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/bpf.h>
#include "decode/decoder.h"
#include "os/clock.h"
#include "sorted_runs.h"

enum {
	WINDOW = 256,	 /* entries, a power of two */
	LOOKAHEAD = 16,	 /* records scanned before the oldest of them is delivered */
	PREFETCH = 8192, /* bytes ahead of the current record */
	MAX_RECORD = 1 << 16,
	DISORDER = 10000000 /* ns by which a record may be older than the one before it */
};

struct ring {
	const uint64_t *head_at; /* written by the kernel */
	uint64_t *tail_at;
	const uint8_t *data;
	uint64_t size;
	uint64_t head; /* snapshot */
	uint64_t pos;  /* scanned up to here */
	uint64_t released;
	uint64_t lost;	    /* sum of the scanned LOST records */
	uint64_t scan_time; /* time of the last scanned record, for records without a time */
	const struct decoder *decoder;
	uint8_t *wrapped; /* copy of the record that wraps around the end */
	int time_word;
	uint32_t number;
	bool is_bpf, is_frozen;
	bool is_linear; /* records do not wrap around the end */
	/* Written backward: pos, head and released are indexes into the dump, whose last entry is
	 * the oldest record. */
	bool is_backward;
	uint32_t *dump;	     /* offsets of records from dump_head */
	uint32_t max_dump;   /* capacity */
	uint64_t dump_head;  /* the kernel's head at the dump */
	uint64_t dump_end;   /* position of the newest dumped record */
	uint64_t whole_from; /* see ring_whole_from() */
	int32_t time_at;     /* offset in a BPF record; -1: none */
	uint32_t mark;	     /* flags of slots */
	/* Entries first..end-1 are unread. The numbers only grow: entry i is window[i % WINDOW]. */
	uint64_t first, end;
	uint64_t peeked;   /* value of first at the last lookahead_end() */
	uint64_t full;	   /* scanning stops at this entry */
	uint64_t in_order; /* from this entry on, entries are in the order of writing */
	struct slot window[WINDOW];
	uint64_t pos_of[WINDOW]; /* positions of the window's records in the ring */
};

static inline struct slot *entry(struct ring *r, uint64_t i)
{
	return &r->window[i % WINDOW];
}

struct ring *ring_new(void *base, uint32_t pages, const struct decoder *decoder)
{
	struct ring *r = calloc(1, sizeof(*r));
	struct perf_event_mmap_page *page = base;
	uint64_t page_size = page->data_offset ? page->data_offset : 4096;

	if (!r)
		return NULL;
	r->head_at = (const uint64_t *)&page->data_head;
	r->tail_at = (uint64_t *)&page->data_tail;
	r->data = (const uint8_t *)base + page_size;
	r->size = page->data_size ? page->data_size : pages * page_size;
	r->decoder = decoder;
	r->time_word = decoder_time_word(decoder);
	r->pos = r->released = page->data_tail;
	r->full = WINDOW;
	r->wrapped = malloc(MAX_RECORD);
	if (!r->wrapped) {
		free(r);
		return NULL;
	}
	return r;
}

static void set_backward(struct ring *r)
{
	r->is_backward = r->is_frozen = true;
	r->pos = r->released = r->head = 0;
}

struct ring *ring_new_linear(void *base, uint32_t pages, const struct decoder *decoder,
			     bool is_backward)
{
	struct ring *r = ring_new(base, pages, decoder);

	if (!r)
		return NULL;
	if (is_backward)
		set_backward(r);
	/* These words of the control page have another use. */
	r->data = (const uint8_t *)base + sysconf(_SC_PAGESIZE);
	r->size = (uint64_t)pages * sysconf(_SC_PAGESIZE);
	r->is_linear = true;
	return r;
}

struct ring *ring_new_backward(void *base, uint32_t pages, const struct decoder *decoder)
{
	struct ring *r = ring_new(base, pages, decoder);

	if (!r)
		return NULL;
	set_backward(r);
	return r;
}

bool ring_is_backward(const struct ring *r)
{
	return r->is_backward;
}

struct ring *ring_new_bpf(void *consumer, const void *producer, uint64_t size, int32_t time_at,
			  uint32_t mark)
{
	struct ring *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->tail_at = consumer;
	r->head_at = producer;
	r->data = (const uint8_t *)producer + sysconf(_SC_PAGESIZE);
	r->size = size;
	r->is_bpf = true;
	r->time_at = time_at;
	r->full = WINDOW;
	r->mark = mark;
	r->pos = r->released = *r->tail_at;
	return r;
}

void ring_freeze(struct ring *r)
{
	ring_snapshot(r);
	r->is_frozen = true;
}

void ring_free(struct ring *r)
{
	if (!r)
		return;
	free(r->wrapped);
	free(r->dump);
	free(r);
}

void ring_set_number(struct ring *r, uint32_t number)
{
	r->number = number;
	for (uint64_t i = r->first; i < r->end; i++)
		entry(r, i)->ring = number;
}

uint64_t ring_size(const struct ring *r)
{
	return r->size;
}

uint64_t ring_lost(const struct ring *r)
{
	return r->lost;
}

uint64_t ring_snapshot(struct ring *r)
{
	if (!r->is_frozen) {
		uint64_t head = __atomic_load_n(r->head_at, __ATOMIC_ACQUIRE);

		if (!r->is_linear || head > r->head)
			r->head = head;
	}
	if (r->is_bpf && r->time_at < 0)
		r->scan_time = clock_monotonic();
	return r->head - r->released;
}

void ring_release(struct ring *r)
{
	uint64_t tail = r->pos;

	for (uint64_t i = r->first; i < r->end; i++) {
		if (r->pos_of[i % WINDOW] < tail)
			tail = r->pos_of[i % WINDOW];
		if (i >= r->in_order)
			break;
	}
	if (tail == r->released)
		return;
	r->released = tail;
	if (!r->is_backward)
		__atomic_store_n(r->tail_at, tail, __ATOMIC_RELEASE);
}

/* Returns the record at pos in one piece. At most one record between tail and head wraps around the
 * end of the ring, so one buffer is enough. It is in use until the tail has passed the record. */
static const struct perf_event_header *record_at(struct ring *r, uint64_t pos)
{
	uint64_t at = pos & (r->size - 1), left = r->size - at;
	const struct perf_event_header *rec = (const void *)(r->data + at);

	if (rec->size <= left || r->is_linear)
		return rec;
	memcpy(r->wrapped, rec, left);
	memcpy(r->wrapped + left, r->data, rec->size - left);
	return (const void *)r->wrapped;
}

static uint64_t time_of(struct ring *r, const struct perf_event_header *rec)
{
	const uint64_t *words = (const uint64_t *)(rec + 1);
	uint64_t time;

	if (rec->type == PERF_RECORD_SAMPLE && r->time_word >= 0)
		return words[r->time_word];
	if (rec->type == PERF_RECORD_LOST)
		r->lost += words[1];
	/* A gap starts after the previous record. It gets that record's time, so that readers see
	 * it before any event inside the gap. */
	if (rec->type == PERF_RECORD_LOST && r->scan_time)
		return r->scan_time;
	return decoder_time(r->decoder, rec, &time) ? time : r->scan_time;
}

static int add_to_dump(struct ring *r, uint32_t at)
{
	if (r->head == r->max_dump) {
		uint32_t max = r->max_dump ? r->max_dump * 2 : 1024;
		uint32_t *dump = reallocarray(r->dump, max, sizeof(*dump));

		if (!dump)
			return -ENOMEM;
		r->dump = dump;
		r->max_dump = max;
	}
	r->dump[r->head++] = at;
	return 0;
}

/* Whether a record is newer than `until`, or has no time. */
static bool is_newer(struct ring *r, const struct perf_event_header *rec, uint64_t until)
{
	uint64_t time;

	return !decoder_time(r->decoder, rec, &time) || time > until;
}

int ring_dump(struct ring *r, uint64_t from, uint64_t until)
{
	uint64_t last = r->dump_end, head = __atomic_load_n(r->head_at, __ATOMIC_ACQUIRE);
	uint64_t at = head, oldest = UINT64_MAX;

	r->pos = r->released = r->head = r->whole_from = 0;
	r->dump_head = head;
	/* From the newest record to the one that is partly overwritten. */
	while (at != last) {
		const struct perf_event_header *rec =
			(const void *)(r->data + (at & (r->size - 1)));
		uint32_t size = rec->size;

		if (size < sizeof(*rec))
			break;
		if (at + size - head > r->size) {
			r->whole_from = oldest;
			break;
		}
		if (decoder_time(r->decoder, record_at(r, at), &oldest) && oldest + DISORDER < from)
			break;
		if (r->head || !is_newer(r, record_at(r, at), until)) {
			if (!r->head)
				r->dump_end = at;
			if (add_to_dump(r, at - head))
				return -ENOMEM;
		}
		at += size;
	}
	return 0;
}

uint64_t ring_whole_from(const struct ring *r)
{
	return r->whole_from;
}

static inline bool has_room(const struct ring *r)
{
	return r->end < r->full;
}

/* Inserts a record into the window by time. */
static inline void put(struct ring *r, uint64_t time, const void *rec)
{
	uint64_t i = r->end++;

	if (i > r->first && entry(r, i - 1)->time > time)
		r->in_order = r->end;
	for (; i > r->first && entry(r, i - 1)->time > time; i--) {
		*entry(r, i) = *entry(r, i - 1);
		r->pos_of[i % WINDOW] = r->pos_of[(i - 1) % WINDOW];
	}
	*entry(r, i) = (struct slot){.time = time, .rec = rec, .ring = r->number, .flags = r->mark};
	r->pos_of[i % WINDOW] = r->pos;
}

/* Scans up to the first record that is reserved but not yet written. */
static void scan_bpf(struct ring *r)
{
	while (has_room(r) && r->pos < r->head) {
		const uint8_t *rec = r->data + (r->pos & (r->size - 1));
		uint32_t length = __atomic_load_n((const uint32_t *)rec, __ATOMIC_ACQUIRE);
		uint32_t size = length & ~(BPF_RINGBUF_BUSY_BIT | BPF_RINGBUF_DISCARD_BIT);
		uint64_t time = r->scan_time;

		if (length & BPF_RINGBUF_BUSY_BIT) {
			r->head = r->pos;
			break;
		}
		if (r->time_at >= 0 && size >= r->time_at + sizeof(time))
			memcpy(&time, rec + BPF_RINGBUF_HDR_SZ + r->time_at, sizeof(time));
		r->scan_time = time;
		if (!(length & BPF_RINGBUF_DISCARD_BIT))
			put(r, time, rec);
		r->pos += (BPF_RINGBUF_HDR_SZ + size + 7) & ~7u;
	}
}

/* Scans the dump from its end. */
static void scan_backward(struct ring *r)
{
	for (; has_room(r) && r->pos < r->head; r->pos++) {
		const struct perf_event_header *rec =
			record_at(r, r->dump_head + r->dump[r->head - 1 - r->pos]);

		r->scan_time = time_of(r, rec);
		put(r, r->scan_time, rec);
	}
}

/* The fast path for nearly all records: samples in time order that do not wrap around. */
static void scan_samples(struct ring *r)
{
	const uint64_t head = r->head, mask = r->size - 1;
	const uint8_t *data = r->data;
	const unsigned int time_word = r->time_word;
	uint64_t i = r->end, full = r->full;
	uint64_t pos = r->pos, last = i > r->first ? entry(r, i - 1)->time : 0;
	struct slot slot = {.ring = r->number, .flags = r->mark};

	for (; i < full && pos < head; i++) {
		const struct perf_event_header *rec = (const void *)(data + (pos & mask));
		uint32_t size = rec->size;

		if (rec->type != PERF_RECORD_SAMPLE || size < sizeof(*rec) + 8 * (time_word + 1) ||
		    (pos & mask) + size > mask + 1)
			break;
		slot.time = ((const uint64_t *)(rec + 1))[time_word];
		if (slot.time < last)
			break;
		/* The cache lines come from another CPU's cache. Those after the head stay with the
		 * CPU that is about to write them. */
		if (head - pos > PREFETCH) {
			__builtin_prefetch(data + ((pos + PREFETCH) & mask));
			__builtin_prefetch(data + ((pos + PREFETCH + 64) & mask));
		}
		slot.rec = rec;
		*entry(r, i) = slot;
		r->pos_of[i % WINDOW] = pos;
		last = slot.time;
		pos += size;
	}
	if (pos != r->pos)
		r->scan_time = last;
	r->pos = pos;
	r->end = i;
}

static void scan_perf(struct ring *r)
{
	while (has_room(r) && r->pos < r->head) {
		const struct perf_event_header *rec;

		if (r->time_word >= 0)
			scan_samples(r);
		if (!has_room(r) || r->pos >= r->head)
			break;
		rec = record_at(r, r->pos);
		if (rec->size < sizeof(*rec)) { /* corrupt: the next record cannot be found */
			r->pos = r->head;
			break;
		}
		r->scan_time = time_of(r, rec);
		put(r, r->scan_time, rec);
		r->pos += rec->size;
	}
}

/* Returns the entry up to which to scan. Scanning much further ahead would evict records from the
 * cache before they are decoded. */
static uint64_t lookahead_end(struct ring *r)
{
	uint64_t ahead = 2 * (r->first - r->peeked) + 2 * LOOKAHEAD;

	r->peeked = r->first;
	return r->first + (ahead < WINDOW ? ahead : WINDOW);
}

uint64_t ring_peek(struct ring *r)
{
	if (r->pos < r->head && r->first != r->peeked)
		r->full = lookahead_end(r);
	if (r->pos < r->head && has_room(r)) {
		if (r->is_bpf)
			scan_bpf(r);
		else if (r->is_backward)
			scan_backward(r);
		else
			scan_perf(r);
	}
	return r->first < r->end ? entry(r, r->first)->time : UINT64_MAX;
}

uint64_t ring_newest(const struct ring *r)
{
	return r->window[(r->end - 1) % WINDOW].time;
}

uint64_t ring_sure(const struct ring *r)
{
	if (r->pos >= r->head || r->end - r->first < LOOKAHEAD)
		return UINT64_MAX;
	return r->window[(r->end - LOOKAHEAD) % WINDOW].time;
}

int ring_count(const struct ring *r, uint64_t limit, int max)
{
	int at = r->first % WINDOW, part = WINDOW - at, n = r->end - r->first, found;

	if (n > max)
		n = max;
	found = sorted_runs_count(r->window + at, n < part ? n : part, limit);
	return found < part ? found : found + sorted_runs_count(r->window, n - part, limit);
}

void ring_move(struct ring *r, struct slot *out, int n)
{
	unsigned int at = r->first % WINDOW, part = WINDOW - at;

	if (part > (unsigned int)n)
		part = n;
	memcpy(out, r->window + at, part * sizeof(*out));
	memcpy(out + part, r->window, (n - part) * sizeof(*out));
	r->first += n;
}
