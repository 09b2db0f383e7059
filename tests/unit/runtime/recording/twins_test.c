/* SPDX-License-Identifier: GPL-2.0-only */
/* Twins: what two attributes of the same tracepoint have sampled is found once. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "error.h"
#include "recording/twins.h"

enum { FIRST = 10 }; /* id of the first attribute */

struct sample {
	struct perf_event_header header;
	uint64_t id, time, cpu;
	uint32_t raw_size, raw[3];
};

static struct decoder *decoder_of(const uint64_t *configs, const uint64_t *periods, int n)
{
	struct decoder *d = decoder_new();
	struct error err;

	for (int i = 0; i < n; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_TRACEPOINT,
			.size = sizeof(attr),
			.config = configs[i],
			.sample_period = periods[i],
			.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
				       PERF_SAMPLE_RAW,
		};

		assert_int_equal(decoder_add_attr(d, &attr, &err), i);
		assert_int_equal(decoder_add_id(d, FIRST + i, i), 0);
	}
	assert_int_equal(decoder_check(d, &err), 0);
	return d;
}

static bool have(struct twins *t, int index, uint32_t cpu, uint32_t data, uint64_t time)
{
	struct sample s = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(s)},
		.id = FIRST + index,
		.time = time,
		.cpu = cpu,
		.raw_size = sizeof(s.raw),
		.raw = {data, 7, 8},
	};

	return twins_have(t, &s.header, cpu, time);
}

static void test_twins(void **state)
{
	const uint64_t configs[] = {5, 6, 5, 5}, periods[] = {1, 1, 1, 100};
	struct decoder *d = decoder_of(configs, periods, 4);
	struct twins *t;

	(void)state;
	assert_int_equal(twins_new(d, 2, &t), 0);
	assert_non_null(t);
	for (uint64_t time = 1000; time < 5000; time += 1000) { /* the same data each time */
		assert_false(have(t, 0, 0, 1, time));
		assert_false(have(t, 1, 0, 1, time));
		assert_false(have(t, 0, 1, 1, time));
		assert_true(have(t, 2, 0, 1, time + 90));
		assert_true(have(t, 2, 1, 1, time + 90));
		assert_false(have(t, 3, 0, 1, time + 95));
	}
	assert_false(have(t, 2, 0, 2, 5000)); /* the first one may be that of any twin, or alone */
	assert_false(have(t, 2, 0, 3, 5001));
	assert_true(have(t, 0, 0, 3, 5002));
	assert_false(have(t, 2, 0, 4, 6000));
	assert_false(have(t, 0, 0, 4, 1000000000)); /* much later */
	assert_int_equal(twins_count(t), 9);
	twins_free(t);
	decoder_free(d);
}

static void test_none(void **state)
{
	const uint64_t configs[] = {5, 6}, periods[] = {1, 1};
	struct decoder *d = decoder_of(configs, periods, 2);
	struct twins *t;

	(void)state;
	assert_int_equal(twins_new(d, 2, &t), 0);
	assert_null(t);
	assert_false(twins_have(NULL, NULL, 0, 0));
	assert_int_equal(twins_count(NULL), 0);
	twins_free(NULL);
	decoder_free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_twins),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests_name("twins", tests, NULL, NULL);
}
