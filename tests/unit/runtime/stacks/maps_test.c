/* SPDX-License-Identifier: GPL-2.0-only */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <cmocka.h>
#include "stacks/maps.h"
#include "symbols/symbols.h"

struct record {
	uint32_t pid, tid;
	uint64_t addr, len, offset;
	uint32_t maj, min;
	uint64_t inode, generation;
	uint32_t prot, flags;
	char path[64];
};

struct history {
	struct symbols *symbols;
	struct maps *maps;
};

static struct history new_history(bool live)
{
	struct history h = {.symbols = symbols_new(live, NAMES_SHORT)};

	h.maps = maps_new(h.symbols, live);
	assert_non_null(h.maps);
	return h;
}

static void free_history(struct history *h)
{
	maps_free(h->maps);
	symbols_free(h->symbols);
}

static void map_at(struct history *h, int32_t pid, uint64_t addr, uint64_t len, uint64_t offset,
		   const char *path, double time)
{
	struct record r = {pid, pid, addr, len, offset, 8, 1, 0, 0, 5, 2, ""};

	for (const char *c = path; *c; c++)
		r.inode = r.inode * 31 + *c;
	snprintf(r.path, sizeof(r.path), "%s", path);
	maps_record(h->maps, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &r, sizeof(r), time);
}

static void task(struct history *h, uint32_t type, int32_t pid, int32_t parent, double time)
{
	uint32_t ids[6] = {pid, parent, pid, parent};

	maps_record(h->maps, type, 0, ids, sizeof(ids), time);
}

static void exec(struct history *h, int32_t pid, double time)
{
	struct {
		uint32_t pid, tid;
		char comm[16];
	} r = {pid, pid, "prog"};

	maps_record(h->maps, PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, &r, sizeof(r), time);
}

/* In that space addr is in path at offset; path NULL: nowhere. */
static void check_space(struct history *h, uint32_t space, uint64_t addr, const char *path,
			uint64_t offset)
{
	struct place place;
	bool found = maps_find(h->maps, space, addr, &place);

	assert_int_equal(found, path != NULL);
	if (!path)
		return;
	if (!*path) {
		assert_int_equal(place.file, 0);
		return;
	}
	assert_string_equal(symbols_path(h->symbols, place.file), path);
	assert_int_equal(place.offset, offset);
}

static void check(struct history *h, int32_t pid, double time, uint64_t addr, const char *path,
		  uint64_t offset)
{
	check_space(h, maps_space(h->maps, pid, time), addr, path, offset);
}

static void exec_fork_and_exit(void **state)
{
	struct history h = new_history(false);

	(void)state;
	map_at(&h, 10, 0x1000, 0x1000, 0x200, "/bin/sh", 1);
	check(&h, 10, 1, 0x1000, "/bin/sh", 0x200);
	check(&h, 10, 1, 0x1fff, "/bin/sh", 0x11ff);
	check(&h, 10, 1, 0x0fff, NULL, 0);
	check(&h, 10, 1, 0x2000, NULL, 0);
	check(&h, 11, 1, 0x1000, NULL, 0);
	task(&h, PERF_RECORD_FORK, 11, 10, 2);
	check(&h, 11, 2, 0x1000, "/bin/sh", 0x200);
	assert_int_equal(maps_space(h.maps, 11, 2), maps_space(h.maps, 10, 2));
	/* The child loads a library; the parent does not have it. */
	map_at(&h, 11, 0x8000, 0x1000, 0, "/lib/a.so", 3);
	check(&h, 11, 3, 0x8000, "/lib/a.so", 0);
	check(&h, 11, 2, 0x8000, NULL, 0);
	check(&h, 10, 3, 0x8000, NULL, 0);
	exec(&h, 11, 4);
	check(&h, 11, 4, 0x1000, NULL, 0);
	map_at(&h, 11, 0x1000, 0x1000, 0, "/bin/prog", 5);
	check(&h, 11, 6, 0x1000, "/bin/prog", 0);
	check(&h, 11, 3.5, 0x1000, "/bin/sh", 0x200);
	check(&h, 11, 3.5, 0x8000, "/lib/a.so", 0);
	/* After its end, and when the pid is used again. */
	task(&h, PERF_RECORD_EXIT, 11, 10, 7);
	check(&h, 11, 7, 0x1000, "/bin/prog", 0);
	task(&h, PERF_RECORD_FORK, 11, 10, 8);
	check(&h, 11, 8, 0x1000, "/bin/sh", 0x200);
	check(&h, 11, 6, 0x1000, "/bin/prog", 0);
	/* A thread is not a process. */
	task(&h, PERF_RECORD_FORK, 11, 11, 9);
	check(&h, 11, 10, 0x1000, "/bin/sh", 0x200);
	free_history(&h);
}

