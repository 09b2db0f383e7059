/* SPDX-License-Identifier: GPL-2.0-only */
/* The live source as the session drives it, on threads of this program that cause page faults. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "decode/decoder.h"
#include "error.h"
#include "live/count_sums.h"
#include "live/live.h"
#include "tests/unit/runtime/live/faults.h"

enum { MAX = 64, SECOND = 1000000000 };

/* Threads that wait for permission to cause their faults, then end. */
struct worker {
	pthread_t thread;
	int32_t tid;
	int faults;
	pthread_barrier_t *begin;
};

static void *work(void *arg)
{
	struct worker *w = arg;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_RELEASE);
	pthread_barrier_wait(w->begin);
	cause_faults(w->faults);
	return NULL;
}

struct run {
	struct worker workers[2];
	int32_t tids[2];
	int n;
	pthread_barrier_t begin;
	struct source *src;
	struct error err;
	/* The records read: */
	int samples, caused, late, exits;
	uint64_t lost, last_time;
};

static void check(struct run *r, int ret)
{
	if (ret)
		fail_msg("%d: %s", ret, r->err.text);
}

/* A started source of these events, attached to n threads that are about to cause faults. */
static void begin(struct run *r, int n, int faults_each, const struct event_request *requests,
		  int nr_requests, uint32_t pages, bool overwrite)
{
	struct source_target target = {.pages = pages,
				       .watermark = 50,
				       .tids = r->tids,
				       .nr_tids = n,
				       .overwrite = overwrite};

	needs_perf(-1);
	r->n = n;
	pthread_barrier_init(&r->begin, NULL, n + 1);
	for (int i = 0; i < n; i++) {
		struct worker *w = &r->workers[i];

		*w = (struct worker){.faults = faults_each, .begin = &r->begin};
		assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
		while (!__atomic_load_n(&w->tid, __ATOMIC_ACQUIRE))
			usleep(100);
		r->tids[i] = w->tid;
	}
	r->src = live_new(&r->err);
	assert_non_null(r->src);
	for (int i = 0; i < nr_requests; i++)
		check(r, r->src->ops->add_event(r->src, &requests[i], &r->err));
	check(r, r->src->ops->open(r->src, &target, &r->err));
	check(r, r->src->ops->start(r->src, &r->err));
}

static void let_them_work(struct run *r)
{
	pthread_barrier_wait(&r->begin);
}

static void join(struct run *r)
{
	for (int i = 0; i < r->n; i++)
		pthread_join(r->workers[i].thread, NULL);
	pthread_barrier_destroy(&r->begin);
}

static void take(struct run *r, const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;
	struct event ev;

	if (rec->type == PERF_RECORD_LOST) /* its time is the start of the gap */
		r->lost += ((const uint64_t *)rec)[2];
	else if (slot->flags & EVENT_LATE)
		r->late++;
	else
		assert_true(slot->time >= r->last_time);
	r->last_time = slot->time > r->last_time ? slot->time : r->last_time;
	r->exits += rec->type == PERF_RECORD_EXIT;
	if (rec->type != PERF_RECORD_SAMPLE)
		return;
	assert_int_equal(decoder_decode(r->src->decoder, rec, &ev, 1), 1);
	assert_int_equal(ev.class, FAULTS);
	assert_true(ev.tid == r->tids[0] || ev.tid == r->tids[1]);
	r->samples++;
	r->caused += was_caused(r->src->decoder, &ev);
}

/* Reads up to this time, until the source has no more. */
static int drain(struct run *r, uint64_t until)
{
	struct slot slots[MAX];
	int n;

	while ((n = r->src->ops->next(r->src, slots, MAX, until, &r->err)) > 0)
		for (int i = 0; i < n; i++)
			take(r, &slots[i]);
	return n;
}

/* Lets the threads work, reads all, and frees the source. */
static void finish(struct run *r)
{
	int ret = 0;

	let_them_work(r);
	while (!(ret = r->src->ops->wait(r->src, SECOND / 10)))
		assert_int_equal(drain(r, UINT64_MAX), 0);
	assert_int_equal(ret, -ESRCH); /* they have ended */
	r->src->ops->stop(r->src);
	while ((ret = drain(r, UINT64_MAX)) == 0)
		;
	assert_int_equal(ret, -ENODATA);
	assert_int_equal(drain(r, UINT64_MAX), -ENODATA);
	join(r);
}

