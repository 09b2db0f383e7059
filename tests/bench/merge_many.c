/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * merge_many RINGS: the cost of merging the records of many CPUs by time and of decoding them.
 * Fills rings in plain memory with samples of a random CPU every 50 ns, then reads them as a
 * session does. Prints the least CPU time per record (ns) of a few runs.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"
#include "live/merge.h"
#include "live/ring.h"

enum { PAGE = 4096, ALL = 64 << 20, BATCH = BATCH_MAX, EVENTS = 2, TIMES = 5 };

/* With the perf_event_attr below, and a payload of the size of sched_switch's. */
struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time, cpu, period;
	uint32_t size;
	uint8_t payload[68];
};

static uint64_t cpu_time(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static struct decoder *make_decoder(void)
{
	struct decoder *d = decoder_new();

	for (int i = 0; i < EVENTS; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_TRACEPOINT,
			.config = i + 1,
			.sample_period = 1,
			.sample_id_all = 1,
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
				       PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_RAW,
		};
		int index = decoder_add_attr(d, &attr, NULL);

		decoder_add_class(d, index, EVENT_FIRST + i, 16);
		decoder_add_id(d, 1000 + i, index);
	}
	return decoder_check(d, NULL) ? NULL : d;
}

/* Returns false if there is no space. */
static bool write_sample(struct perf_event_mmap_page *page, int ring, uint64_t time)
{
	struct sample s = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(s)},
		.id = 1000 + time / 50 % EVENTS,
		.pid = ring,
		.tid = ring,
		.time = time,
		.cpu = ring,
		.period = 1,
		.size = sizeof(s.payload),
	};
	uint64_t at = page->data_head % page->data_size, part = page->data_size - at;
	char *data = (char *)page + PAGE;

	if (page->data_head - page->data_tail + sizeof(s) > page->data_size)
		return false;
	if (part > sizeof(s))
		part = sizeof(s);
	memcpy(data + at, &s, part);
	memcpy(data, (const char *)&s + part, sizeof(s) - part);
	page->data_head += sizeof(s);
	return true;
}

/* Reads everything; returns the number of records, or 0 if they were out of order. */
static uint64_t read_all(struct merge *merge, const struct decoder *d)
{
	static struct slot slots[BATCH];
	static struct event events[BATCH];
	uint64_t horizon, all = 0;
	double last = 0;
	int n;

	while ((n = merge_next(merge, slots, BATCH, UINT64_MAX, &horizon)) > 0) {
		for (int done = 0, got; done < n; done += got) {
			got = decoder_decode_run(d, slots + done, n - done, 0, 0, events);
			if (!got)
				got = decoder_decode(d, slots[done].rec, events, BATCH);
			if (got <= 0)
				return 0;
		}
		for (int i = 0; i < n; i++) {
			if (slots[i].time < last)
				return 0;
			last = slots[i].time;
		}
		merge_release(merge);
		all += n;
	}
	return all;
}

int main(int argc, char **argv)
{
	int nr_rings = argc > 1 ? atoi(argv[1]) : 64;
	struct perf_event_mmap_page **pages = calloc(nr_rings, sizeof(*pages));
	struct decoder *d = make_decoder();
	struct merge *merge = merge_new(false);
	uint64_t size = PAGE, time = 0;
	double best = 0;

	while (size * 2 * nr_rings <= ALL)
		size *= 2;
	for (int i = 0; i < nr_rings; i++) {
		pages[i] = aligned_alloc(PAGE, PAGE + size);
		memset(pages[i], 0, PAGE + size);
		pages[i]->data_offset = PAGE;
		pages[i]->data_size = size;
		merge_add(merge, ring_new(pages[i], size / PAGE, d));
	}
	merge_stop(merge);
	for (int i = 0; i < TIMES; i++) {
		uint64_t written = 0, all = size / sizeof(struct sample) * nr_rings, begin;

		for (; written + written / 10 < all; time += 50) {
			int ring = rand() % nr_rings;

			written += write_sample(pages[ring], ring, time);
		}
		begin = cpu_time();
		if (read_all(merge, d) != written) {
			fprintf(stderr, "merge_many: not all records, or not in order\n");
			return 1;
		}
		double each = (double)(cpu_time() - begin) / written;

		if (i == 0 || each < best)
			best = each;
	}
	printf("%.1f\n", best);
	return 0;
}