/* Records are applied before the events between them are looked at. */
static void earlier_mappings(void **state)
{
	struct history h = new_history(false);

	(void)state;
	map_at(&h, 10, 0x1000, 0x1000, 0, "/lib/a.so", 1);
	map_at(&h, 10, 0x1000, 0x1000, 0, "/lib/b.so", 3);
	map_at(&h, 10, 0x1000, 0x1000, 0, "/lib/a.so", 5);
	check_space(&h, maps_space(h.maps, 10, 2), 0x1000, "/lib/a.so", 0);
	check_space(&h, maps_space(h.maps, 10, 4), 0x1000, "/lib/b.so", 0);
	check_space(&h, maps_space(h.maps, 10, 6), 0x1000, "/lib/a.so", 0);
	free_history(&h);
}

static void a_space_keeps_its_meaning(void **state)
{
	struct history h = new_history(false);
	uint32_t first, second, third;

	(void)state;
	map_at(&h, 10, 0x1000, 0x1000, 0, "/bin/prog", 1);
	first = maps_space(h.maps, 10, 1);
	/* A library in a free place: the same space knows more. */
	map_at(&h, 10, 0x10000, 0x4000, 0x1000, "/lib/a.so", 2);
	assert_int_equal(maps_space(h.maps, 10, 2), first);
	check_space(&h, first, 0x13000, "/lib/a.so", 0x4000);
	/* Mapped again as it is, or a part of it: nothing new. */
	map_at(&h, 10, 0x10000, 0x4000, 0x1000, "/lib/a.so", 3);
	map_at(&h, 10, 0x11000, 0x1000, 0x2000, "/lib/a.so", 3);
	map_at(&h, 10, 0x11000, 0x8000, 0x2000, "/lib/a.so", 3);
	assert_int_equal(maps_space(h.maps, 10, 3), first);
	check_space(&h, first, 0x18fff, "/lib/a.so", 0x9fff);
	/* Another library in a part of that place. */
	map_at(&h, 10, 0x12000, 0x1000, 0, "/lib/b.so", 4);
	second = maps_space(h.maps, 10, 4);
	assert_int_not_equal(second, first);
	check_space(&h, first, 0x12000, "/lib/a.so", 0x3000);
	check_space(&h, second, 0x11fff, "/lib/a.so", 0x2fff);
	check_space(&h, second, 0x12000, "/lib/b.so", 0);
	check_space(&h, second, 0x12fff, "/lib/b.so", 0xfff);
	check_space(&h, second, 0x13000, "/lib/a.so", 0x4000);
	/* One across the ends of two, and anonymous memory. */
	map_at(&h, 10, 0x1800, 0xf000, 0, "//anon", 5);
	third = maps_space(h.maps, 10, 5);
	assert_int_not_equal(third, second);
	check_space(&h, third, 0x17ff, "/bin/prog", 0x7ff);
	check_space(&h, third, 0x1800, "", 0);
	check_space(&h, third, 0x107ff, "", 0);
	check_space(&h, third, 0x10800, "/lib/a.so", 0x1800);
	map_at(&h, 10, 0x1800, 0x10, 0x55, "//anon", 6);
	assert_int_equal(maps_space(h.maps, 10, 6), third);
	/* Spaces that have not been requested are changed in place. */
	maps_forget_spaces(h.maps);
	map_at(&h, 10, 0x1000, 0x100000, 0, "/bin/other", 7);
	assert_int_equal(maps_space(h.maps, 10, 7), 1);
	check_space(&h, 1, 0x1000, "/bin/other", 0);
	assert_int_equal(maps_space_before(h.maps, 1), 2);
	check_space(&h, 2, 0x1000, "/bin/prog", 0);
	assert_int_equal(maps_space_before(h.maps, 2), 0);
	assert_int_equal(maps_space_before(h.maps, 3), 0);
	check_space(&h, 3, 0x1000, NULL, 0);
	check_space(&h, UINT32_MAX, 0x1000, NULL, 0);
	check_space(&h, 0, 0x1000, NULL, 0);
	free_history(&h);
}

