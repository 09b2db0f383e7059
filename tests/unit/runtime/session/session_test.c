/* SPDX-License-Identifier: GPL-2.0-only */
/* The session on the source of memory_source.h. */
#include "memory_source.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include "live/count_sums.h"
#include "process/signals.h"
#include "session/session.h"

static struct session *start(struct memory *m)
{
	struct event_request own = {.name = "own", .class = OWN_CLASS, .is_output = 1};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	struct session_target target = {.cpus = "0", .pages = 8, .watermark = 50};
	struct session *s = session_new(&m->source);
	struct error err;

	req.attr.type = own.attr.type = PERF_TYPE_SOFTWARE;
	assert_non_null(s);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	assert_string_equal(m->name, "value");
	assert_int_equal(session_add_event(s, &own, &err), 0);
	assert_false(m->opened);
	if (session_start(s, &target, &err))
		fail_msg("%s", err.text);
	assert_true(m->started);
	assert_string_equal(m->target.cpus, "0");
	return s;
}

/* Drains the session into text, one word per item: "@MS" events with their value, "L" losses, "T"
 * ends of intervals, "E" the end. */
static const char *drain(struct session *s)
{
	static char text[1024];
	struct batch batch = {0};
	struct error err;

	text[0] = 0;
	while (!(batch.flags & BATCH_END)) {
		if (session_next(s, &batch, &err))
			fail_msg("%s", err.text);
		for (int i = 0; i < batch.n; i++) {
			const struct event *ev = &batch.events[i];
			char word[64];

			if (ev->class == EVENT_LOST)
				snprintf(word, sizeof(word), "@%g..%g L%lu/%d ", ev->time / MS,
					 (double)ev->key / MS, (unsigned long)ev->period, ev->cpu);
			else
				snprintf(word, sizeof(word), "@%g %s%u/%u ", ev->time / MS,
					 ev->class == OWN_CLASS ? "own" : "",
					 *(const uint32_t *)ev->raw, ev->ring);
			strcat(text, word);
		}
		if (batch.flags & BATCH_TICK)
			sprintf(text + strlen(text), "T%g ", batch.tick_time / MS);
	}
	strcat(text, "E");
	return text;
}

static void test_events(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session_stats stats;
	struct session_clock clock;
	struct session *s;

	(void)state;
	add_sample(m, START - 1, 0, 99); /* before all of its rings count */
	add_sample(m, START + 3 * MS, 1, 3);
	add_sample(m, START + 1 * MS, 0, 1);
	add_own(m, START + 2 * MS, 1, 2);
	add_loss(m, START + 4 * MS, START + 6 * MS, 1, 5);
	add_own(m, START + 5 * MS, 0, 0); /* damaged */
	add_sample(m, START + 7 * MS, 0, 7);
	m->ended = true;
	s = start(m);
	assert_string_equal(drain(s), "@1 1/0 @2 own2/1 @3 3/1 @4..6 L5/1 @7 7/0 E");
	session_read_stats(s, &stats);
	assert_int_equal(stats.events, 4);
	assert_int_equal(stats.lost, 5);
	assert_int_equal(stats.bad, 1);
	assert_true(stats.to == 7.0 * MS);
	session_read_clock(s, &clock);
	assert_true(clock.base == START && isnan(clock.wall_sec));
	session_free(s);
	assert_true(freed);
}

/* A run that ends early: its samples are delivered, dropped or left in the rings. */
static void test_account(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session_account account;
	struct batch batch = {0};
	struct session *s;
	struct error err;

	(void)state;
	add_sample(m, START - 1, 0, 99);
	for (int i = 1; i <= 5; i++)
		add_sample(m, START + i * MS, i % RINGS, i);
	add_own(m, START + 6 * MS, 0, 6);
	m->clock = START + 2 * MS;
	s = start(m);
	for (int n = 0; n < 2; n += batch.n)
		assert_int_equal(session_next(s, &batch, &err), 0);
	assert_false(session_count_rest(s)); /* events happen */
	m->clock = START + 10 * MS;
	session_stop(s);
	assert_true(session_count_rest(s));
	session_read_account(s, CLASS, &account);
	assert_int_equal(account.read, 2);
	assert_int_equal(account.early, 1);
	assert_int_equal(account.rest, 3);
	assert_true(account.has_kernel && account.is_exact);
	assert_int_equal(account.fired, 9);
	assert_int_equal(account.lost, 1);
	assert_int_equal(account.counters, RINGS);
	session_read_account(s, OWN_CLASS, &account);
	assert_false(account.has_kernel);
	assert_int_equal(account.read, 0);
	session_free(s);
	assert_true(freed);
}

