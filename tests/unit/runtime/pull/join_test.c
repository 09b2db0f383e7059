/* SPDX-License-Identifier: GPL-2.0-only */
/* The join of made-up members: order, what holds it back, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include "error.h"
#include "os/clock.h"
#include "pull/join.h"
#include "source.h"

enum { MAX = 4096, MS = 1000000, MEMBERS = 3 };

/* Delivers slots whose times the test sets, in pieces. */
struct member {
	struct source source;
	uint64_t times[MAX];
	int n, next, piece;
	bool ended, stopped, freed;
	uint64_t complete; /* everything up to here is in `times` */
	int calls;
};

struct fixture {
	struct member members[MEMBERS];
	struct source *join;
	struct slot out[BATCH_MAX];
	struct error err;
};

static struct member *of(struct source *src)
{
	return (struct member *)src;
}

static struct formats *no_formats(struct source *src, struct error *err)
{
	(void)src;
	error_set(err, -ENOENT, "none");
	return NULL;
}

static int add_event(struct source *src, const struct event_request *req, struct error *err)
{
	(void)src, (void)req, (void)err;
	return 0;
}

static int open_source(struct source *src, const struct source_target *target, struct error *err)
{
	(void)src, (void)target, (void)err;
	return 0;
}

static int start(struct source *src, struct error *err)
{
	(void)err;
	src->start = clock_monotonic();
	return 0;
}

static int next(struct source *src, struct slot *out, int max, uint64_t until, struct error *err)
{
	struct member *m = of(src);
	int n = 0;

	(void)err;
	m->calls++;
	while (n < max && n < m->piece && m->next < m->n && m->times[m->next] <= until)
		out[n++] = (struct slot){.time = m->times[m->next++], .rec = m};
	src->horizon = m->next < m->n ? m->times[m->next] - 1 : m->complete;
	if (m->ended && m->next == m->n)
		src->horizon = UINT64_MAX;
	return !n && m->ended && m->next == m->n ? -ENODATA : n;
}

static void stop(struct source *src)
{
	of(src)->stopped = of(src)->ended = true;
}

static uint64_t now(struct source *src)
{
	return src->info.is_live || src->info.is_local ? clock_monotonic() : UINT64_MAX;
}

static int poll_fd(struct source *src, short *events)
{
	(void)src, (void)events;
	return -1;
}

static void free_source(struct source *src)
{
	of(src)->freed = true;
}

static const struct source_ops ops = {
	.formats = no_formats,
	.add_event = add_event,
	.open = open_source,
	.start = start,
	.next = next,
	.stop = stop,
	.now = now,
	.poll_fd = poll_fd,
	.free = free_source,
};

/* with_local: this machine delivers events, too. */
static struct fixture *new_fixture(bool with_local, bool is_live)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct event_request req = {.class = EVENT_FIRST};

	for (int i = 0; i < MEMBERS; i++) {
		struct member *m = &f->members[i];

		m->source.ops = &ops;
		m->source.info.host = i ? "host" : NULL;
		m->source.info.is_live = i && is_live;
		m->source.info.is_local = !i;
		m->piece = BATCH_MAX;
	}
	f->join = join_new(&f->members[0].source);
	assert_non_null(f->join);
	for (int i = 1; i < MEMBERS; i++)
		assert_int_equal(join_add(f->join, &f->members[i].source, &f->err), i);
	if (with_local)
		assert_int_equal(f->join->ops->add_event(f->join, &req, &f->err), 0);
	assert_int_equal(f->join->ops->open(f->join, NULL, &f->err), 0);
	assert_int_equal(f->join->ops->start(f->join, &f->err), 0);
	return f;
}

static void free_fixture(struct fixture *f)
{
	f->join->ops->free(f->join);
	for (int i = 0; i < MEMBERS; i++)
		assert_true(f->members[i].freed);
	free(f);
}

static void set(struct member *m, int n, uint64_t first, uint64_t step)
{
	for (int i = 0; i < n; i++)
		m->times[i] = first + i * step;
	m->n = n;
	m->complete = m->times[n - 1];
}

static int take(struct fixture *f, uint64_t until)
{
	return f->join->ops->next(f->join, f->out, BATCH_MAX, until, &f->err);
}

/* The slot is of the member whose record it has. */
static void check_member(struct fixture *f, const struct slot *slot)
{
	assert_ptr_equal(slot->rec, &f->members[slot->flags >> SLOT_MEMBER_SHIFT]);
}

static void test_order(void **state)
{
	struct fixture *f = new_fixture(false, false);
	uint64_t last = 0, random = 1;
	int n, total = 0;

	(void)state;
	for (int i = 1; i < MEMBERS; i++) {
		uint64_t time = 1;

		for (int k = 0; k < MAX; k++) {
			random = random * 6364136223846793005ull + 1442695040888963407ull;
			time += random >> 60;
			f->members[i].times[k] = time;
		}
		f->members[i].n = MAX;
		f->members[i].piece = 100 * i;
		f->members[i].ended = true;
	}
	while ((n = take(f, UINT64_MAX)) >= 0) {
		for (int i = 0; i < n; i++) {
			assert_true(f->out[i].time >= last);
			assert_int_equal(f->out[i].flags & 0xffff, 0);
			check_member(f, &f->out[i]);
			last = f->out[i].time;
		}
		total += n;
	}
	assert_int_equal(n, -ENODATA);
	assert_int_equal(total, 2 * MAX);
	assert_false(f->members[0].calls); /* it has no events */
	free_fixture(f);
}