static void each_fault_is_a_sample_in_time_order(void **state)
{
	struct run r = {0};

	(void)state;
	begin(&r, 2, 500, &faults, 1, 64, false);
	assert_int_equal(drain(&r, UINT64_MAX), 0);
	assert_int_equal(r.samples, 0);
	assert_true(r.src->start <= r.src->ops->now(r.src));
	finish(&r);
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.late, 0);
	assert_int_equal(r.caused, 1000);
	assert_int_equal(r.exits, 2);
	r.src->ops->free(r.src);
}

/* Rings of one page: each fault is in a ring once, or lost once. */
static void losses_and_samples_add_up_to_the_count(void **state)
{
	struct event_request list[] = {faults, faults};
	struct counts counts;
	struct run r = {0};
	uint64_t counted;

	(void)state;
	list[1].counted = 1;
	list[1].class = FAULTS + 1;
	begin(&r, 2, 3000, list, 2, 1, false);
	finish(&r);
	assert_true(r.lost > 0);
	r.src->ops->read_counts(r.src, &counts);
	assert_int_equal(counts.nr_rows, 2);
	assert_int_equal(counts.nr_events, 1);
	assert_true(counts.ids[0] == r.tids[0] || counts.ids[0] == r.tids[1]);
	assert_true(counts.values[0].value >= 3000 && counts.values[1].value >= 3000);
	assert_true(counts.values[0].share == 1);
	counted = counts.values[0].value + counts.values[1].value;
	/* The records of their exits may be lost, too. */
	assert_in_range(r.samples + r.lost, counted, counted + 2);
	r.src->ops->read_counts(r.src, &counts);
	assert_true(counts.values[0].value == 0 && counts.values[1].value == 0);
	r.src->ops->free(r.src);
}

static void the_oldest_records_are_overwritten(void **state)
{
	struct run r = {0};
	int ret;

	(void)state;
	begin(&r, 1, 3000, &faults, 1, 1, true);
	let_them_work(&r);
	join(&r);
	assert_int_equal(drain(&r, 1), 0); /* nothing before the end */
	assert_int_equal(r.samples, 0);
	r.src->ops->stop(r.src);
	while ((ret = drain(&r, UINT64_MAX)) == 0)
		;
	assert_int_equal(ret, -ENODATA);
	assert_in_range(r.samples, 20, PAGE / 40);
	r.src->ops->free(r.src);
}

static void no_events_after_stop_or_of_a_closed_class(void **state)
{
	struct run r = {0};

	(void)state;
	begin(&r, 1, 100, &faults, 1, 64, false);
	r.src->ops->close_class(r.src, FAULTS);
	finish(&r);
	assert_int_equal(r.samples, 0);
	r.src->ops->free(r.src);

	r = (struct run){0};
	begin(&r, 1, 100, &faults, 1, 64, false);
	r.src->ops->stop(r.src);
	let_them_work(&r);
	join(&r);
	while (drain(&r, UINT64_MAX) == 0)
		;
	assert_int_equal(r.samples, 0);
	r.src->ops->free(r.src);
}

static void a_failure_to_open_is_reported(void **state)
{
	static const char *const cgroups[] = {"no/such/cgroup", NULL};
	struct source_target target = {.pages = 4, .watermark = 50, .cpus = "4000"};
	struct error err = {0};
	struct source *src = live_new(&err);

	(void)state;
	assert_int_equal(src->ops->add_event(src, &faults, &err), 0);
	assert_true(src->ops->open(src, &target, &err) < 0);
	assert_non_null(strstr(err.text, "CPU 4000 is not online"));
	src->ops->free(src);

	err = (struct error){0};
	src = live_new(&err);
	target.cpus = NULL;
	target.cgroups = cgroups;
	assert_int_equal(src->ops->add_event(src, &faults, &err), 0);
	assert_true(src->ops->open(src, &target, &err) < 0);
	assert_true(err.text[0] != '\0');
	src->ops->free(src);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_fault_is_a_sample_in_time_order),
		cmocka_unit_test(losses_and_samples_add_up_to_the_count),
		cmocka_unit_test(the_oldest_records_are_overwritten),
		cmocka_unit_test(no_events_after_stop_or_of_a_closed_class),
		cmocka_unit_test(a_failure_to_open_is_reported),
	};

	return cmocka_run_group_tests_name("live", tests, map_pages, NULL);
}