static void records_of_any_shape(void **state)
{
	static const uint16_t miscs[] = {PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_GUEST_USER,
					 PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_DATA};
	struct history h = new_history(false);
	struct record r = {1, 1, 0x1000, 0x1000, 0, 8, 1, 5, 0, 5, 2, "/bin/x"};
	uint32_t path_at = offsetof(struct record, path);

	(void)state;
	for (uint32_t type = 0; type < 40; type++)
		for (uint32_t size = 0; size < path_at + 4; size++) {
			uint8_t *copy = malloc(size + 1);

			memcpy(copy, &r, size);
			for (uint32_t misc = 0; misc < 1 << 16; misc += 1 << 13)
				maps_record(h.maps, type, misc, copy, size, 1);
			free(copy);
		}
	check(&h, 1, 1, 0x1000, NULL, 0);
	for (size_t i = 0; i < sizeof(miscs) / sizeof(miscs[0]); i++)
		maps_record(h.maps, PERF_RECORD_MMAP2, miscs[i], &r, sizeof(r), 1);
	check(&h, 1, 1, 0x1000, NULL, 0);
	/* Beyond the end of all addresses, of no length, impossible pids. */
	map_at(&h, 2, UINT64_MAX - 10, 20, 0, "/bin/x", 1);
	map_at(&h, 2, 0x1000, 0, 0, "/bin/x", 1);
	map_at(&h, 0, 0x1000, 0x1000, 0, "/bin/x", 1);
	map_at(&h, -1, 0x1000, 0x1000, 0, "/bin/x", 1);
	map_at(&h, 1 << 22, 0x1000, 0x1000, 0, "/bin/x", 1);
	for (int pid = -1; pid < 3; pid++)
		check(&h, pid, 1, 0x1000, NULL, 0);
	check(&h, 2, 1, UINT64_MAX - 5, NULL, 0);
	check(&h, 1 << 22, 1, 0x1000, NULL, 0);
	free_history(&h);
}

static void build_ids_in_records(void **state)
{
	struct history h = new_history(false);
	struct record r = {1, 1, 0x1000, 0x1000, 0x40, 0, 0, 0, 0, 5, 2, "/bin/x"};
	uint16_t misc = PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID;

	(void)state;
	*(uint8_t *)&r.maj = 20;
	maps_record(h.maps, PERF_RECORD_MMAP2, misc, &r, sizeof(r), 1);
	check(&h, 1, 1, 0x1010, "/bin/x", 0x50);
	*(uint8_t *)&r.maj = 255;
	r.pid = 2;
	maps_record(h.maps, PERF_RECORD_MMAP2, misc, &r, sizeof(r), 1);
	check(&h, 2, 1, 0x1010, "/bin/x", 0x50);
	free_history(&h);
}

/* What a recorder lists at its start: tasks with their maps, no copies of the parent's. */
static void listed_processes(void **state)
{
	struct history h = new_history(false);
	uint32_t ids[6] = {20, 10, 20, 10};

	(void)state;
	map_at(&h, 10, 0x1000, 0x1000, 0, "/bin/sh", 0);
	maps_record(h.maps, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC, ids, sizeof(ids), 0);
	map_at(&h, 20, 0x5000, 0x1000, 0, "/bin/prog", 0);
	check(&h, 20, 1, 0x1000, NULL, 0);
	check(&h, 20, 1, 0x5000, "/bin/prog", 0);
	free_history(&h);
}

static void find_me(struct history *h, int32_t pid)
{
	struct place place;
	struct symbol symbol;

	assert_true(maps_find(h->maps, maps_space(h->maps, pid, 1), (uintptr_t)find_me, &place));
	assert_true(symbols_find(h->symbols, place.file, place.offset, &symbol));
	assert_string_equal(symbol.name, "find_me");
	assert_int_equal(symbol.offset, 0);
}