/* The samples of another machine are counted where they are read and where they arrive. */
static void test_account_of_machine(void **state)
{
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4, .member = 1};
	struct session_target target = {.cpus = "0", .pages = 8, .watermark = 50};
	bool freed, local_freed;
	struct memory *m = memory_new(&freed);
	struct session *s = session_new(&memory_new(&local_freed)->source);
	struct session_account account;
	struct batch batch = {0};
	struct error err;

	(void)state;
	req.attr.type = PERF_TYPE_SOFTWARE;
	m->started = true; /* a sender starts on its own */
	assert_int_equal(session_add_machine(s, &m->source, &err), 1);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	assert_int_equal(session_start(s, &target, &err), 0);
	for (int i = 1; i <= 5; i++)
		add_sample(m, START + i * MS, 0, i);
	m->clock = START + 3 * MS;
	while (batch.n == 0)
		assert_int_equal(session_next(s, &batch, &err), 0);
	m->clock = START + 10 * MS;
	session_stop(s);
	assert_true(session_count_rest(s));
	for (m->dropped = 0; m->dropped < 2; m->dropped++) {
		session_read_account(s, CLASS, &account);
		assert_int_equal(account.read + account.rest, 5);
		assert_int_equal(account.arrived, 5);
		assert_int_equal(account.sum_read, 5 + m->dropped);
	}
	session_free(s);
	assert_true(freed && local_freed);
}

/* A ring of a thread loses the events of that thread. */
static void test_thread_rings(void **state)
{
	static const int32_t tids[RINGS] = {100, 200};
	bool freed;
	struct memory *m = memory_new(&freed);
	struct batch batch;
	struct session *s;
	struct error err;

	(void)state;
	m->source.ring_tid = tids;
	add_loss(m, START + 1, START + 2, 1, 5);
	m->ended = true;
	m->clock = START + MS;
	s = start(m);
	assert_int_equal(session_loss_is_local(s), 1);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(batch.n, 1);
	assert_true(batch.flags & BATCH_LOST);
	assert_int_equal(batch.events[0].tid, 200);
	assert_int_equal(batch.events[0].cpu, -1);
	session_free(s);
}

/* Intervals end by the source's clock, once all events held back until then have arrived. */
static void test_intervals(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s;
	struct error err;
	uint64_t begun = 0;
	struct session_target target = {.pages = 8, .begun = &begun};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};

	(void)state;
	m->holds = 4 * MS;
	req.attr.type = PERF_TYPE_SOFTWARE;
	add_sample(m, START + 9 * MS, 0, 9);
	add_sample(m, START + 10 * MS, 1, 10);
	add_sample(m, START + 31 * MS, 0, 31);
	s = session_new(&m->source);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	session_set_interval(s, 10 * MS);
	session_set_duration(s, 35 * MS);
	assert_int_equal(session_start(s, &target, &err), 0);
	assert_int_equal(begun, START);
	assert_string_equal(drain(s), "@9 9/0 T10 @10 10/1 T20 T30 @31 31/0 E");
	assert_true(m->stopped);
	session_free(s);
}

