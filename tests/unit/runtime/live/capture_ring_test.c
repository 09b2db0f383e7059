/* SPDX-License-Identifier: GPL-2.0-only */
/* Rings of captured events in plain memory, written to as the programs would: which CPUs have them,
 * which events are enabled, what is read and what counts as lost. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "live/capture_ring.h"
#include "live/merge.h"
#include "os/clock.h"
#include "os/cpus.h"

enum {
	SIZE = 4 * 4096,
	EACH = CAPTURE_DATA + SIZE + CAPTURE_MARGIN,
	CPUS = 3,
	CLASS = EVENT_FIRST,
	FIELDS = 20
};

/* A sample as capture.lua writes it. */
struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time, cpu;
	uint32_t raw_size;
	uint8_t raw[FIELDS];
};

struct loss {
	struct perf_event_header header;
	uint64_t id, lost;
	uint32_t pid, tid;
	uint64_t time, cpu, identifier;
};

struct world {
	int rings, bell;
	uint8_t *array;
	uint64_t *produced, *consumed;
	struct event_request requests[3];
	struct decoder *decoder;
	struct capture_rings *captures;
	struct merge *merge;
};

static uint64_t *word(struct world *w, int cpu, unsigned int at)
{
	return (uint64_t *)(w->array + cpu * EACH + at);
}

static void *map(int fd, size_t size)
{
	void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/* Two captured events and another one; rings on the CPUs of the list. */
static struct world *new_world(const char *list)
{
	struct world *w = calloc(1, sizeof(*w));
	struct cpus cpus;

	w->rings = memfd_create("rings", 0);
	w->bell = memfd_create("bell", 0);
	assert_int_equal(ftruncate(w->rings, CPUS * EACH), 0);
	assert_int_equal(ftruncate(w->bell, 2 * 4096), 0);
	w->array = map(w->rings, CPUS * EACH);
	w->consumed = map(w->bell, 2 * 4096);
	w->produced = w->consumed + 4096 / sizeof(uint64_t);
	for (int i = 0; i < 3; i++)
		w->requests[i] = (struct event_request){
			.attr.type = PERF_TYPE_TRACEPOINT, .class = CLASS + i, .payload = FIELDS};
	for (int i = 1; i < 3; i++)
		w->requests[i].captured = (struct captured){.rings = w->rings,
							    .bell = w->bell,
							    .program = -1,
							    .nr_cpus = CPUS,
							    .size = SIZE,
							    .bit = i + 4,
							    .id = 70 + i};
	w->decoder = decoder_new();
	w->merge = merge_new(true);
	assert_int_equal(cpus_parse(&cpus, list, NULL), 0);
	assert_int_equal(capture_rings_open(w->requests, 3, &cpus, w->decoder, &w->captures, NULL),
			 0);
	assert_int_equal(decoder_check(w->decoder, NULL), 0);
	for (uint32_t i = 0; i < capture_rings_nr(w->captures); i++)
		assert_int_equal(capture_rings_add(w->captures, i, w->merge, w->decoder), 0);
	return w;
}

static void free_world(struct world *w)
{
	merge_free(w->merge);
	capture_rings_close(w->captures);
	decoder_free(w->decoder);
	munmap(w->array, CPUS * EACH);
	munmap(w->consumed, 2 * 4096);
	close(w->rings);
	close(w->bell);
	free(w);
}

static void *reserve(struct world *w, int cpu, uint64_t size)
{
	uint64_t at = *word(w, cpu, CAPTURE_RESERVED);

	*word(w, cpu, CAPTURE_RESERVED) += size;
	return w->array + cpu * EACH + CAPTURE_DATA + at % SIZE;
}

static void put(struct world *w, int cpu, uint64_t id, uint64_t time)
{
	struct sample *s = reserve(w, cpu, sizeof(*s));

	*s = (struct sample){.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(*s)},
			     .id = id,
			     .pid = 1,
			     .tid = 2,
			     .time = time,
			     .cpu = cpu,
			     .raw_size = FIELDS};
	s->raw[0] = cpu + 1;
}

static void put_loss(struct world *w, int cpu, uint64_t lost, uint64_t time)
{
	struct loss *l = reserve(w, cpu, sizeof(*l));

	*l = (struct loss){.header = {.type = PERF_RECORD_LOST, .size = sizeof(*l)},
			   .id = 71,
			   .lost = lost,
			   .time = time,
			   .cpu = cpu,
			   .identifier = 71};
	*word(w, cpu, CAPTURE_TOLD) += lost;
}

static void publish(struct world *w, int cpu)
{
	*word(w, cpu, CAPTURE_HEAD) = *word(w, cpu, CAPTURE_RESERVED);
}

static void reads_all_cpus_in_order(void **state)
{
	struct world *w = new_world("0-2");
	uint64_t horizon, now = clock_monotonic() - 1000000000;
	struct slot slots[8];
	struct event ev;

	(void)state;
	assert_int_equal(capture_rings_nr(w->captures), 3);
	put(w, 2, 71, now + 1);
	put(w, 0, 72, now + 2);
	put(w, 2, 72, now + 3);
	put(w, 1, 71, now + 4);
	for (int cpu = 0; cpu < CPUS; cpu++)
		publish(w, cpu);
	assert_int_equal(merge_next(w->merge, slots, 8, UINT64_MAX, &horizon), 4);
	for (int i = 0; i < 4; i++) {
		static const int cpus[] = {2, 0, 2, 1}, classes[] = {1, 2, 2, 1};

		assert_int_equal(slots[i].time, now + 1 + i);
		assert_int_equal(decoder_decode(w->decoder, slots[i].rec, &ev, 1), 1);
		assert_int_equal(ev.class, CLASS + classes[i]);
		assert_int_equal(ev.cpu, cpus[i]);
		assert_int_equal(ev.raw[0], cpus[i] + 1);
		assert_int_equal(ev.pid, 1);
		assert_int_equal(ev.tid, 2);
	}
	merge_release(w->merge);
	assert_int_equal(*word(w, 2, CAPTURE_TAIL), 2 * sizeof(struct sample));
	free_world(w);
}

