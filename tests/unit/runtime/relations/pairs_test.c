/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Events are written as text: "TIME:NAME(KEY)/ROLE", by default with key 1 and role 3. NAME is one
 * of the classes A B C X, L is a loss on CPU KEY (without key on an unknown ring). ROLE bit 0: may
 * start a pair, bit 1: may end one.
 */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "event.h"
#include "relations/pairs.h"
#include "relations/timeline.h"

enum { A = EVENT_FIRST, B, C, X, MAX_EVENTS = 64 };

static const char names[] = "ABCX";

static int parse(const char *text, struct event *events)
{
	char buf[256], *save, *token;
	int n = 0;

	snprintf(buf, sizeof(buf), "%s", text);
	for (token = strtok_r(buf, " ", &save); token; token = strtok_r(NULL, " ", &save)) {
		struct event *ev = &events[n++];
		const char *key = strchr(token, '('), *role = strchr(token, '/');
		char name = strchr(token, ':')[1];
		int bits = role ? atoi(role + 1) : 3;

		*ev = (struct event){.time = atof(token), .tid = -1, .cpu = -1};
		ev->key = key ? atoi(key + 1) : 1;
		ev->flags = (bits & 1 ? 0 : EVENT_NO_FIRST) | (bits & 2 ? 0 : EVENT_NO_SECOND);
		if (name != 'L')
			ev->class = EVENT_FIRST + (strchr(names, name) - names);
		else if (key)
			ev->cpu = ev->key;
	}
	return n;
}

static void append_pairs(char *text, const struct pair *pairs, int n)
{
	for (int i = 0; i < n; i++)
		sprintf(text + strlen(text), "%s%c>%c %g", *text ? ", " : "",
			names[pairs[i].first_class - EVENT_FIRST],
			names[pairs[i].second_class - EVENT_FIRST],
			pairs[i].second_time - pairs[i].first_time);
}

struct trace {
	const char *what;
	const char *stages; /* classes, stages separated by blanks */
	const char *input, *result;
	struct pairs_stats stats;
	uint32_t cycle, per_instance;
};

