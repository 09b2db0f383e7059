/* SPDX-License-Identifier: GPL-2.0-only */
/* A made-up source is pushed to files, which the reader of recordings reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <cmocka.h>
#include "clocks/clock_axis.h"
#include "made_push.h"

/* A file is compressed, and a recording; the other class and losses reach the session. */
static void file(void **state)
{
	enum { N = 30000 };
	struct run run = open_run((const char *[]){path, NULL}, NULL);
	struct push_totals totals;
	struct content content;

	(void)state;
	run.made->loss_after = 5000;
	produce(&run, N);
	assert_int_equal(end_run(&run), -ENODATA);
	push_read_totals(run.push, 0, &totals);
	assert_int_equal(totals.events, pushed_below(N));
	assert_int_equal(totals.sent, pushed_below(N));
	assert_int_equal(totals.dropped, 0);
	assert_int_equal(run.local, N / 3);
	assert_int_equal(run.losses, 1);
	run.source->ops->free(run.source);
	content = read_recording(path, 0);
	assert_int_equal(content.samples, pushed_below(N));
	assert_int_equal(content.losses, 1);
	assert_int_equal(content.lost, 7);
}

/* All times are sent on another clock, also the end of a loss, which is not the time of its slot.
 */
static void shifted_times(void **state)
{
	enum { N = 1000, SHIFT = 1000000000 };
	const struct axis_options options = {.offset = SHIFT};
	struct run run = open_run((const char *[]){path, NULL}, NULL);
	const struct source_clock clock = {.id = CLOCK_MONOTONIC};
	struct clock_axis *axis = clock_axis_new(&options, &clock, &err);
	struct content content;

	(void)state;
	assert_non_null(axis);
	push_set_clock(run.push, axis, SHIFT);
	run.made->loss_after = 500;
	produce(&run, N);
	end_run(&run);
	run.source->ops->free(run.source);
	content = read_recording(path, SHIFT);
	assert_int_equal(content.samples, pushed_below(N));
	assert_in_range(content.loss_end, time_of(500) + SHIFT, time_of(N) + SHIFT);
}

static uint64_t convert(struct source *src, uint64_t time)
{
	(void)src;
	return time + 5;
}

/* The session converts the end of a loss. */
static void other_clock(void **state)
{
	struct source_ops ops = made_ops;
	struct run run;

	(void)state;
	ops.convert = convert;
	run = prepare_from(&ops, (const char *[]){path, NULL}, NULL);
	assert_int_equal(run.source->ops->convert(run.source, 100), 105);
	run.source->ops->free(run.source);
}

static void limit(void **state)
{
	struct run run = open_run((const char *[]){path, NULL}, NULL);

	(void)state;
	push_limit(run.push, 1000);
	run.made->n = 10000;
	while (step(&run) >= 0)
		;
	run.source->ops->free(run.source);
	assert_int_equal(read_recording(path, 0).samples, 1000);
}

static void full_disk(void **state)
{
	struct run run = prepare_run((const char *[]){"/dev/full", NULL}, NULL);

	(void)state;
	assert_int_equal(run.source->ops->start(run.source, &err), -EIO);
	assert_string_equal(err.text, "cannot write /dev/full: No space left on device");
	run.source->ops->free(run.source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(file, clean),
		cmocka_unit_test_teardown(shifted_times, clean),
		cmocka_unit_test_teardown(other_clock, clean),
		cmocka_unit_test_teardown(limit, clean),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests_name("push", tests, make_dir, remove_dir);
}
