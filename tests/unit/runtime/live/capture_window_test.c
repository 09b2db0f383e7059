/* SPDX-License-Identifier: GPL-2.0-only */
/* Windows of time in rings in plain memory, written to as the programs would, also meanwhile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <linux/perf_event.h>
#include "event.h"
#include "live/capture_ring.h"
#include "live/capture_window.h"

enum {
	SIZE = 4 * 4096,
	EACH = CAPTURE_DATA + SIZE + CAPTURE_MARGIN,
	CPUS = 2,
	CLASS = EVENT_FIRST + 3,
	FIELDS = 60,
	WHOLE = SIZE / 104, /* samples that a ring holds */
	STEP = 100000	    /* ns between events; those of a hundred are more than any disorder */
};

/* A sample as capture.lua writes it. */
struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time, cpu;
	uint32_t raw_size;
	uint32_t raw[FIELDS / 4];
};

_Static_assert(sizeof(struct sample) == 104, "the size of a record");

static uint64_t *word(uint8_t *rings, int cpu, unsigned int at)
{
	return (uint64_t *)(rings + cpu * EACH + at);
}

/* Writes event number n, at n * STEP. */
static void write_event(uint8_t *rings, int cpu, uint32_t n)
{
	struct sample s = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(s)},
		.id = CLASS,
		.pid = 5,
		.tid = 6,
		.time = (uint64_t)n * STEP,
		.cpu = cpu,
		.raw_size = FIELDS,
	};
	uint64_t at;

	for (int i = 0; i < FIELDS / 4; i++)
		s.raw[i] = n;
	__atomic_fetch_add(word(rings, cpu, CAPTURE_NEST), 1, __ATOMIC_SEQ_CST);
	at = __atomic_sub_fetch(word(rings, cpu, CAPTURE_RESERVED), sizeof(s), __ATOMIC_SEQ_CST);
	memcpy(rings + cpu * EACH + CAPTURE_DATA + (at & (SIZE - 1)), &s, sizeof(s));
	__atomic_store_n(word(rings, cpu, CAPTURE_NEST), 0, __ATOMIC_RELEASE);
}

static uint8_t *rings_new(void)
{
	uint8_t *rings = aligned_alloc(4096, CPUS * EACH);

	assert_non_null(rings);
	return memset(rings, 0, CPUS * EACH);
}

/* Whether an event is number n, with all of its fields. */
static bool is_event(const struct event *ev, uint32_t n)
{
	const uint32_t *raw = (const uint32_t *)ev->raw;

	if (ev->time != (double)n * STEP || ev->class != CLASS || ev->pid != 5 || ev->tid != 6 ||
	    ev->raw_size != FIELDS || ev->chain || ev->period != 1)
		return false;
	for (int i = 0; i < FIELDS / 4; i++)
		if (raw[i] != n)
			return false;
	return true;
}

/* Expects that the window has the events number from .. to, once each and in order. */
static void expect(struct capture_window *w, uint32_t from, uint32_t to)
{
	struct event events[7];
	uint32_t next = from;
	int n;

	while ((n = capture_window_next(w, 0, events, 7)))
		for (int i = 0; i < n; i++)
			assert_true(is_event(&events[i], next++));
	assert_int_equal(next, to + 1);
}

static struct window_info read_window(struct capture_window *w, uint32_t from, uint32_t to,
				      int again)
{
	struct window_info info;

	assert_int_equal(
		capture_window_read(w, (uint64_t)from * STEP, (uint64_t)to * STEP, again, &info),
		0);
	return info;
}

static void copies_the_time(void **state)
{
	uint8_t *rings = rings_new();
	struct capture_window *w = capture_window_new(rings, CPUS, SIZE);

	(void)state;
	assert_int_equal(read_window(w, 0, 10, 1).whole_from, 0);
	expect(w, 1, 0);
	for (uint32_t n = 1; n <= 40; n++)
		write_event(rings, n * n % 3 % CPUS, n);
	assert_int_equal(read_window(w, 10, 20, 1).whole_from, 0);
	expect(w, 10, 20);
	read_window(w, 12, 30, 0); /* what is new */
	expect(w, 21, 30);
	read_window(w, 12, 30, 0);
	expect(w, 1, 0);
	read_window(w, 5, 15, 1);
	expect(w, 5, 15);
	read_window(w, 5, 100, 0);
	expect(w, 16, 40);
	*word(rings, 0, CAPTURE_LOST) = 3;
	*word(rings, 1, CAPTURE_LOST) = 4;
	assert_int_equal(read_window(w, 40, 50, 1).lost, 7);
	capture_window_free(w);
	free(rings);
}