static const struct trace traces[] = {
	{"1: the last of two starts", "A B", "1:A 3:A 7:B", "A>B 4",
	 .stats = {.pairs = 1, .replaced = 1}},
	{"2: ends without start", "A B", "1:B 2:A 5:B 6:B", "A>B 3",
	 .stats = {.pairs = 1, .unstarted = 2}},
	{"3: three stages", "A B C", "1:A 4:B 9:C", "A>B 3, B>C 5", .stats = {.pairs = 2}},
	{"4: a stage is skipped", "A B C", "1:A 4:C 6:B 9:C", "B>C 3",
	 .stats = {.pairs = 1, .mismatched = 1, .unstarted = 1}},
	{"5: alternatives of a stage", "AX B", "1:A 2:X 5:B", "X>B 3",
	 .stats = {.pairs = 1, .replaced = 1}},
	{"6: cycle of two", "A B", "1:A 3:B 8:A 9:B", "A>B 2, B>A 5, A>B 1",
	 .stats = {.pairs = 3, .unstarted = 1, .stored = 1}, .cycle = 1},
	{"7: cycle of one", "A", "1:A 4:A 9:A", "A>A 3, A>A 5",
	 .stats = {.pairs = 2, .unstarted = 1, .stored = 1}, .cycle = 1},
	{"8: may only start", "A", "1:A 4:A/1 9:A", "A>A 5",
	 .stats = {.pairs = 1, .unstarted = 1, .replaced = 1, .stored = 1}, .cycle = 1},
	{"9: may only end", "A", "1:A 4:A/2 9:A", "A>A 3",
	 .stats = {.pairs = 1, .unstarted = 2, .stored = 1}, .cycle = 1},
	{"10: may do nothing", "A B", "1:A/0 2:B 3:A 4:B/0 5:B", "A>B 2",
	 .stats = {.pairs = 1, .unstarted = 1}},
	{"11: keys", "A B", "1:A(1) 2:A(2) 3:B(2) 4:B(1)", "A>B 1, A>B 3", .stats = {.pairs = 2}},
	{"12: equal time", "A B", "5:A 5:B 6:B", "", .stats = {.mismatched = 1, .unstarted = 1}},
	{"13: disorder", "A B", "9:A 4:B 10:B", "", .stats = {.mismatched = 1, .unstarted = 1}},
	/* The key of a loss is the end of its gap. */
	{"14: a hole", "A B", "1:A 4:A 4:L(10) 6:B 11:B", "",
	 .stats = {.replaced = 1, .dropped = 1, .unstarted = 1}},
	{"nothing pairs across a hole or in it", "A B", "1:A 2:L(10) 3:A 6:B 9:A 11:B 12:A 15:B",
	 "A>B 3", .stats = {.pairs = 1, .dropped = 1, .unstarted = 1}},
	{"a hole concerns all keys", "A B", "1:A(1) 2:A(2) 3:L(1) 4:B(1) 5:B(2)", "",
	 .stats = {.dropped = 2, .unstarted = 2}},
	{"a hole concerns its cpu", "A B", "1:A(1) 2:A(2) 3:L(1) 3:L(7) 4:B(1) 5:B(2)", "A>B 3",
	 .stats = {.pairs = 1, .dropped = 1, .unstarted = 1}, .per_instance = 1},
	{"a hole on an unknown ring", "A B", "1:A(1) 2:A(2) 3:L 4:B(1) 5:B(2)", "",
	 .stats = {.dropped = 2, .unstarted = 2}, .per_instance = 1},
	{"after a hole", "A B", "1:A 2:L 3:A 5:B", "A>B 2", .stats = {.pairs = 1, .dropped = 1}},
	{"a late start", "A B", "5:A 3:A 9:B", "A>B 4", .stats = {.pairs = 1, .replaced = 1}},
	{"cycle of three", "A B C", "1:A 3:B 7:C 8:A 9:C", "A>B 2, B>C 4, C>A 1",
	 .stats = {.pairs = 3, .unstarted = 1, .mismatched = 1, .stored = 1}, .cycle = 1},
	{"not a class", "A B", "1:A 2:X 5:B", "A>B 4", .stats = {.pairs = 1}},
};

static void check_trace(const struct trace *trace, int batch)
{
	struct pairs_config config = {
		.stages = 1, .cycle = trace->cycle, .per_instance = trace->per_instance};
	struct event events[MAX_EVENTS];
	struct pair out[MAX_EVENTS];
	struct pairs_stats stats;
	struct pairs *p;
	char result[256] = "";
	uint32_t stage = 0;
	int n = parse(trace->input, events);

	for (const char *s = trace->stages; *s; s++)
		config.stages += *s == ' ';
	p = pairs_new(&config);
	for (const char *s = trace->stages; *s; s++) {
		if (*s == ' ')
			stage++;
		else
			assert_int_equal(pairs_add_class(p, A + (strchr(names, *s) - names), stage),
					 0);
	}
	for (int i = 0; i < n; i += batch)
		append_pairs(result, out,
			     pairs_feed(p, events + i, batch < n - i ? batch : n - i, out));
	pairs_read_stats(p, &stats);
	if (strcmp(result, trace->result) || memcmp(&stats, &trace->stats, sizeof(stats)))
		fail_msg("%s, %d at a time: '%s', pairs %lu replaced %lu unstarted %lu "
			 "mismatched %lu dropped %lu evicted %lu stored %lu",
			 trace->what, batch, result, stats.pairs, stats.replaced, stats.unstarted,
			 stats.mismatched, stats.dropped, stats.evicted, stats.stored);
	pairs_free(p);
}

static void worked_traces(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++) {
		check_trace(&traces[i], MAX_EVENTS);
		check_trace(&traces[i], 1);
	}
}

