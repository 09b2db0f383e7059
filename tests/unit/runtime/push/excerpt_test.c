/* SPDX-License-Identifier: GPL-2.0-only */
/* Some records of a made-up source are written to a file, which the reader of recordings reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "made_push.h"
#include "push/excerpt.h"

static struct excerpt *start(struct run *run, const char *file)
{
	const struct event_request pushed = {.name = "pushed", .class = PUSHED, .attr.config = 1};
	const struct event_request *events[] = {&pushed};
	struct excerpt *x;

	*run = prepare_run((const char *[]){NULL}, NULL);
	x = excerpt_new(&run->made->source, file, events, 1, &err);
	if (!x)
		fail_msg("%s", err.text);
	return x;
}

static bool is_wanted(const struct slot *slot)
{
	const struct sample *s = slot->rec;

	return s->header.type != PERF_RECORD_SAMPLE || (s->value && s->id != LOCAL_ID);
}

/* Returns how often a recording names task 11. */
static int names_in(const char *file, const char *name)
{
	const struct source_target target = {0};
	struct source *src = recording_open(file, &err);
	struct slot slots[BATCH];
	int n, found = 0;

	assert_non_null(src);
	assert_int_equal(src->ops->open(src, &target, &err), 0);
	while ((n = src->ops->next(src, slots, BATCH, UINT64_MAX, &err)) >= 0) {
		for (int i = 0; i < n; i++) {
			const struct perf_event_header *rec = slots[i].rec;
			const uint32_t *words = (const uint32_t *)(rec + 1);

			if (rec->type != PERF_RECORD_COMM)
				continue;
			assert_int_equal(words[0], 10);
			assert_int_equal(words[1], 11);
			assert_string_equal((const char *)(words + 2), name);
			assert_int_equal(slots[i].time, time_of(1));
			found++;
		}
	}
	src->ops->free(src);
	return found;
}

/* More than is written at once. */
static void chosen_records(void **state)
{
	enum { N = 60000 };
	struct run run;
	struct excerpt *x = start(&run, path);
	struct slot slots[BATCH];
	struct content content;
	int n;

	(void)state;
	run.made->loss_after = 5000;
	run.made->n = N;
	assert_int_equal(excerpt_name(x, 10, 11, "worker", time_of(1), &err), 0);
	while ((n = made_next(&run.made->source, slots, BATCH, UINT64_MAX, &err)) > 0)
		for (int i = 0; i < n; i++)
			if (is_wanted(&slots[i]))
				assert_int_equal(excerpt_add(x, &slots[i], &err), 0);
	assert_int_equal(excerpt_end(x, &err), 0);
	excerpt_free(x);
	run.source->ops->free(run.source);
	content = read_recording(path, 0);
	assert_int_equal(content.samples, pushed_below(N));
	assert_int_equal(content.losses, 1);
	assert_int_equal(content.lost, 7);
	assert_int_equal(names_in(path, "worker"), 1);
}

static void no_records(void **state)
{
	struct run run;
	struct excerpt *x = start(&run, path);

	(void)state;
	assert_int_equal(excerpt_end(x, &err), 0);
	excerpt_free(x);
	run.source->ops->free(run.source);
	assert_int_equal(read_recording(path, 0).samples, 0);
}

static void full_disk(void **state)
{
	struct run run;
	struct excerpt *x = start(&run, "/dev/full");

	(void)state;
	assert_int_equal(excerpt_end(x, &err), -EIO);
	assert_string_equal(err.text, "cannot write /dev/full: No space left on device");
	excerpt_free(x);
	run.source->ops->free(run.source);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(chosen_records, clean),
		cmocka_unit_test_teardown(no_records, clean),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests_name("excerpt", tests, make_dir, remove_dir);
}