/* Times around the ring: what programs wait for is the tail. */
static void goes_around(void **state)
{
	struct world *w = new_world("0-2");
	uint64_t time = clock_monotonic() - 1000000000, horizon, seen = 0;
	struct slot slots[64];

	(void)state;
	*word(w, 1, CAPTURE_WAKE) = 5000; /* not the size of the ring */
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 50; i++)
			put(w, 1, 71, time++);
		publish(w, 1);
		for (int n; (n = merge_next(w->merge, slots, 64, UINT64_MAX, &horizon)) > 0;) {
			for (int i = 0; i < n; i++, seen++)
				assert_int_equal(((const struct sample *)slots[i].rec)->cpu, 1);
			merge_release(w->merge);
		}
		assert_int_equal(*word(w, 1, CAPTURE_TAIL), *word(w, 1, CAPTURE_HEAD));
	}
	assert_int_equal(seen, 200 * 50);
	free_world(w);
}

static void only_the_targets_cpus(void **state)
{
	struct world *w = new_world("1,7");

	(void)state;
	assert_int_equal(capture_rings_nr(w->captures), 1);
	capture_rings_enable(w->captures);
	assert_int_equal(*word(w, 0, CAPTURE_ENABLED), 0);
	assert_int_equal(*word(w, 1, CAPTURE_ENABLED), 1 << 5 | 1 << 6);
	assert_int_equal(*word(w, 2, CAPTURE_ENABLED), 0);
	capture_rings_stop_class(w->captures, CLASS + 1);
	assert_int_equal(*word(w, 1, CAPTURE_ENABLED), 1 << 6);
	capture_rings_stop_class(w->captures, CLASS); /* not captured */
	assert_int_equal(*word(w, 1, CAPTURE_ENABLED), 1 << 6);
	capture_rings_stop(w->captures);
	assert_int_equal(*word(w, 1, CAPTURE_ENABLED), 0);
	free_world(w);
}

/* What an interrupt wrote after the head was set is read after the end, but not what a program has
 * not finished. */
static void publishes_at_the_end(void **state)
{
	struct world *w = new_world("0-2");

	(void)state;
	capture_rings_enable(w->captures);
	put(w, 0, 71, 10);
	put(w, 1, 71, 20);
	*word(w, 1, CAPTURE_NEST) = 1;
	capture_rings_stop(w->captures);
	assert_int_equal(*word(w, 0, CAPTURE_HEAD), sizeof(struct sample));
	assert_int_equal(*word(w, 1, CAPTURE_HEAD), 0);
	free_world(w);
}

/* A loss is told by the record at its place, and what no record tells at the end. */
static void counts_losses_once(void **state)
{
	struct world *w = new_world("0-2");
	uint64_t horizon, now = clock_monotonic() - 1000000000;
	struct slot slots[8];
	struct event ev;

	(void)state;
	capture_rings_enable(w->captures);
	put(w, 0, 71, now);
	*word(w, 0, CAPTURE_LOST) = 5;
	put_loss(w, 0, 5, now + 10);
	put(w, 0, 71, now + 10);
	*word(w, 0, CAPTURE_LOST) = 7;
	*word(w, 2, CAPTURE_LOST) = 3;
	publish(w, 0);
	assert_int_equal(capture_rings_unreported(w->captures), 10);
	assert_int_equal(merge_next(w->merge, slots, 8, UINT64_MAX, &horizon), 3);
	assert_int_equal(slots[1].time, now); /* where the gap begins */
	assert_int_equal(decoder_decode(w->decoder, slots[1].rec, &ev, 1), 1);
	assert_int_equal(ev.class, EVENT_LOST);
	assert_int_equal(ev.period, 5);
	assert_int_equal(ev.cpu, 0);
	assert_int_equal(capture_rings_unreported(w->captures), 5);
	free_world(w);
}

static void answers_the_bell(void **state)
{
	struct world *w = new_world("0-2");

	(void)state;
	assert_int_equal(capture_rings_fd(w->captures), w->bell);
	*w->produced = 48;
	capture_rings_answer(w->captures);
	assert_int_equal(*w->consumed, 48);
	free_world(w);
}

static void says_what_it_cannot_map(void **state)
{
	struct event_request request = {.captured = {.rings = -1, .nr_cpus = 1, .size = SIZE}};
	struct capture_rings *captures;
	struct decoder *d = decoder_new();
	struct error err = {0};
	struct cpus cpus;

	(void)state;
	cpus_parse(&cpus, "0", NULL);
	assert_true(capture_rings_open(&request, 1, &cpus, d, &captures, &err) < 0);
	assert_null(captures);
	assert_non_null(strstr(err.text, "cannot map the rings of captured events"));
	request.captured.rings = 0; /* an event of perf */
	assert_int_equal(capture_rings_open(&request, 1, &cpus, d, &captures, &err), 0);
	assert_null(captures);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_all_cpus_in_order), cmocka_unit_test(goes_around),
		cmocka_unit_test(only_the_targets_cpus),   cmocka_unit_test(publishes_at_the_end),
		cmocka_unit_test(counts_losses_once),	   cmocka_unit_test(answers_the_bell),
		cmocka_unit_test(says_what_it_cannot_map),
	};

	return cmocka_run_group_tests_name("capture_ring", tests, NULL, NULL);
}