static struct pairs *two_stages(uint32_t max_keys, struct timeline *keep)
{
	struct pairs *p =
		pairs_new(&(struct pairs_config){.stages = 2, .max_keys = max_keys, .keep = keep});

	pairs_add_class(p, A, 0);
	pairs_add_class(p, B, 1);
	return p;
}

static void refuses_bad_classes(void **state)
{
	struct pairs *p = two_stages(0, NULL);
	struct event ev = {.class = UINT16_MAX};
	struct pair out;

	(void)state;
	assert_null(pairs_new(&(struct pairs_config){.stages = 0}));
	assert_int_equal(errno, EINVAL);
	assert_int_equal(pairs_add_class(p, EVENT_LOST, 0), -EINVAL);
	assert_int_equal(pairs_add_class(p, EVENT_CLASSES, 0), -EINVAL);
	assert_int_equal(pairs_add_class(p, X, 2), -EINVAL);
	assert_int_equal(pairs_feed(p, &ev, 1, &out), 0);
	assert_int_equal(pairs_feed(p, &ev, 0, &out), 0);
	pairs_free(p);
}

static void pair_has_both_events(void **state)
{
	struct pairs *p = two_stages(0, NULL);
	struct event events[] = {
		{.time = 1, .class = X},
		{.time = 2, .class = A, .key = -7, .tid = 11, .cpu = 3},
		{.time = 5, .class = B, .key = -7, .tid = 12, .cpu = 1},
	};
	struct pair out[3];

	(void)state;
	assert_int_equal(pairs_feed(p, events, 3, out), 1);
	assert_true(out[0].first_time == 2 && out[0].second_time == 5 && out[0].key == -7);
	assert_int_equal(out[0].first_class, A);
	assert_int_equal(out[0].second_class, B);
	assert_int_equal(out[0].second, 2);
	assert_int_equal(out[0].first_tid, 11);
	assert_int_equal(out[0].first_cpu, 3);
	assert_null(out[0].first_event);
	pairs_free(p);
}

static void a_gap_of_a_thread(void **state)
{
	struct pairs *p = pairs_new(&(struct pairs_config){.stages = 2, .per_instance = 1});
	struct event events[] = {
		{.time = 1, .class = A, .key = 500},
		{.time = 1, .class = A, .key = 501},
		{.time = 2, .class = EVENT_LOST, .cpu = -1, .tid = 500},
		{.time = 3, .class = B, .key = 500},
		{.time = 3, .class = B, .key = 501},
	};
	struct pair out[5];

	(void)state;
	pairs_add_class(p, A, 0);
	pairs_add_class(p, B, 1);
	assert_int_equal(pairs_feed(p, events, 5, out), 1);
	assert_int_equal(out[0].key, 501);
	pairs_free(p);
}

static void feed_start(struct pairs *p, int i, double time, uint32_t raw_size)
{
	static uint8_t raw[4096];
	struct event ev = {.time = time, .class = A, .key = (int64_t)i * 4096};
	struct pair out;

	ev.raw = raw;
	ev.raw_size = raw_size;
	assert_int_equal(pairs_feed(p, &ev, 1, &out), 0);
}

/* Starts with the keys from .. to-1, each at the time of its number and with payload. */
static void feed_starts(struct pairs *p, int from, int to, uint32_t raw_size)
{
	for (int i = from; i < to; i++)
		feed_start(p, i, i, raw_size);
}

/* Returns how many of the keys from .. to-1 are stored; takes them out. */
static int count_stored(struct pairs *p, int from, int to)
{
	struct pair out;
	int n = 0;

	for (int i = from; i < to; i++) {
		struct event ev = {.time = 1e9, .class = B, .key = (int64_t)i * 4096};

		n += pairs_feed(p, &ev, 1, &out);
	}
	return n;
}