/* A recording does not wait for empty intervals, and has no clock. */
static void test_recorded(void **state)
{
	static const struct recorded_event events[] = {
		{.name = "value", .type = PERF_TYPE_SOFTWARE}};
	static const uint16_t sharers[8192] = {1, 1, 3};
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s;
	struct session_target target = {0};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	struct error err;
	uint32_t n;

	(void)state;
	req.attr.type = PERF_TYPE_SOFTWARE;
	m->source.info = (struct source_info){.is_recorded = true,
					      .arch = "vax",
					      .wall_sec = 100,
					      .events = events,
					      .nr_events = 1,
					      .first_sharers = {NULL, sharers},
					      .nodes = sharers};
	m->clock = UINT64_MAX;
	add_sample(m, START + 1 * MS, 0, 1);
	add_sample(m, START + 95 * MS, 0, 95);
	m->ended = true;
	error_set(&m->source.warning, 0, "it is damaged");
	s = session_new(&m->source);
	assert_true(session_is_recorded(s));
	assert_string_equal(session_recorded_events(s, 0, &n)->name, "value");
	assert_int_equal(n, 1);
	assert_string_equal(session_arch(s, 0), "vax");
	assert_string_equal(session_warning(s), "it is damaged");
	assert_int_equal(session_cache_sharer(s, 2, 1), 0);
	assert_int_equal(session_cache_sharer(s, 2, 2), 2);
	assert_int_equal(session_cache_sharer(s, 2, 3), -1);
	assert_int_equal(session_cache_sharer(s, 1, 0), -1);
	assert_int_equal(session_cache_sharer(s, 0, 0), -1);
	assert_int_equal(session_cache_sharer(s, 1 << 30, 0), -1);
	assert_int_equal(session_cache_sharer(s, 2, 8192), -1);
	assert_int_equal(session_cache_sharer(s, 2, -1), -1);
	assert_int_equal(session_cpu_node(s, 0, 1), 0);
	assert_int_equal(session_cpu_node(s, 0, 3), -1);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	session_set_interval(s, 10 * MS);
	assert_int_equal(session_start(s, &target, &err), 0);
	assert_string_equal(drain(s), "@1 1/0 T10 @95 95/0 E");
	assert_int_equal(session_take_cpu(s), -1);
	session_free(s);
}

/* A part of a recording, with both ends. A loss that reaches into it is one of the part. */
static void test_window(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session_target target = {0};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	struct session_stats stats;
	struct session *s;
	struct error err;

	(void)state;
	req.attr.type = PERF_TYPE_SOFTWARE;
	m->source.info = (struct source_info){.is_recorded = true, .wall_sec = NAN};
	m->clock = UINT64_MAX;
	add_sample(m, START + 1 * MS, 0, 1);
	add_loss(m, START + 1 * MS, START + 2 * MS, 1, 9);
	add_loss(m, START + 2 * MS, START + 4 * MS, 1, 5);
	add_sample(m, START + 3 * MS - 1, 0, 2);
	add_sample(m, START + 3 * MS, 0, 3);
	add_sample(m, START + 13 * MS, 0, 13);
	add_sample(m, START + 17 * MS, 0, 17);
	add_sample(m, START + 17 * MS + 1, 0, 18);
	m->ended = true;
	s = session_new(&m->source);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	session_set_interval(s, 10 * MS);
	session_set_window(s, START + 3 * MS, START + 17 * MS);
	assert_int_equal(session_start(s, &target, &err), 0);
	assert_string_equal(drain(s), "@-1..1 L5/1 @0 3/0 T10 @10 13/0 @14 17/0 E");
	session_read_stats(s, &stats);
	assert_int_equal(stats.events, 3);
	assert_int_equal(stats.lost, 5);
	session_free(s);
}

static void test_counts_cpus_notices(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = start(m);
	struct batch batch;
	struct counts counts;
	uint32_t urgent;
	struct error err;

	(void)state;
	m->count.value = 42;
	m->count_id = 1;
	session_read_counts(s, &counts);
	assert_int_equal(counts.ids[0], 1);
	assert_true(counts.values[0].value == 42);
	m->cpus = 2;
	assert_int_equal(session_take_cpu(s), 0);
	assert_int_equal(session_take_cpu(s), 1);
	assert_int_equal(session_take_cpu(s), -1);
	error_set(&m->source.notice, 0, "CPU #1 went offline");
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_true(batch.flags & BATCH_NOTICE);
	assert_string_equal(session_take_notice(s, &urgent), "CPU #1 went offline");
	assert_string_equal(session_take_notice(s, &urgent), "");
	session_close_class(s, CLASS);
	assert_int_equal(m->closed, CLASS);
	session_stop(s);
	assert_string_equal(drain(s), "E");
	session_free(s);
}

/* Of several limits of a wait, the shortest counts, and once. */
static void test_wake_after(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = start(m);
	struct batch batch;
	struct error err;
	uint64_t before;

	(void)state;
	session_wake_after(s, 5 * MS);
	session_wake_after(s, 2 * MS);
	session_wake_after(s, 9 * MS);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(m->clock, START + 2 * MS);
	before = m->clock;
	session_wake_after(s, 3 * MS);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(m->clock, before + 3 * MS);
	before = m->clock;
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_true(m->clock > before + 9 * MS);
	session_free(s);
}

