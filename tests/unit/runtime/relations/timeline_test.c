/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "event.h"
#include "relations/timeline.h"

static void keeps_payload_and_chain(void **state)
{
	uint8_t raw[13] = "twelve bytes";
	uint64_t chain[3] = {2, 0xffffffff81000000, 0x400000};
	struct event ev = {.time = 5, .raw = raw, .raw_size = 13, .chain = chain, .tid = 42};
	struct timeline *tl = timeline_new(0);
	struct event *kept = timeline_keep(tl, &ev);

	(void)state;
	memset(raw, 0, sizeof(raw));
	memset(chain, 0, sizeof(chain));
	assert_ptr_not_equal(kept, &ev);
	assert_int_equal(kept->tid, 42);
	assert_true(kept->time == 5);
	assert_int_equal(kept->flags, EVENT_KEPT);
	assert_int_equal(kept->raw_size, 13);
	assert_string_equal((const char *)kept->raw, "twelve bytes");
	assert_int_equal((uintptr_t)kept->raw % 8, 0);
	assert_int_equal((uintptr_t)kept->chain % 8, 0);
	assert_int_equal(kept->chain[0], 2);
	assert_true(kept->chain[1] == 0xffffffff81000000 && kept->chain[2] == 0x400000);
	timeline_release(tl, kept);
	timeline_free(tl);
}

static void keeps_events_without_payload(void **state)
{
	struct event ev = {.tid = 1, .flags = EVENT_LATE};
	struct timeline *tl = timeline_new(0);
	struct event *kept = timeline_keep(tl, &ev);

	(void)state;
	assert_null(kept->raw);
	assert_null(kept->chain);
	assert_int_equal(kept->flags, EVENT_LATE | EVENT_KEPT);
	timeline_free(tl);
}

/* Short payloads are copied in a different way than long ones. */
static void copies_payloads_of_any_size(void **state)
{
	enum { MOST = 600 };
	uint8_t raw[MOST];
	struct event *kept[MOST];
	struct timeline *tl = timeline_new(0);

	(void)state;
	for (int i = 0; i < MOST; i++)
		raw[i] = (uint8_t)(i * 7 + i / 256);
	for (uint32_t size = 0; size < MOST; size++) {
		struct event ev = {.raw = raw, .raw_size = size};

		kept[size] = timeline_keep(tl, &ev);
	}
	for (uint32_t size = 0; size < MOST; size++)
		assert_memory_equal(kept[size]->raw, raw, size);
	timeline_free(tl);
}

/* A chunk stays while one of its events is referenced, whatever happens to the others. */
static void one_reference_holds_a_chunk(void **state)
{
	enum { EVENTS = 5000 };
	struct event *kept[EVENTS];
	struct timeline *tl = timeline_new(0);

	(void)state;
	for (int i = 0; i < EVENTS; i++)
		kept[i] = timeline_keep(tl, &(struct event){.tid = i});
	for (int i = 0; i < EVENTS; i++)
		if (i != EVENTS / 2)
			timeline_release(tl, kept[i]);
	assert_int_equal(timeline_bytes(tl), 64 << 10);
	for (int i = 0; i < EVENTS; i++)
		assert_int_equal(timeline_keep(tl, &(struct event){.tid = -1})->tid, -1);
	assert_int_equal(kept[EVENTS / 2]->tid, EVENTS / 2);
	timeline_free(tl);
}