static void oldest_is_evicted(void **state)
{
	struct pairs *p = two_stages(1000, NULL);
	struct pairs_stats stats;

	(void)state;
	feed_starts(p, 0, 5000, 0);
	pairs_read_stats(p, &stats);
	assert_int_equal(stats.stored + stats.evicted, 5000);
	assert_in_range(stats.stored, 900, 1000);
	assert_int_equal(count_stored(p, 0, 5000 - stats.stored), 0);
	assert_int_equal(count_stored(p, 5000 - stats.stored, 5000), stats.stored);
	pairs_free(p);
}

/* A start that is stored again is young again. */
static void restored_is_young(void **state)
{
	struct pairs *p = two_stages(100, NULL);

	(void)state;
	feed_starts(p, 0, 100, 0);
	feed_start(p, 0, 99.5, 0);
	feed_starts(p, 100, 190, 0);
	assert_int_equal(count_stored(p, 0, 1), 1);
	assert_int_equal(count_stored(p, 1, 90), 0);
	assert_int_equal(count_stored(p, 100, 190), 90);
	pairs_free(p);
}

static void full_timeline_evicts(void **state)
{
	struct timeline *tl = timeline_new(1 << 20);
	struct pairs *p = two_stages(0, tl);
	struct pairs_stats stats;

	(void)state;
	feed_starts(p, 0, 5000, 1000);
	pairs_read_stats(p, &stats);
	assert_int_equal(stats.stored + stats.evicted, 5000);
	assert_in_range(stats.stored, 800, 1000);
	assert_true(timeline_bytes(tl) <= 1 << 20);
	assert_int_equal(count_stored(p, 5000 - stats.stored, 5000), stats.stored);
	pairs_free(p);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void others_fill_the_timeline(void **state)
{
	static uint8_t raw[60000];
	struct timeline *tl = timeline_new(64 << 10);
	struct pairs *p = two_stages(0, tl);
	struct event ev = {.raw = raw, .raw_size = sizeof(raw)};
	struct pairs_stats stats;

	(void)state;
	assert_non_null(timeline_keep(tl, &ev));
	feed_starts(p, 0, 10, 4096);
	pairs_read_stats(p, &stats);
	assert_true(stats.stored <= 1);
	assert_int_equal(stats.stored + stats.evicted, 10);
	pairs_free(p);
	timeline_free(tl);
}

static void kept_until_the_next_feed(void **state)
{
	struct timeline *tl = timeline_new(0);
	struct pairs *p = two_stages(0, tl);
	uint8_t raw[8] = "payload";
	struct event events[2] = {
		{.time = 1, .class = A, .raw = raw, .raw_size = 8},
		{.time = 2, .class = B},
	};
	struct pair out[2];

	(void)state;
	assert_int_equal(pairs_feed(p, events, 2, out), 1);
	memset(raw, 0, sizeof(raw));
	assert_string_equal((const char *)out[0].first_event->raw, "payload");
	assert_true(timeline_bytes(tl) > 0);
	pairs_feed(p, events, 0, out);
	assert_int_equal(timeline_bytes(tl), 0);
	pairs_free(p);
	timeline_free(tl);
}

static void many_keys(void **state)
{
	enum { KEYS = 100000 };
	struct mallinfo2 before = mallinfo2(), after;
	struct pairs *p = two_stages(0, NULL);
	struct pairs_stats stats;

	(void)state;
	feed_starts(p, 0, KEYS, 0);
	after = mallinfo2();
	assert_true(after.uordblks + after.hblkhd < before.uordblks + before.hblkhd + (40 << 20));
	assert_int_equal(count_stored(p, 0, KEYS), KEYS);
	pairs_read_stats(p, &stats);
	assert_int_equal(stats.stored, 0);
	assert_int_equal(stats.pairs, KEYS);
	pairs_free(p);
}

/* A switch that the kernel did not report: the wakeup (A) before it must not reach the one (B)
 * after the next sleep, which X tells. */
static void a_sleep_ends_the_wait(void **state)
{
	struct {
		int32_t padding, pid;
		int64_t bits;
	} payload[] = {{.pid = 7, .bits = 1}, {.pid = 7, .bits = 0x100}, {.pid = 8, .bits = 1}};
	static const char *const result[] = {"", "A>B 8", "A>B 8"};
	struct pairs_config config = {.stages = 2};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct pairs *p = pairs_new(&config);
		struct event events[MAX_EVENTS];
		struct pair out[MAX_EVENTS];
		char text[256] = "";
		struct pairs_stats stats;
		int n = parse("1:A(7) 5:X(9) 9:B(7) 11:A(7) 11:X(9)", events);

		events[1].raw = events[4].raw = (const uint8_t *)&payload[i];
		assert_int_equal(pairs_add_class(p, A, 0), 0);
		assert_int_equal(pairs_add_class(p, B, 1), 0);
		pairs_set_end(p, X, 4, 8, 8, 0xff);
		append_pairs(text, out, pairs_feed(p, events, n, out));
		assert_string_equal(text, result[i]);
		pairs_read_stats(p, &stats);
		assert_int_equal(stats.ended, i == 0);
		assert_int_equal(stats.stored, 1); /* not one of the same time */
		pairs_free(p);
	}
}