static void test_refusals(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = session_new(&m->source);
	struct event_request req = {.name = "cycles", .class = CLASS};
	struct error err = {0};

	(void)state;
	assert_int_equal(session_add_event(s, &req, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "memory has no cycles");
	assert_null(session_formats(s, 0, &err));
	assert_string_equal(err.text, "memory has no tracepoints");
	assert_true(session_has_records(s, 0, 3));
	assert_false(session_has_records(s, 0, 2));
	req.sample = PERF_SAMPLE_ADDR;
	assert_int_equal(session_sample_type(s, &req), PERF_SAMPLE_RAW | PERF_SAMPLE_ADDR);
	session_free(s);
	assert_true(freed);
}

/* A machine for which there are no resources leaves the session as it is. */
static void test_machine_refused(void **state)
{
	struct rlimit limit, none;
	bool freed, remote_freed;
	struct memory *m = memory_new(&freed), *remote = memory_new(&remote_freed);
	struct session *s = start(m);
	struct error err = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(session_add_machine(s, &remote->source, &err), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(remote_freed);
	assert_false(freed);
	assert_int_equal(session_machines(s), 1);
	session_free(s);
	assert_true(freed);
}

/* Batches are short while their events take long, and get longer when they do not. */
static void test_batch_sizes(void **state)
{
	struct session_target target = {0};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = session_new(&m->source);
	struct batch batch = {0};
	struct error err;
	int n = 0, longest = 0;

	(void)state;
	req.attr.type = PERF_TYPE_SOFTWARE;
	for (int i = 1; i <= MAX; i++)
		add_sample(m, START + i * 1000, 0, i);
	m->clock = START + 10 * MS;
	m->ended = true;
	assert_int_equal(session_add_event(s, &req, &err), 0);
	assert_int_equal(session_start(s, &target, &err), 0);
	while (!(batch.flags & BATCH_END)) {
		assert_int_equal(session_next(s, &batch, &err), 0);
		n += batch.n;
		if (n <= 100) {
			assert_true(batch.n <= 16);
			usleep(50000);
		} else if (batch.n > longest) {
			longest = batch.n;
		}
	}
	assert_int_equal(n, MAX);
	assert_true(longest > 16);
	session_free(s);
	assert_true(freed);
}

/* Returns the number of events. */
static int drained(struct session *s)
{
	struct batch batch = {0};
	struct error err;
	int n = 0;

	while (!(batch.flags & BATCH_END)) {
		assert_int_equal(session_next(s, &batch, &err), 0);
		n += batch.n;
	}
	return n;
}

/* A second after the request to end, only 5000 events more are read from rings, but all from those
 * that are overwritten, of which the rest is the result. The request is never withdrawn, so no test
 * may follow. */
static void test_leaves_rest(void **state)
{
	uint64_t none = 0;

	(void)state;
	signals_install();
	raise(SIGINT);
	while (!signals_overdue(&none, 1, 1))
		usleep(10000);
	for (int overwrites = 0; overwrites < 2; overwrites++) {
		struct session_target target = {.overwrite = overwrites};
		struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
		bool freed;
		struct memory *m = memory_new(&freed);
		struct session *s = session_new(&m->source);
		struct session_account account;
		struct session_stats stats;
		struct error err;
		int n;

		req.attr.type = PERF_TYPE_SOFTWARE;
		for (int i = 1; i <= MAX; i++)
			add_sample(m, START + i * 1000, 0, i);
		m->clock = START + 10 * MS;
		assert_int_equal(session_add_event(s, &req, &err), 0);
		assert_int_equal(session_start(s, &target, &err), 0);
		n = drained(s);
		if (overwrites)
			assert_int_equal(n, MAX);
		else
			assert_in_range(n, 5000, MAX - 1);
		session_read_stats(s, &stats);
		assert_int_equal(stats.leaves_rest, !overwrites);
		assert_true(session_count_rest(s));
		session_read_account(s, CLASS, &account);
		assert_int_equal(account.rest, MAX - n);
		session_free(s);
		assert_true(freed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),
		cmocka_unit_test(test_account),
		cmocka_unit_test(test_account_of_machine),
		cmocka_unit_test(test_thread_rings),
		cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_recorded),
		cmocka_unit_test(test_counts_cpus_notices),
		cmocka_unit_test(test_wake_after),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_machine_refused),
		cmocka_unit_test(test_window),
		cmocka_unit_test(test_batch_sizes),
		cmocka_unit_test(test_leaves_rest),
	};

	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