static void live_processes(void **state)
{
	struct history h = new_history(true), all = new_history(true);
	int32_t pid = fork(), self = getpid();

	(void)state;
	if (!pid) {
		pause();
		_exit(0);
	}
	find_me(&h, self);
	/* A record of an unknown process does not hide its earlier mappings. */
	map_at(&h, pid, 0x10000, 0x1000, 0, "/lib/a.so", 1);
	check(&h, pid, 1, 0x10000, "/lib/a.so", 0);
	find_me(&h, pid);
	assert_true(maps_seed_all(all.maps) > 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	find_me(&all, pid);
	/* A process that has ended has an empty space; a child of a live one has its maps. */
	check(&h, 4000000, 1, (uintptr_t)find_me, NULL, 0);
	task(&h, PERF_RECORD_FORK, 3999999, self, 5);
	find_me(&h, 3999999);
	free_history(&all);
	free_history(&h);
}

static void write_map(const char *path, const char *mode, const char *text)
{
	FILE *file = fopen(path, mode);

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void check_jit(struct history *h, uint64_t addr, const char *name, uint64_t plus)
{
	struct symbol symbol;
	const char *path = NULL;
	bool found = maps_find_jit(h->maps, getpid(), addr, &symbol, &path);

	assert_int_equal(found, name != NULL);
	if (!name)
		return;
	assert_string_equal(symbol.name, name);
	assert_int_equal(symbol.offset, plus);
	assert_int_equal(strncmp(path, "/tmp/perf-", 10), 0);
}

static void jit_maps(void **state)
{
	struct history h = new_history(true);
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	check_jit(&h, 0x1000, NULL, 0);
	free_history(&h);
	h = new_history(true);
	write_map(path, "w",
		  "1000 100 LazyCompile:~f /a b.js:1\n2000 100 old\nnonsense\n\n4000\n5000 10\n"
		  "0x6000 0x10 hex\nffffffffffffff00 1000 wraps\n7000 0 empty\n8000 10 par");
	check_jit(&h, 0x0fff, NULL, 0);
	check_jit(&h, 0x1000, "LazyCompile:~f /a b.js:1", 0);
	check_jit(&h, 0x10ff, "LazyCompile:~f /a b.js:1", 255);
	check_jit(&h, 0x1100, NULL, 0);
	check_jit(&h, 0x6001, "hex", 1);
	check_jit(&h, 0x7000, NULL, 0);
	check_jit(&h, 0x8000, NULL, 0);
	check_jit(&h, UINT64_MAX - 0x50, NULL, 0);
	check_jit(&h, 0x2080, "old", 0x80);
	/* It grows: the newest mapping at an address is the current one. */
	write_map(path, "a", "tial\n2040 80 new\n1000 4000 huge\n");
	check_jit(&h, 0x8001, "partial", 1);
	check_jit(&h, 0x2040, "huge", 0x1040);
	write_map(path, "a", "2040 80 newest\n");
	check_jit(&h, 0x2040, "newest", 0);
	check_jit(&h, 0x20bf, "newest", 0x7f);
	check_jit(&h, 0x20c0, "huge", 0x10c0);
	check_jit(&h, 0x4fff, "huge", 0x3fff);
	/* And starts anew. */
	write_map(path, "w", "9000 10 restarted\n");
	check_jit(&h, 0x9000, "restarted", 0);
	check_jit(&h, 0x2040, NULL, 0);
	unlink(path);
	free_history(&h);
}

static void memory_is_bounded(void **state)
{
	struct history h = new_history(false);
	struct maps_stats stats;
	uint32_t kept;

	(void)state;
	map_at(&h, 1, 0x1000, 0x1000, 0, "/bin/init", 0);
	kept = maps_space(h.maps, 1, 0);
	for (int32_t pid = 2; pid < 1200; pid++) {
		for (uint64_t i = 1; i <= 4096; i++)
			map_at(&h, pid, i << 13, 0x1000, 0, "//anon", pid);
		maps_space(h.maps, pid, pid);
		task(&h, PERF_RECORD_EXIT, pid, 1, pid);
	}
	maps_read_stats(h.maps, &stats);
	assert_in_range(stats.bytes, 1 << 20, 130 << 20);
	assert_true(stats.forgotten > 100);
	check(&h, 1199, 1e9, 0x2000, "", 0);
	check_space(&h, kept, 0x1000, "/bin/init", 0);
	free_history(&h);
}

static void ended_processes_are_bounded(void **state)
{
	struct history h = new_history(false);
	struct maps_stats stats;

	(void)state;
	map_at(&h, 1, 0x1000, 0x1000, 0, "/bin/init", 0);
	for (int32_t pid = 2; pid < 40000; pid++) {
		task(&h, PERF_RECORD_FORK, pid, 1, pid);
		exec(&h, pid, pid);
		task(&h, PERF_RECORD_EXIT, pid, 1, pid);
	}
	maps_read_stats(h.maps, &stats);
	assert_int_equal(stats.processes, 1 + 16384);
	for (int i = 0; i < 1000; i++)
		exec(&h, 1, i);
	check(&h, 39999, 1e9, 0x1000, NULL, 0);
	free_history(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exec_fork_and_exit),
		cmocka_unit_test(earlier_mappings),
		cmocka_unit_test(a_space_keeps_its_meaning),
		cmocka_unit_test(records_of_any_shape),
		cmocka_unit_test(build_ids_in_records),
		cmocka_unit_test(listed_processes),
		cmocka_unit_test(live_processes),
		cmocka_unit_test(jit_maps),
		cmocka_unit_test(memory_is_bounded),
		cmocka_unit_test(ended_processes_are_bounded),
	};

	return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