static void lives_until_the_last_release(void **state)
{
	struct event ev = {.tid = 1};
	struct timeline *tl = timeline_new(0);
	struct event *kept = timeline_keep(tl, &ev);

	(void)state;
	timeline_retain(kept);
	timeline_release(tl, kept);
	assert_int_equal(timeline_bytes(tl), 64 << 10);
	assert_int_equal(kept->tid, 1);
	timeline_release(tl, kept);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void memory_follows_demand(void **state)
{
	enum { WINDOW = 1000, EVENTS = 200000 };
	uint8_t raw[64] = {0};
	struct event ev = {.raw = raw, .raw_size = sizeof(raw)};
	struct event *window[WINDOW] = {NULL};
	struct timeline *tl = timeline_new(0);

	(void)state;
	for (int i = 0; i < EVENTS; i++) {
		if (window[i % WINDOW])
			timeline_release(tl, window[i % WINDOW]);
		ev.tid = i;
		window[i % WINDOW] = timeline_keep(tl, &ev);
		assert_non_null(window[i % WINDOW]);
		assert_true(timeline_bytes(tl) <= 512 << 10);
	}
	for (int i = 0; i < WINDOW; i++)
		timeline_release(tl, window[i]);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void refuses_beyond_its_limit(void **state)
{
	static uint8_t raw[65536];
	uint64_t chain[1] = {UINT64_MAX};
	struct event ev = {.raw = raw, .raw_size = sizeof(raw)};
	struct event *kept[64];
	struct timeline *tl = timeline_new(1 << 20);
	int n = 0;

	(void)state;
	while ((kept[n] = timeline_keep(tl, &ev)))
		n++;
	assert_in_range(n, 14, 16);
	assert_true(timeline_bytes(tl) <= 1 << 20);
	timeline_release(tl, kept[3]);
	kept[3] = timeline_keep(tl, &ev);
	assert_non_null(kept[3]);
	while (n)
		timeline_release(tl, kept[--n]);
	assert_int_equal(timeline_bytes(tl), 0);
	ev.raw_size = UINT32_MAX;
	assert_null(timeline_keep(tl, &ev));
	ev.raw_size = 8;
	ev.chain = chain;
	assert_null(timeline_keep(tl, &ev));
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void tiny_bound_still_holds_a_chunk(void **state)
{
	struct event ev = {.tid = 3};
	struct timeline *tl = timeline_new(1);
	int n = 0;

	(void)state;
	while (timeline_keep(tl, &ev))
		n++;
	assert_in_range(n, 100, (64 << 10) / sizeof(ev));
	timeline_free(tl);
}

/* Keeping and releasing in any order, all sizes: contents stay, and all memory is released. */
static void survives_any_order(void **state)
{
	enum { SLOTS = 500, STEPS = 50000 };
	static uint8_t raw[65536];
	uint64_t chain[128] = {127};
	struct event *kept[SLOTS] = {NULL};
	struct timeline *tl = timeline_new(0);
	unsigned int seed = 1;

	(void)state;
	for (int i = 0; i < STEPS; i++) {
		struct event **slot = &kept[rand_r(&seed) % SLOTS];
		struct event ev = {.key = rand_r(&seed), .raw = raw, .chain = chain};

		if (*slot) {
			assert_memory_equal((*slot)->raw, &(*slot)->key, 8);
			assert_int_equal((*slot)->chain[(*slot)->chain[0]], (*slot)->key);
			timeline_release(tl, *slot);
			*slot = NULL;
			continue;
		}
		ev.raw_size = 8 + rand_r(&seed) % (rand_r(&seed) % 64 ? 200 : 65528);
		memcpy(raw, &ev.key, 8);
		chain[0] = 1 + rand_r(&seed) % 127;
		chain[chain[0]] = ev.key;
		*slot = timeline_keep(tl, &ev);
		assert_non_null(*slot);
	}
	for (int i = 0; i < SLOTS; i++)
		if (kept[i])
			timeline_release(tl, kept[i]);
	assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_payload_and_chain),
		cmocka_unit_test(keeps_events_without_payload),
		cmocka_unit_test(copies_payloads_of_any_size),
		cmocka_unit_test(one_reference_holds_a_chunk),
		cmocka_unit_test(lives_until_the_last_release),
		cmocka_unit_test(memory_follows_demand),
		cmocka_unit_test(refuses_beyond_its_limit),
		cmocka_unit_test(tiny_bound_still_holds_a_chunk),
		cmocka_unit_test(survives_any_order),
	};

	return cmocka_run_group_tests_name("timeline", tests, NULL, NULL);
}
