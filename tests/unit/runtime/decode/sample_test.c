/* SPDX-License-Identifier: GPL-2.0-only */
/* A sample with all parts is built in the kernel's order. Each part must be found, in each
 * truncated sample only the parts that are whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "event.h"
#include "decode/sample.h"

enum { CLASS = EVENT_FIRST };

static const struct perf_event_attr attr = {
	.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_CPU |
		       PERF_SAMPLE_READ | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW |
		       PERF_SAMPLE_BRANCH_STACK | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER |
		       PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_TRANSACTION |
		       PERF_SAMPLE_REGS_INTR | PERF_SAMPLE_PHYS_ADDR | PERF_SAMPLE_CGROUP,
	.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID,
	.sample_regs_user = 0xb,
	.sample_regs_intr = 0x3,
};

static const uint64_t sample[] = {
	0x1000,
	1 | 2ull << 32,
	0x2000,
	3, /* IP, TID, ADDR, CPU */
	2,
	11,
	1,
	12,
	2, /* READ */
	3,
	0x10,
	0x11,
	0x12,		/* CALLCHAIN */
	4 | 7ull << 32, /* RAW: 4 bytes */
	1,
	0x20,
	0x21,
	0x22, /* BRANCH_STACK */
	2,
	0x30,
	0x31,
	0x32, /* REGS_USER */
	16,
	0x40,
	0x41,
	16, /* STACK_USER */
	0x50,
	0x51,
	0x52, /* WEIGHT, DATA_SRC, TRANSACTION */
	2,
	0x60,
	0x61, /* REGS_INTR */
	0x70, /* PHYS_ADDR */
	0x80, /* CGROUP */
};
enum { WORDS = sizeof(sample) / sizeof(sample[0]) };

static const struct {
	uint64_t bit;
	uint32_t at, size;
} expected[] = {
	{PERF_SAMPLE_READ, 4, 5},	  {PERF_SAMPLE_CALLCHAIN, 9, 4},
	{PERF_SAMPLE_RAW, 13, 1},	  {PERF_SAMPLE_BRANCH_STACK, 14, 4},
	{PERF_SAMPLE_REGS_USER, 18, 4},	  {PERF_SAMPLE_STACK_USER, 22, 4},
	{PERF_SAMPLE_WEIGHT, 26, 1},	  {PERF_SAMPLE_DATA_SRC, 27, 1},
	{PERF_SAMPLE_TRANSACTION, 28, 1}, {PERF_SAMPLE_REGS_INTR, 29, 3},
	{PERF_SAMPLE_PHYS_ADDR, 32, 1},	  {PERF_SAMPLE_CGROUP, 33, 1},
};
enum { PARTS = sizeof(expected) / sizeof(expected[0]) };

static void first_words(void **state)
{
	(void)state;
	assert_int_equal(sample_offset(attr.sample_type, PERF_SAMPLE_IP), 0);
	assert_int_equal(sample_offset(attr.sample_type, PERF_SAMPLE_ADDR), 16);
	assert_int_equal(sample_offset(attr.sample_type, PERF_SAMPLE_PERIOD), -1);
	assert_int_equal(sample_offset(PERF_SAMPLE_PERIOD | PERF_SAMPLE_TIME, PERF_SAMPLE_PERIOD),
			 8);
}

static void each_part(void **state)
{
	(void)state;
	for (uint32_t words = 0; words <= WORDS; words++) {
		uint64_t *cut = malloc(words * 8 + 1); /* exactly this size, for the sanitizers */

		memcpy(cut, sample, words * 8);
		for (int i = 0; i < PARTS; i++) {
			uint32_t size = 0;
			const uint64_t *part =
				sample_part(&attr, cut, words, expected[i].bit, &size);

			if (words < expected[i].at + expected[i].size) {
				assert_null(part);
				continue;
			}
			assert_ptr_equal(part, cut + expected[i].at);
			assert_int_equal(size, expected[i].size);
		}
		free(cut);
	}
}

static void wrong_lengths(void **state)
{
	static const uint32_t lengths[] = {4, 9, 14, 22};
	static const uint64_t lies[] = {1000,	    UINT32_MAX,	      1ull << 32,
					1ull << 61, (1ull << 62) + 1, UINT64_MAX};

	(void)state;
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 6; j++) {
			uint64_t bad[WORDS];
			uint32_t size;

			memcpy(bad, sample, sizeof(bad));
			bad[lengths[i]] = lies[j];
			assert_null(sample_part(&attr, bad, WORDS, PERF_SAMPLE_PHYS_ADDR, &size));
		}
}

/* A task without user mode has no registers, which one word says. */
static void no_registers(void **state)
{
	static const struct perf_event_attr regs = {.sample_type = PERF_SAMPLE_REGS_USER |
								   PERF_SAMPLE_WEIGHT,
						    .sample_regs_user = 0xff};
	static const uint64_t words[] = {0, 42};
	uint32_t size;

	(void)state;
	assert_ptr_equal(sample_part(&regs, words, 2, PERF_SAMPLE_WEIGHT, &size), words + 1);
}

static struct event decode(enum payload payload)
{
	struct decoder *d = decoder_new();
	struct perf_event_header *rec = malloc(sizeof(*rec) + sizeof(sample));
	struct event ev;

	*rec = (struct perf_event_header){.type = PERF_RECORD_SAMPLE,
					  .size = sizeof(*rec) + sizeof(sample)};
	memcpy(rec + 1, sample, sizeof(sample));
	assert_int_equal(decoder_add_attr(d, &attr, NULL), 0);
	decoder_set_payload(d, 0, payload);
	assert_int_equal(decoder_add_class(d, 0, CLASS, 0), 0);
	assert_ptr_equal(decoder_attr_of_class(d, CLASS), decoder_attr(d, 0));
	assert_null(decoder_attr_of_class(d, CLASS + 1));
	assert_int_equal(decoder_check(d, NULL), 0);
	assert_int_equal(decoder_decode(d, rec, &ev, 1), 1);
	if (payload != PAYLOAD_RAW)
		assert_memory_equal(ev.raw, sample, ev.raw_size);
	free(rec);
	decoder_free(d);
	return ev;
}

static void payloads(void **state)
{
	(void)state;
	assert_int_equal(decode(PAYLOAD_RAW).raw_size, 4);
	assert_int_equal(decode(PAYLOAD_WORDS).raw_size, 4 * 8);
	assert_int_equal(decode(PAYLOAD_SAMPLE).raw_size, WORDS * 8);
	assert_int_equal(sample_payload(PERF_SAMPLE_IP | PERF_SAMPLE_ADDR), PAYLOAD_WORDS);
	assert_int_equal(sample_payload(PERF_SAMPLE_IP | PERF_SAMPLE_REGS_USER), PAYLOAD_SAMPLE);
}

static void recorded_counts(void **state)
{
	const struct perf_event_attr own = {.sample_type = PERF_SAMPLE_READ | PERF_SAMPLE_RAW,
					    .read_format = PERF_FORMAT_ID};
	const uint64_t words[] = {3, 4711, 77, 4 | 7ull << 32};

	(void)state;
	assert_ptr_equal(sample_read_before(&own, words + 3), words + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_words),	 cmocka_unit_test(each_part),
		cmocka_unit_test(wrong_lengths), cmocka_unit_test(no_registers),
		cmocka_unit_test(payloads),	 cmocka_unit_test(recorded_counts),
	};

	return cmocka_run_group_tests_name("sample", tests, NULL, NULL);
}
