/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "event.h"
#include "relations/history.h"
#include "relations/pairs.h"
#include "relations/timeline.h"

enum { A = EVENT_FIRST, B, OTHER };

static struct history *wanting(struct timeline *tl)
{
	struct history *h = history_new(tl, UINT64_MAX);

	assert_int_equal(history_want(h, A), 0);
	assert_int_equal(history_want(h, B), 0);
	return h;
}

static void add_times(struct history *h, const double *times, int n)
{
	struct event events[16];
	struct event *copies[16];

	for (int i = 0; i < n; i++)
		events[i] = (struct event){.time = times[i], .class = A};
	history_add(h, events, n, copies);
	for (int i = 0; i < n; i++)
		assert_true(copies[i]->time == times[i]);
}

static void keeps_requested_events(void **state)
{
	struct timeline *tl = timeline_new(0);
	struct history *h = wanting(tl);
	uint8_t raw[4] = "abc";
	struct event events[] = {
		{.time = 1, .class = A, .raw = raw, .raw_size = 4},
		{.time = 2, .class = OTHER},
		{.time = 3, .class = EVENT_FILTERED},
		{.time = 4, .class = B},
	};
	struct event *copies[4];

	(void)state;
	assert_int_equal(history_want(h, EVENT_LOST), -EINVAL);
	assert_int_equal(history_want(h, EVENT_CLASSES), -EINVAL);
	history_add(h, events, 4, copies);
	raw[0] = 'x';
	assert_string_equal((const char *)copies[0]->raw, "abc");
	assert_null(copies[1]);
	assert_null(copies[2]);
	assert_ptr_equal(history_at(h, 0), copies[0]);
	assert_ptr_equal(history_at(h, 1), copies[3]);
	assert_null(history_at(h, 2));
	history_free(h);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void late_events_go_to_their_place(void **state)
{
	struct timeline *tl = timeline_new(0);
	struct history *h = wanting(tl);
	static const double times[] = {1, 5, 5, 9, 4, 5, 0};
	static const double sorted[] = {0, 1, 4, 5, 5, 5, 9};

	(void)state;
	add_times(h, times, 7);
	for (int i = 0; i < 7; i++)
		assert_true(history_at(h, i)->time == sorted[i]);
	assert_int_equal(history_find(h, -1), 0);
	assert_int_equal(history_find(h, 5), 3);
	assert_int_equal(history_find(h, 5.5), 6);
	assert_int_equal(history_find(h, 10), 7);
	history_forget(h, 5);
	assert_true(history_at(h, 0)->time == 5);
	assert_int_equal(history_count(h), 4);
	history_forget(h, INFINITY);
	assert_int_equal(timeline_bytes(tl), 0);
	assert_null(history_at(h, 0));
	history_free(h);
	timeline_free(tl);
}

static void oldest_leave_when_full(void **state)
{
	static uint8_t raw[1000];
	struct timeline *tl = timeline_new(1 << 20);
	struct history *h = wanting(tl);
	struct history_stats stats;
	struct event *copy;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		struct event ev = {.time = i, .class = A, .raw = raw, .raw_size = sizeof(raw)};

		history_add(h, &ev, 1, &copy);
		assert_non_null(copy);
		if (i == 500) {
			history_read_stats(h, &stats);
			assert_int_equal(stats.evicted, 0);
			assert_true(stats.evicted_until == -INFINITY);
		}
	}
	history_read_stats(h, &stats);
	assert_int_equal(history_count(h) + stats.evicted, 20000);
	assert_in_range(history_count(h), 700, 1000);
	assert_true(stats.evicted_until == history_at(h, 0)->time - 1);
	assert_true(timeline_bytes(tl) <= 1 << 20);
	history_free(h);
	timeline_free(tl);
}

/* More events than fit into the initial ring of pointers, none forgotten; then all but the last. */
static void grows(void **state)
{
	struct timeline *tl = timeline_new(0);
	struct history *h = wanting(tl);
	struct event *copy;

	(void)state;
	for (int i = 0; i < 50000; i++) {
		struct event ev = {.time = i, .class = B};

		history_add(h, &ev, 1, &copy);
		if (i == 3000)
			history_forget(h, 2000);
	}
	for (int i = 2000; i < 50000; i++)
		assert_true(history_at(h, i - 2000)->time == i);
	history_forget(h, 49999);
	assert_true(history_at(h, 0)->time == 49999);
	assert_null(history_at(h, 1));
	history_free(h);
	timeline_free(tl);
}