/* Switches (B) end the wait of one task, and begin that of another one which does not go to sleep.
 */
static void a_switch_is_also_a_start(void **state)
{
	struct {
		int32_t padding, pid;
		int64_t bits;
	} payload[] = {{.pid = 7, .bits = 0x100}, {.pid = 7, .bits = 1}, {.pid = 0}};
	static const char *const result[] = {"A>B 4, C>B 3", "A>B 4", "A>B 4"};
	struct timeline *timeline = timeline_new(1 << 20);

	(void)state;
	for (int i = 0; i < 6; i++) {
		struct pairs_config config = {.stages = 2, .keep = i < 3 ? NULL : timeline};
		struct pairs *p = pairs_new(&config);
		struct event events[MAX_EVENTS];
		struct pair out[MAX_EVENTS];
		char text[256] = "";
		struct pairs_stats stats;
		int n = parse("1:A(8) 5:B(8) 8:B(7) 8:B(8)", events);

		for (int k = 0; k < n; k++) {
			events[k].raw = (const uint8_t *)&payload[k == 1 ? i % 3 : 2];
			events[k].raw_size = sizeof(payload[0]);
		}
		assert_int_equal(pairs_add_class(p, A, 0), 0);
		assert_int_equal(pairs_add_class(p, C, 0), 0);
		assert_int_equal(pairs_add_class(p, B, 1), 0);
		pairs_set_end(p, B, 4, 8, 8, 0xff);
		pairs_set_awake(p, B, C);
		append_pairs(text, out, pairs_feed(p, events, n, out));
		assert_string_equal(text, result[i % 3]);
		assert_int_equal(out[0].kind, 0);
		if (i % 3 == 0)
			assert_int_equal(out[1].kind, 1);
		pairs_read_stats(p, &stats);
		assert_int_equal(stats.stored, 0);
		assert_int_equal(stats.unstarted, i % 3 ? 2 : 1);
		pairs_free(p);
	}
	timeline_free(timeline);
}

/* A thread that executes a program (X) gets the id of the first thread: what it began (A) goes on
 * with that key, and what the first thread began is gone. */