/* Recordings: nothing overtakes the member that has not delivered up to there. */
static void test_horizon(void **state)
{
	struct fixture *f = new_fixture(false, false);

	(void)state;
	set(&f->members[1], 10, 100, 10);
	set(&f->members[2], 1, 105, 0);
	assert_true(f->join->info.is_recorded);
	assert_int_equal(take(f, UINT64_MAX), 2);
	assert_int_equal(f->out[0].time, 100);
	assert_int_equal(f->out[1].time, 105);
	assert_int_equal(f->join->horizon, 105);
	assert_int_equal(take(f, UINT64_MAX), 0);
	f->members[2].complete = 150; /* a heart-beat */
	assert_int_equal(take(f, UINT64_MAX), 5);
	assert_int_equal(f->join->horizon, 150);
	f->members[2].ended = true;
	assert_int_equal(take(f, 170), 2);
	assert_int_equal(take(f, 1000), 2);
	f->members[1].ended = true;
	assert_int_equal(take(f, UINT64_MAX), -ENODATA);
	free_fixture(f);
}

/* Records without a time come first, and say nothing about what was delivered. */
static void test_no_time(void **state)
{
	struct fixture *f = new_fixture(false, false);

	(void)state;
	set(&f->members[1], 3, 0, 0);
	set(&f->members[2], 1, 50, 0);
	f->members[1].complete = 100;
	assert_int_equal(f->join->ops->next(f->join, f->out, 1, UINT64_MAX, &f->err), 1);
	assert_int_equal(f->join->horizon, 0);
	assert_int_equal(take(f, UINT64_MAX), 3);
	assert_int_equal(f->out[2].time, 50);
	assert_int_equal(f->join->horizon, 50);
	free_fixture(f);
}

/* A slot stays valid until the next call, so a member is asked once per call. */
static void test_asks_once(void **state)
{
	struct fixture *f = new_fixture(false, false);

	(void)state;
	set(&f->members[1], 10, 100, 10);
	set(&f->members[2], 10, 100, 10);
	f->members[1].piece = f->members[2].piece = 2;
	assert_int_equal(take(f, UINT64_MAX), 4);
	assert_int_equal(f->members[1].calls, 1);
	assert_int_equal(f->members[2].calls, 1);
	free_fixture(f);
}

/* A silent member holds back the others for the slack, and what it has then is late. */
static void test_slack(void **state)
{
	struct fixture *f = new_fixture(true, true);
	uint64_t start = clock_monotonic();

	(void)state;
	join_set_slack(f->join, 50 * MS);
	set(&f->members[0], 1, start, 0);
	set(&f->members[1], 1, start, 0);
	f->members[0].complete = f->members[1].complete = UINT64_MAX / 2;
	assert_int_equal(take(f, UINT64_MAX), 0);
	while (!take(f, UINT64_MAX))
		assert_true(clock_monotonic() < start + 5000ull * MS);
	assert_true(clock_monotonic() >= start + 50 * MS);
	assert_int_equal(take(f, UINT64_MAX), 0);
	set(&f->members[2], 2, start - 10, 5);
	assert_int_equal(take(f, UINT64_MAX), 2);
	assert_int_equal(f->out[0].time, start - 10);
	assert_true(f->out[0].flags & EVENT_LATE);
	assert_true(f->out[1].flags & EVENT_LATE);
	check_member(f, &f->out[0]);
	assert_non_null(strstr(f->join->notice.text, "host was silent for more than 50 ms"));
	f->join->notice.text[0] = 0;
	f->members[2].times[2] = start - 1;
	f->members[2].n = 3;
	assert_int_equal(take(f, UINT64_MAX), 1);
	assert_string_equal(f->join->notice.text, ""); /* it is told once */
	free_fixture(f);
}

/* Intervals end although nothing happens, and a member without clock does not make it live. */
static void test_clock(void **state)
{
	struct fixture *f = new_fixture(false, true);

	(void)state;
	assert_false(f->join->info.is_recorded);
	assert_true(f->join->ops->now(f->join) != UINT64_MAX);
	assert_true(f->join->start != UINT64_MAX);
	free_fixture(f);
	f = new_fixture(false, false);
	assert_true(f->join->ops->now(f->join) == UINT64_MAX);
	assert_true(f->join->start == UINT64_MAX);
	free_fixture(f);
}

/* The end of the remotes is not the end while this machine has events. */
static void test_end(void **state)
{
	struct fixture *f = new_fixture(true, true);

	(void)state;
	f->members[1].ended = f->members[2].ended = true;
	assert_int_equal(take(f, UINT64_MAX), 0);
	set(&f->members[0], 3, clock_monotonic(), 1);
	assert_int_equal(take(f, UINT64_MAX), 3);
	f->join->ops->stop(f->join);
	assert_true(f->members[0].stopped && f->members[1].stopped);
	assert_int_equal(take(f, UINT64_MAX), -ENODATA);
	free_fixture(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	cmocka_unit_test(test_horizon),
		cmocka_unit_test(test_no_time), cmocka_unit_test(test_asks_once),
		cmocka_unit_test(test_slack),	cmocka_unit_test(test_clock),
		cmocka_unit_test(test_end),
	};

	return cmocka_run_group_tests_name("join", tests, NULL, NULL);
}