static void says_what_is_overwritten(void **state)
{
	uint8_t *rings = rings_new();
	struct capture_window *w = capture_window_new(rings, CPUS, SIZE);
	uint32_t n = 1;
	uint64_t whole_from;

	(void)state;
	while (n <= 1000) /* records cross the end of the ring at many places */
		write_event(rings, 0, n++);
	assert_int_equal(read_window(w, 1000 - WHOLE + 1, 1000, 1).whole_from, 0);
	expect(w, 1000 - WHOLE + 1, 1000);
	whole_from = read_window(w, 1000 - WHOLE, 1000, 1).whole_from;
	assert_int_equal(whole_from, (1000 - WHOLE + 1) * (uint64_t)STEP);
	expect(w, 1000 - WHOLE + 1, 1000);
	while (n <= 1100)
		write_event(rings, 0, n++);
	assert_int_equal(read_window(w, 0, 1100, 0).whole_from,
			 0); /* nothing since 1000 is missing */
	expect(w, 1001, 1100);
	while (n <= 1101 + WHOLE)
		write_event(rings, 0, n++);
	whole_from = read_window(w, 0, n, 0).whole_from;
	assert_int_equal(whole_from, 1102 * (uint64_t)STEP);
	expect(w, 1102, n - 1);
	capture_window_free(w);
	free(rings);
}

struct writer {
	uint8_t *rings;
	uint32_t n; /* events that have been written */
	bool stop;
};

static void *write_events(void *arg)
{
	struct timespec rest = {.tv_nsec = 1000};
	struct writer *writer = arg;

	while (!__atomic_load_n(&writer->stop, __ATOMIC_RELAXED)) {
		write_event(writer->rings, writer->n % CPUS, writer->n + 1);
		__atomic_store_n(&writer->n, writer->n + 1, __ATOMIC_RELEASE);
		if (writer->n % 64 == 0) /* the rings hold only some microseconds of this */
			nanosleep(&rest, NULL);
	}
	return NULL;
}

/* Nothing that was written before a window is read is missing, half written or overwritten, except
 * for what it says. */
static void reads_while_programs_write(void **state)
{
	struct writer writer = {.rings = rings_new()};
	struct capture_window *w = capture_window_new(writer.rings, CPUS, SIZE);
	int nr_whole = 0, nr_cut = 0;
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, write_events, &writer), 0);
	for (int i = 0; i < 2000 || !nr_whole || !nr_cut; i++) {
		uint32_t last = __atomic_load_n(&writer.n, __ATOMIC_ACQUIRE), first, next;
		uint64_t from, whole_from;

		first = last > 50u + i % 300 ? last - 50 - i % 300 : 1;
		if (!last) {
			sched_yield();
			continue;
		}
		from = (uint64_t)first * STEP;
		whole_from = read_window(w, first, last, 1).whole_from;
		nr_whole += !whole_from;
		nr_cut += whole_from > 0;
		if (!whole_from) {
			expect(w, first, last);
			continue;
		}
		assert_true(whole_from > from);
		next = (whole_from + STEP - 1) / STEP;
		/* One of the rings may reach further back. */
		for (struct event ev; capture_window_next(w, 0, &ev, 1) == 1;) {
			uint32_t n = ev.time / STEP;

			assert_true(is_event(&ev, n) && n >= first && n <= last);
			if (n >= next)
				assert_int_equal(n, next++);
		}
		if (whole_from <= (uint64_t)last * STEP) /* else all are overwritten */
			assert_int_equal(next, last + 1);
	}
	__atomic_store_n(&writer.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	capture_window_free(w);
	free(writer.rings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_the_time),
		cmocka_unit_test(says_what_is_overwritten),
		cmocka_unit_test(reads_while_programs_write),
	};

	return cmocka_run_group_tests_name("capture_window", tests, NULL, NULL);
}