static void an_exec_moves_a_start(void **state)
{
	struct {
		int32_t padding, pid, before;
	} payload[] = {{.pid = 7, .before = 9}, {.pid = 9, .before = 9}, {.pid = 7, .before = 8}};
	static const char *const result[] = {"A>B 6", "A>B 7, A>B 7, A>B 2", "A>B 7"};
	struct timeline *timeline = timeline_new(1 << 20);

	(void)state;
	for (int i = 0; i < 12; i++) {
		struct pairs_config config = {.stages = 2, .keep = i % 6 < 3 ? NULL : timeline};
		struct pairs *p = pairs_new(&config);
		struct event events[MAX_EVENTS];
		struct pair out[MAX_EVENTS];
		char text[256] = "";
		struct pairs_stats stats;
		int machine = i < 6 ? 0 : 3;
		int n = parse("1:A(7) 2:A(9) 4:X(0) 8:B(7) 9:B(9) 10:A(9) 12:B(9)", events);

		if (i % 3 != 1)
			n = 5;
		for (int k = 0; k < n; k++)
			events[k].raw_size = sizeof(payload[0]);
		for (int k = 0; k < n; k++)
			events[k].key += (int64_t)machine << PAIRS_MACHINE_SHIFT;
		events[2].raw = (const uint8_t *)&payload[i % 3];
		assert_int_equal(pairs_add_class(p, A, 0), 0);
		assert_int_equal(pairs_add_class(p, B, 1), 0);
		pairs_set_exec(p, X, machine, true, 4, 8);
		append_pairs(text, out, pairs_feed(p, events, n, out));
		assert_string_equal(text, result[i % 3]);
		pairs_read_stats(p, &stats);
		assert_int_equal(stats.ended, i % 3 != 1);
		assert_int_equal(stats.unstarted, i % 3 != 1);
		assert_int_equal(stats.stored, 0);
		pairs_free(p);
	}
	timeline_free(timeline);
}

/* Kept or not, a pair and a waiting start have the value of their first event. */
static void a_value_of_the_first_event(void **state)
{
	const struct {
		int32_t common[2];
		int64_t id;
	} payload = {.id = -3};
	struct timeline *timeline = timeline_new(1 << 20);
	struct event events[MAX_EVENTS];
	int n = parse("1:A(1) 2:B(1) 3:A(2)", events);

	(void)state;
	for (int i = 0; i < n; i++) {
		events[i].raw = (const uint8_t *)&payload;
		events[i].raw_size = sizeof(payload);
	}
	for (int keep = 0; keep < 2; keep++) {
		struct pairs_config config = {.stages = 2, .keep = keep ? timeline : NULL};
		struct pairs *p = pairs_new(&config);
		struct pair out[MAX_EVENTS];

		assert_int_equal(pairs_set_value(p, A, 8, 3, 1), -EINVAL);
		assert_int_equal(pairs_set_value(p, A, 8, 8, 1), 0);
		assert_int_equal(pairs_add_class(p, A, 0), 0);
		assert_int_equal(pairs_add_class(p, B, 1), 0);
		assert_int_equal(pairs_feed(p, events, n, out), 1);
		assert_int_equal(out[0].first_value, -3);
		assert_int_equal(out[0].first_event != NULL, keep);
		assert_int_not_equal(pairs_next_stored(p, 0, out), 0);
		assert_int_equal(out[0].first_value, -3);
		assert_int_equal(out[0].first_event != NULL, keep);
		pairs_free(p);
	}
	timeline_free(timeline);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sleep_ends_the_wait),
		cmocka_unit_test(a_switch_is_also_a_start),
		cmocka_unit_test(an_exec_moves_a_start),
		cmocka_unit_test(a_value_of_the_first_event),
		cmocka_unit_test(worked_traces),
		cmocka_unit_test(refuses_bad_classes),
		cmocka_unit_test(pair_has_both_events),
		cmocka_unit_test(a_gap_of_a_thread),
		cmocka_unit_test(oldest_is_evicted),
		cmocka_unit_test(restored_is_young),
		cmocka_unit_test(full_timeline_evicts),
		cmocka_unit_test(others_fill_the_timeline),
		cmocka_unit_test(kept_until_the_next_feed),
		cmocka_unit_test(many_keys),
	};

	return cmocka_run_group_tests_name("pairs", tests, NULL, NULL);
}
