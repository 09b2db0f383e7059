/* SPDX-License-Identifier: GPL-2.0-only */
/* A BPF ring buffer in plain memory: sorted records, those that are discarded or still being
 * written, and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <linux/bpf.h>
#include "event.h"
#include "live/ring.h"

enum { PAGE = 4096, MAX = 512 };

/* The consumer's page, the producer's page, and the data twice. */
struct bpf_producer {
	uint8_t pages[2 * PAGE + 2 * PAGE] __attribute__((aligned(PAGE)));
};

static uint64_t *bpf_head(struct bpf_producer *p)
{
	return (uint64_t *)(p->pages + PAGE);
}

static void bpf_write(struct bpf_producer *p, uint64_t pos, const void *bytes, uint64_t size)
{
	for (uint64_t i = 0; i < size; i++)
		for (int half = 0; half < 2; half++)
			p->pages[2 * PAGE + half * PAGE + (pos + i) % PAGE] =
				((const uint8_t *)bytes)[i];
}

/* Writes a record whose second word is its time. Returns its place. */
static uint64_t bpf_put(struct bpf_producer *p, uint32_t flags, uint64_t time, uint32_t size)
{
	uint64_t pos = *bpf_head(p), record[64] = {size | flags, 7, time};

	bpf_write(p, pos, record, BPF_RINGBUF_HDR_SZ + size);
	*bpf_head(p) += (BPF_RINGBUF_HDR_SZ + size + 7) / 8 * 8;
	return pos;
}

/* Takes all records. */
static int take(struct ring *r, struct slot *out)
{
	int n = ring_peek(r) == UINT64_MAX ? 0 : ring_count(r, UINT64_MAX, MAX);

	ring_move(r, out, n);
	return n;
}

static void bpf_records(void **state)
{
	struct bpf_producer *p = aligned_alloc(PAGE, sizeof(*p));
	const uint32_t committed = 16;
	struct slot out[MAX];
	uint64_t busy, time = 31;
	struct ring *r;

	(void)state;
	memset(p, 0, sizeof(*p));
	r = ring_new_bpf(p->pages, p->pages + PAGE, PAGE, 8, 9 << 16);
	ring_set_number(r, 3);
	/* Discarded records are not seen; the others are sorted by time. */
	bpf_put(p, 0, 20, 16);
	bpf_put(p, BPF_RINGBUF_DISCARD_BIT, 5, 16);
	bpf_put(p, 0, 10, 17);
	ring_snapshot(r);
	assert_int_equal(take(r, out), 2);
	assert_int_equal(out[0].time, 10);
	assert_int_equal(out[1].time, 20);
	assert_int_equal(out[0].ring, 3);
	assert_int_equal(out[0].flags, 9 << 16);
	assert_int_equal(*(const uint32_t *)out[0].rec, 17);
	ring_release(r);
	assert_int_equal(*(uint64_t *)p->pages, *bpf_head(p));

	/* A record that is being written holds back those after it, and their space. */
	busy = bpf_put(p, BPF_RINGBUF_BUSY_BIT, 30, 16);
	bpf_put(p, 0, 31, 16);
	ring_snapshot(r);
	assert_int_equal(take(r, out), 0);
	ring_release(r);
	assert_int_equal(*(uint64_t *)p->pages, busy);
	bpf_write(p, busy, &committed, sizeof(committed));
	ring_snapshot(r);
	assert_int_equal(take(r, out), 2);
	ring_release(r);

	/* Around the end, many times; one that is too short for a time has that of the one before.
	 */
	for (uint32_t i = 0; i < 1000; i++) {
		time = i % 100 < 8 ? time : 100 + i;
		bpf_put(p, 0, 100 + i, 8 + i % 100);
		ring_snapshot(r);
		assert_int_equal(take(r, out), 1);
		assert_int_equal(*(const uint32_t *)out[0].rec, 8 + i % 100);
		assert_int_equal(out[0].time, time);
		ring_release(r);
	}

	/* Nothing after the freeze. */
	ring_freeze(r);
	bpf_put(p, 0, 2000, 16);
	assert_int_equal(ring_snapshot(r), 0);
	assert_int_equal(ring_peek(r), UINT64_MAX);
	ring_free(r);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bpf_records)};

	return cmocka_run_group_tests_name("ring_bpf", tests, NULL, NULL);
}
