/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>
#include <cmocka.h>
#include "event.h"
#include "decode/records.h"

/* A string of a payload, as views read it. */
static const char *text(const struct event *ev, uint32_t word)
{
	uint32_t at = word & 0xffff, n = word >> 16;

	assert_true(n > 0 && at + n <= ev->raw_size);
	assert_int_equal(ev->raw[at + n - 1], 0);
	return (const char *)ev->raw + at;
}

static bool convert(struct records *r, uint32_t type, uint16_t misc, const void *payload,
		    uint32_t size, struct event *ev)
{
	struct perf_event_header rec = {.type = type, .misc = misc, .size = sizeof(rec) + size};

	*ev = (struct event){.raw = payload, .raw_size = size};
	return records_event(r, &rec, ev);
}

static void payloads(void **state)
{
	static const struct {
		uint64_t addr;
		uint32_t len;
		uint16_t type, flags;
		char name[16];
	} ksymbol = {0xffffffffc0001000, 23, 1, 1, "bpf_prog_1"};
	static const struct {
		uint16_t type, flags;
		uint32_t id;
		uint8_t tag[8];
	} bpf = {1, 0, 443, {0x62, 0xef, 0xe5, 0x9b, 0x7d, 0x4f, 0x5e, 0x01}};
	static const struct {
		uint64_t addr;
		uint16_t old_len, new_len;
		uint8_t bytes[12];
	} poke = {0xffffffff81000000, 5, 2, {0x0f, 0x1f, 0x44, 0, 0, 0xeb, 0x44}};
	static const uint64_t namespaces[] = {
		(uint64_t)8 << 32 | 7, 2, 4, 4026531833, 4, 4026531838};
	struct records *r = records_new();
	const struct record_namespaces *spaces;
	const struct record_ksymbol *symbol;
	const struct record_text_poke *poked;
	const struct record_bpf_event *prog;
	struct event ev[4];

	(void)state;
	assert_true(convert(r, PERF_RECORD_KSYMBOL, 0, &ksymbol, sizeof(ksymbol), &ev[0]));
	assert_true(convert(r, PERF_RECORD_BPF_EVENT, 0, &bpf, sizeof(bpf), &ev[1]));
	assert_true(convert(r, PERF_RECORD_TEXT_POKE, 0, &poke, sizeof(poke), &ev[2]));
	assert_true(convert(r, PERF_RECORD_NAMESPACES, 0, namespaces, sizeof(namespaces), &ev[3]));
	/* All records of a batch are valid at once. */
	symbol = (const void *)ev[0].raw;
	assert_true(symbol->addr == ksymbol.addr && symbol->len == 23 && symbol->flags == 1);
	assert_string_equal(text(&ev[0], symbol->name), "bpf_prog_1");
	prog = (const void *)ev[1].raw;
	assert_int_equal(prog->id, 443);
	assert_string_equal(text(&ev[1], prog->tag), "62efe59b7d4f5e01");
	poked = (const void *)ev[2].raw;
	assert_string_equal(text(&ev[2], poked->old_bytes), "0f1f440000");
	assert_string_equal(text(&ev[2], poked->new_bytes), "eb44");
	/* A kernel whose record has fewer members. */
	spaces = (const void *)ev[3].raw;
	assert_true(spaces->pid == 7 && spaces->tid == 8 && spaces->nr == 2);
	assert_true(spaces->net == 4026531833 && spaces->uts == 4026531838 && !spaces->mnt);
	assert_int_equal(ev[3].raw_size, sizeof(*spaces));
	records_begin_batch(r);
	records_free(r);
}

