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
#include <pthread.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "error.h"
#include "event.h"
#include "live/capture_ring.h"
#include "live/merge.h"
#include "live/ring.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "source.h"

enum {
	SIZE = 4 * 4096,
	EACH = CAPTURE_DATA + SIZE + CAPTURE_MARGIN,
	CPUS = 3,
	CLASS = EVENT_FIRST,
	FIELDS = 28
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
static struct world *make_world(const char *list, bool overwrite)
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
							    .overwrite = overwrite,
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

static struct world *new_world(const char *list)
{
	return make_world(list, false);
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

static void *record_at(struct world *w, int cpu, uint64_t position)
{
	return w->array + cpu * EACH + CAPTURE_DATA + position % SIZE;
}

static void *reserve(struct world *w, int cpu, uint64_t size)
{
	uint64_t at = *word(w, cpu, CAPTURE_RESERVED);

	*word(w, cpu, CAPTURE_RESERVED) += size;
	return record_at(w, cpu, at);
}

static void fill(struct sample *s, int cpu, uint64_t id, uint64_t time)
{
	*s = (struct sample){.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(*s)},
			     .id = id,
			     .pid = 1,
			     .tid = 2,
			     .time = time,
			     .cpu = cpu,
			     .raw_size = FIELDS};
	s->raw[0] = cpu + 1;
}

static void put(struct world *w, int cpu, uint64_t id, uint64_t time)
{
	fill(reserve(w, cpu, sizeof(struct sample)), cpu, id, time);
}

/* As the programs of an overwritten ring do. */
static void put_backward(struct world *w, int cpu, uint64_t time)
{
	uint64_t at = *word(w, cpu, CAPTURE_RESERVED) -= sizeof(struct sample);

	fill(record_at(w, cpu, at), cpu, 71, time);
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

/* What programs have written is known, whatever is read of it. */
static void accounts_for_what_was_written(void **state)
{
	struct source_account account;
	struct world *w = new_world("0-2");

	(void)state;
	capture_rings_enable(w->captures);
	put(w, 0, 71, 10);
	put(w, 2, 72, 20);
	put(w, 2, 71, 30);
	capture_rings_account(w->captures, true, &account);
	assert_int_equal(account.fired, 3 * sizeof(struct sample));
	assert_int_equal(account.lost, 0);
	assert_true(account.is_exact && account.is_sum);
	*word(w, 2, CAPTURE_LOST) = 4;
	capture_rings_account(w->captures, true, &account);
	assert_int_equal(account.lost, 4);
	assert_false(account.is_exact);
	free_world(w);

	w = make_world("0-2", true);
	capture_rings_enable(w->captures);
	put_backward(w, 1, 10);
	put_backward(w, 1, 20);
	capture_rings_account(w->captures, true, &account);
	assert_int_equal(account.fired, 2 * sizeof(struct sample));
	assert_true(account.is_exact);
	capture_rings_account(w->captures, false, &account);
	assert_false(account.is_exact);
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

/* Nothing is read before a dump, which has what is left since the one before. */
static void dumps_overwritten_rings(void **state)
{
	enum { FIT = SIZE / sizeof(struct sample) };
	struct world *w = make_world("0-2", true);
	struct slot slots[1024];
	uint64_t horizon, time = 1;

	(void)state;
	assert_true(SIZE % sizeof(struct sample) != 0);
	merge_hold(w->merge, false);
	for (uint64_t round = 1; round < 20; round++) {
		uint64_t n = round * 40, kept = n < FIT ? n : FIT;

		for (uint64_t i = 0; i < n; i++)
			put_backward(w, 1, time++);
		assert_int_equal(merge_next(w->merge, slots, 1024, UINT64_MAX, &horizon), 0);
		capture_rings_pause(w->captures, true);
		assert_int_not_equal(*word(w, 1, CAPTURE_PAUSED), 0);
		for (uint32_t i = 0; i < merge_nr_rings(w->merge); i++) {
			assert_true(ring_is_backward(merge_ring(w->merge, i)));
			assert_int_equal(ring_dump(merge_ring(w->merge, i), 0, UINT64_MAX), 0);
		}
		assert_int_equal(merge_next(w->merge, slots, 1024, UINT64_MAX, &horizon), kept);
		for (uint64_t i = 0; i < kept; i++) {
			const struct sample *s = slots[i].rec;

			assert_int_equal(s->time, time - kept + i);
			assert_int_equal(s->raw[0], 2);
		}
		merge_release(w->merge);
		capture_rings_pause(w->captures, false);
		assert_int_equal(*word(w, 1, CAPTURE_PAUSED), 0);
	}
	free_world(w);
}

/* A program that had begun when the ring was paused: ends when it sees that. */
static void *end_late(void *arg)
{
	struct world *w = arg;

	while (!__atomic_load_n(word(w, 2, CAPTURE_PAUSED), __ATOMIC_SEQ_CST))
		usleep(100);
	usleep(20000);
	put_backward(w, 2, 5);
	__atomic_store_n(word(w, 2, CAPTURE_NEST), 0, __ATOMIC_SEQ_CST);
	return NULL;
}

static void pausing_waits_for_programs(void **state)
{
	struct world *w = make_world("0-2", true);
	pthread_t program;

	(void)state;
	*word(w, 2, CAPTURE_NEST) = 1;
	assert_int_equal(pthread_create(&program, NULL, end_late, w), 0);
	capture_rings_pause(w->captures, true);
	assert_int_equal(*word(w, 2, CAPTURE_HEAD), -sizeof(struct sample));
	pthread_join(program, NULL);
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
		cmocka_unit_test(reads_all_cpus_in_order),
		cmocka_unit_test(goes_around),
		cmocka_unit_test(only_the_targets_cpus),
		cmocka_unit_test(publishes_at_the_end),
		cmocka_unit_test(counts_losses_once),
		cmocka_unit_test(accounts_for_what_was_written),
		cmocka_unit_test(answers_the_bell),
		cmocka_unit_test(dumps_overwritten_rings),
		cmocka_unit_test(pausing_waits_for_programs),
		cmocka_unit_test(says_what_it_cannot_map),
	};

	return cmocka_run_group_tests_name("capture_ring", tests, NULL, NULL);
}