/* A history that must stay small because others hold its memory still keeps some events. */
static void small_next_to_others(void **state)
{
	static uint8_t raw[1000];
	struct timeline *tl = timeline_new(0);
	struct event ev = {.class = A, .raw = raw, .raw_size = sizeof(raw)};
	struct history *h = history_new(tl, 8 << 20);
	struct history_stats stats;
	struct event *copy;

	(void)state;
	history_want(h, A);
	for (int i = 0; i < 30000; i++, ev.time++)
		history_add(h, &ev, 1, &copy);
	history_read_stats(h, &stats);
	assert_int_equal(history_count(h) + stats.evicted, 30000);
	assert_in_range(timeline_bytes(tl), 6 << 20, 9 << 20);
	for (int i = 0; i < 10000; i++)
		assert_non_null(timeline_keep(tl, &ev));
	for (int i = 0; i < 30000; i++, ev.time++)
		history_add(h, &ev, 1, &copy);
	history_read_stats(h, &stats);
	assert_in_range(history_count(h), 3500, 4200);
	history_free(h);
	timeline_free(tl);
}

static void one_event_that_never_fits(void **state)
{
	static uint8_t raw[100000];
	struct timeline *tl = timeline_new(64 << 10);
	struct history *h = wanting(tl);
	struct event ev = {.time = 7, .class = A, .raw = raw, .raw_size = sizeof(raw)};
	struct event *copy;
	struct history_stats stats;

	(void)state;
	history_add(h, &ev, 1, &copy);
	assert_null(copy);
	history_read_stats(h, &stats);
	assert_int_equal(stats.evicted, 1);
	assert_true(stats.evicted_until == 7);
	history_free(h);
	timeline_free(tl);
}

/* The starts of pairs share the copies, and keep them when the history forgets. */
static void pairs_share_the_copies(void **state)
{
	struct timeline *tl = timeline_new(0);
	struct history *h = wanting(tl);
	struct pairs *p = pairs_new(&(struct pairs_config){.stages = 2, .keep = tl});
	struct event *copies[3], *first;
	struct event starts[] = {{.time = 1, .class = A, .key = 1},
				 {.time = 2, .class = OTHER},
				 {.time = 3, .class = A, .key = 2}};
	struct event end = {.time = 9, .class = B, .key = 1};
	struct pair out[3];
	uint32_t at = 0, keys = 0;

	(void)state;
	pairs_add_class(p, A, 0);
	pairs_add_class(p, B, 1);
	pairs_use_copies(p, copies);
	assert_true(pairs_oldest(p) == INFINITY);
	assert_int_equal(pairs_next_stored(p, 0, out), 0);
	history_add(h, starts, 3, copies);
	first = copies[0];
	assert_int_equal(pairs_feed(p, starts, 3, out), 0);
	assert_true(pairs_oldest(p) == 1);
	for (int i = 0; i < 2; i++) {
		at = pairs_next_stored(p, at, out);
		assert_true(at > 0 && out->second == PAIRS_NO_SECOND);
		assert_true(out->first_time == (out->key == 1 ? 1 : 3));
		keys += out->key;
		if (out->key == 1)
			assert_ptr_equal(out->first_event, first);
	}
	assert_int_equal(keys, 3);
	assert_int_equal(pairs_next_stored(p, at, out), 0);
	history_forget(h, INFINITY);
	assert_true(timeline_bytes(tl) > 0);
	history_add(h, &end, 1, copies);
	assert_int_equal(pairs_feed(p, &end, 1, out), 1);
	assert_ptr_equal(out->first_event, first);
	pairs_free(p);
	history_free(h);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_requested_events),
		cmocka_unit_test(late_events_go_to_their_place),
		cmocka_unit_test(oldest_leave_when_full),
		cmocka_unit_test(grows),
		cmocka_unit_test(small_next_to_others),
		cmocka_unit_test(one_event_that_never_fits),
		cmocka_unit_test(pairs_share_the_copies),
	};

	return cmocka_run_group_tests_name("history", tests, NULL, NULL);
}