static void mappings_of_both_kinds(void **state)
{
	uint64_t record[12] = {(uint64_t)8 << 32 | 7, 0x1000, 0x2000, 0x3000};
	struct records *r = records_new();
	const struct record_mmap *map;
	struct event ev;

	(void)state;
	strcpy((char *)&record[4], "/old"); /* MMAP: after pgoff */
	strcpy((char *)&record[8], "/new"); /* MMAP2: after device, inode, prot */
	assert_true(convert(r, PERF_RECORD_MMAP, 0, record, sizeof(record), &ev));
	map = (const void *)ev.raw;
	assert_true(map->addr == 0x1000 && map->len == 0x2000 && map->pgoff == 0x3000);
	assert_string_equal(text(&ev, map->filename), "/old");
	assert_true(convert(r, PERF_RECORD_MMAP2, 0, record, sizeof(record), &ev));
	map = (const void *)ev.raw;
	assert_string_equal(text(&ev, map->filename), "/new");
	strcpy((char *)&record[7], "/older/new"); /* Linux 3.12: after device and inode */
	assert_true(convert(r, PERF_RECORD_MMAP2, 0, record, sizeof(record), &ev));
	map = (const void *)ev.raw;
	assert_string_equal(text(&ev, map->filename), "/older/new");
	records_free(r);
}

static void names(void **state)
{
	uint64_t record[3] = {(uint64_t)8 << 32 | 7};
	struct records *r = records_new();
	const struct record_comm *comm;
	struct event ev;

	(void)state;
	memset(&record[1], 'x', 16); /* no NUL */
	for (int exec = 0; exec < 2; exec++) {
		assert_true(convert(r, PERF_RECORD_COMM, exec ? PERF_RECORD_MISC_COMM_EXEC : 0,
				    record, sizeof(record), &ev));
		comm = (const void *)ev.raw;
		assert_string_equal(text(&ev, comm->comm), "xxxxxxxxxxxxxxxx");
		assert_int_equal(comm->exec, exec);
	}
	records_free(r);
}

/* Records of all sizes of all types, also with wrong lengths: never a read beyond the end. */
static void wrong_lengths(void **state)
{
	struct records *r = records_new();
	uint32_t accepted = 0;

	(void)state;
	for (uint32_t type = 0; type < 32; type++) {
		for (uint32_t size = 0; size < 200; size++) {
			uint8_t *record = malloc(size + !size);
			struct event ev;

			memset(record, 0xff, size);
			if (convert(r, type, 0, record, size, &ev)) {
				accepted++;
				for (uint32_t i = 0; i < ev.raw_size; i++)
					accepted += ev.raw[i] == 1;
			}
			free(record);
		}
		records_begin_batch(r);
	}
	assert_true(accepted > 0);
	/* More than the place in a word can express. */
	uint8_t *big = calloc(1, 65536);
	struct event ev;

	memset(big + 8, 'x', 65528);
	assert_false(convert(r, PERF_RECORD_CGROUP, 0, big, 65528, &ev));
	assert_true(convert(r, PERF_RECORD_CGROUP, 0, big, 65000, &ev));
	free(big);
	records_free(r);
}

static void requested_kinds(void **state)
{
	(void)state;
	for (int asked = RECORD_NONE; asked < RECORD_KINDS; asked++) {
		struct perf_event_attr attr = {0};

		records_ask(&attr, asked);
		for (int kind = RECORD_NONE; kind < RECORD_KINDS; kind++) {
			bool both_of_tasks = (asked == RECORD_FORK || asked == RECORD_EXIT) &&
					     (kind == RECORD_FORK || kind == RECORD_EXIT);

			assert_int_equal(records_are_asked(&attr, kind),
					 (asked && asked == kind) || both_of_tasks);
		}
	}
	assert_int_equal(records_types(RECORD_MMAP)[0], PERF_RECORD_MMAP2);
	assert_int_equal(records_types(RECORD_MMAP)[2], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(payloads),	   cmocka_unit_test(mappings_of_both_kinds),
		cmocka_unit_test(names),	   cmocka_unit_test(wrong_lengths),
		cmocka_unit_test(requested_kinds),
	};

	return cmocka_run_group_tests_name("records", tests, NULL, NULL);
}
