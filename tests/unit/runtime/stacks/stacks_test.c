/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <cmocka.h>
#include "formats/addresses.h"
#include "symbols/ksymbols.h"
#include "stacks/maps.h"
#include "stacks/stacks.h"
#include "symbols/symbols.h"

#define KERNEL	   ((uint64_t)PERF_CONTEXT_KERNEL)
#define USER	   ((uint64_t)PERF_CONTEXT_USER)
#define GUEST	   ((uint64_t)PERF_CONTEXT_GUEST)
#define KADDR	   0xffffffff81000000ULL
#define CHAIN(...) ((const uint64_t[]){sizeof((const uint64_t[]){__VA_ARGS__}) / 8, __VA_ARGS__})

enum { BOTH = STACK_KERNEL | STACK_USER, MAX = 1000 };

static const char kallsyms[] = "ffffffff81000000 T kernel_one\n"
			       "ffffffff81000100 t __do_kernel_two\n"
			       "ffffffff81000100 T kernel_two\n"
			       "ffffffff81000100 R no_function\n"
			       "ffffffffc0000000 t of_module\t[mod]\n";

struct fixture {
	struct symbols *symbols;
	struct maps *maps;
	struct addresses *kernel;
	struct ksymbols *ksymbols;
	struct stacks *stacks;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->symbols = symbols_new(true, NAMES_SHORT);
	f->maps = maps_new(f->symbols, true);
	f->ksymbols = ksymbols_new(symbols_names(f->symbols));
	f->kernel = addresses_new(ADDRESSES_SYMBOLS, NULL);
	addresses_set_text(f->kernel, kallsyms, strlen(kallsyms));
	f->stacks = stacks_new(f->symbols, f->maps, f->kernel, f->ksymbols, MAX);
	*state = f;
	return f->stacks ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	stacks_free(f->stacks);
	maps_free(f->maps);
	ksymbols_free(f->ksymbols);
	symbols_free(f->symbols);
	addresses_free(f->kernel);
	free(f);
	return 0;
}

static uint32_t intern(struct fixture *f, const uint64_t *chain)
{
	return stacks_intern(f->stacks, getpid(), 1, chain, BOTH);
}

static void ids_are_dense(void **state)
{
	struct fixture *f = *state;
	struct stacks_stats stats;
	struct frame frame;

	for (int round = 0; round < 3; round++)
		for (uint64_t i = 0; i < MAX; i++)
			assert_int_equal(intern(f, CHAIN(KERNEL, KADDR + i, KADDR)), i);
	stacks_read_stats(f->stacks, &stats);
	assert_int_equal(stats.stacks, MAX);
	assert_int_equal(stats.overflow, 0);
	/* The table is full: all new stacks are one. */
	assert_int_equal(intern(f, CHAIN(KERNEL, 5)), MAX);
	assert_int_equal(intern(f, CHAIN(KERNEL, 6)), MAX);
	assert_int_equal(intern(f, CHAIN(KERNEL, KADDR + 7, KADDR)), 7);
	assert_false(stacks_frame(f->stacks, MAX, 0, &frame));
	stacks_read_stats(f->stacks, &stats);
	assert_int_equal(stats.overflow, 2);
	stacks_clear(f->stacks);
	assert_false(stacks_frame(f->stacks, 0, 0, &frame));
	assert_int_equal(intern(f, CHAIN(KERNEL, 6)), 0);
}

static void spaces_are_part_of_the_key(void **state)
{
	struct fixture *f = *state;
	const uint64_t *kernel = CHAIN(KERNEL, KADDR), *user = CHAIN(USER, 0x1000);
	uint32_t a = stacks_intern(f->stacks, getpid(), 1, user, BOTH);
	uint32_t b = stacks_intern(f->stacks, 1, 1, user, BOTH);

	assert_int_not_equal(a, b);
	assert_int_equal(stacks_intern(f->stacks, getpid(), 1, user, BOTH), a);
	a = stacks_intern(f->stacks, getpid(), 1, kernel, BOTH);
	assert_int_equal(stacks_intern(f->stacks, 1, 1, kernel, BOTH), a);
}

/* Stacks of one frame hint at programs without frame pointers, but single addresses do not. */
static void addresses_are_not_short_stacks(void **state)
{
	struct fixture *f = *state;
	struct stacks_stats stats;

	stacks_intern(f->stacks, getpid(), 1, CHAIN(0x1000), BOTH | STACK_ADDRESS);
	intern(f, CHAIN(USER, 0x2000));
	intern(f, CHAIN(USER, 0x2000, 0x2100, 0x2200));
	stacks_read_stats(f->stacks, &stats);
	assert_int_equal(stats.with_user, 2);
	assert_int_equal(stats.short_user, 1);
}

/* The addresses of a stack, kernel part before user part. */
static void check_words(struct fixture *f, const uint64_t *chain, uint32_t parts,
			uint32_t nr_kernel, const uint64_t *expected)
{
	uint32_t id = stacks_intern(f->stacks, getpid(), 1, chain, parts);
	struct frame frame;

	for (uint32_t i = 0; i < expected[0]; i++) {
		assert_true(stacks_frame(f->stacks, id, i, &frame));
		assert_int_equal(frame.address, expected[1 + i]);
		assert_int_equal(frame.in_kernel, i < nr_kernel);
	}
	assert_false(stacks_frame(f->stacks, id, (uint32_t)expected[0], &frame));
}

static void chains_of_any_shape(void **state)
{
	struct fixture *f = *state;
	const uint64_t none = 0, *both = CHAIN(KERNEL, KADDR, KADDR + 1, USER, 0x1000, 0x2000);
	uint64_t deep[2002] = {2001, USER};
	struct frame frame;

	check_words(f, NULL, BOTH, 0, &none);
	check_words(f, &none, BOTH, 0, &none);
	check_words(f, CHAIN(KERNEL), BOTH, 0, &none);
	check_words(f, both, BOTH, 2, CHAIN(KADDR, KADDR + 1, 0x1000, 0x2000));
	check_words(f, both, STACK_KERNEL, 2, CHAIN(KADDR, KADDR + 1));
	check_words(f, both, STACK_USER, 0, CHAIN(0x1000, 0x2000));
	check_words(f, both, 0, 0, &none);
	/* A word that is no address ends it, unless it was called. */
	check_words(f, CHAIN(USER, 0x1000, 0x2000, 1), BOTH, 0, CHAIN(0x1000, 0x2000));
	check_words(f, CHAIN(KERNEL, KADDR, USER, 0), BOTH, 1, CHAIN(KADDR, 0));
	check_words(f, CHAIN(USER, 0, 0x2000), BOTH, 0, CHAIN(0, 0x2000));
	/* Without marks, of a guest, two kernels, zeros. */
	check_words(f, CHAIN(0x1000, 0x2000), BOTH, 0, CHAIN(0x1000, 0x2000));
	check_words(f, CHAIN(KADDR), BOTH, 1, CHAIN(KADDR));
	check_words(f, CHAIN(GUEST, 5, 6, USER, 0x1000), BOTH, 0, CHAIN(0x1000));
	check_words(f, CHAIN(KERNEL, KADDR, KERNEL, KADDR), BOTH, 2, CHAIN(KADDR, KADDR));
	check_words(f, CHAIN(USER, 0x1000, KERNEL, KADDR, 3), BOTH, 0, CHAIN(0x1000));
	check_words(f, CHAIN(USER, 0x1000, 0, 0), BOTH, 0, CHAIN(0x1000, 0, 0));
	/* The frame pointers were text: the rest is not trusted. */
	check_words(f, CHAIN(KERNEL, KADDR, USER, 0x1000, 0x203e2d2064616572, 0x2000), BOTH, 1,
		    CHAIN(KADDR, 0x1000));
	for (uint64_t i = 2; i < 2002; i++)
		deep[i] = i;
	assert_true(stacks_frame(f->stacks, intern(f, deep), 1023, &frame));
	assert_false(stacks_frame(f->stacks, intern(f, deep), 1024, &frame));
}

static void kernel_frames(void **state)
{
	struct fixture *f = *state;
	static const struct {
		const char *symbol, *dso;
		uint64_t plus;
	} rows[] = {
		{"kernel_two", "[kernel.kallsyms]", 0},
		{"kernel_one", "[kernel.kallsyms]", 0x100},
		{"of_module", "[mod]", 0x20},
		{NULL, "[kernel.kallsyms]", 0},
	};
	uint32_t id = intern(f, CHAIN(KERNEL, KADDR + 0x100, KADDR + 0x100, 0xffffffffc0000020,
				      0xffff888000000000));
	struct frame frame;

	for (uint32_t i = 0; i < 4; i++) {
		assert_true(stacks_frame(f->stacks, id, i, &frame));
		assert_string_equal(frame.dso, rows[i].dso);
		assert_int_equal(frame.kind, rows[i].symbol ? FRAME_KERNEL : FRAME_UNKNOWN);
		assert_int_equal(frame.symbol_offset, rows[i].plus);
		if (rows[i].symbol)
			assert_string_equal(frame.symbol, rows[i].symbol);
		else
			assert_null(frame.symbol);
	}
}

/* Functions of known order and size. */
__asm__(".text\n.globl known_one,known_two\n.type known_one,@function\n.type known_two,@function\n"
	"known_one: .skip 16,0x90\n.size known_one,16\n"
	"known_two: .skip 16,0x90\n.size known_two,16\n");
extern const char known_one[], known_two[];

static void check_frame(struct fixture *f, uint32_t id, uint32_t index, enum frame_kind kind,
			const char *symbol, uint64_t plus, const char *dso)
{
	struct frame frame;

	assert_true(stacks_frame(f->stacks, id, index, &frame));
	assert_int_equal(frame.kind, kind);
	assert_false(frame.in_kernel);
	if (symbol)
		assert_string_equal(frame.symbol, symbol);
	else
		assert_null(frame.symbol);
	assert_int_equal(frame.symbol_offset, plus);
	if (dso)
		assert_non_null(strstr(frame.dso, dso));
	else
		assert_null(frame.dso);
}

static void user_frames(void **state)
{
	struct fixture *f = *state;
	uint64_t two = (uintptr_t)known_two;
	uint32_t id = intern(f, CHAIN(KERNEL, KADDR, USER, two, two, two + 1, 0x1010));
	struct frame frame;

	check_frame(f, id, 1, FRAME_USER, "known_two", 0, "stacks_test");
	check_frame(f, id, 2, FRAME_USER, "known_one", 16, "stacks_test");
	check_frame(f, id, 3, FRAME_USER, "known_two", 1, "stacks_test");
	check_frame(f, id, 4, FRAME_UNKNOWN, NULL, 0, NULL);
	stacks_frame(f->stacks, id, 1, &frame);
	assert_string_equal(symbols_path(f->symbols, frame.file), frame.dso);
}

static void jit_frames(void **state)
{
	struct fixture *f = *state;
	char *code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t addr = (uintptr_t)code;
	char path[64];
	uint32_t id;
	FILE *map;

	assert_ptr_not_equal(code, MAP_FAILED);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	map = fopen(path, "w");
	fprintf(map, "%llx 40 compiled one\n", (unsigned long long)addr);
	fclose(map);
	id = intern(f, CHAIN(USER, addr + 4, addr + 0x40, addr + 0x41));
	check_frame(f, id, 0, FRAME_JIT, "compiled one", 4, path);
	check_frame(f, id, 1, FRAME_JIT, "compiled one", 0x40, path);
	check_frame(f, id, 2, FRAME_UNKNOWN, NULL, 0, "[anon]");
	unlink(path);
	munmap(code, 8192);
}

static void record_ksymbol(struct fixture *f, uint64_t addr, uint32_t len, uint16_t flags,
			   const char *name)
{
	struct {
		uint64_t addr;
		uint32_t len;
		uint16_t type, flags;
		char name[32];
	} record = {addr, len, PERF_RECORD_KSYMBOL_TYPE_BPF, flags, ""};

	strcpy(record.name, name);
	ksymbols_record(f->ksymbols, &record, offsetof(typeof(record), name) + strlen(name) + 1);
}

static void later_code(void **state)
{
	struct fixture *f = *state;
	const uint64_t base = 0xffffffffc0000100;
	struct frame frame;

	record_ksymbol(f, base, 0x40, 0, "bpf_one");
	record_ksymbol(f, base + 0x80, 0x40, 0, "bpf_two");
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base + 0x3f)), 0, &frame));
	assert_string_equal(frame.symbol, "bpf_one");
	assert_string_equal(frame.dso, "[bpf]");
	assert_int_equal(frame.symbol_offset, 0x3f);
	assert_int_equal(frame.kind, FRAME_KERNEL);
	/* Addresses between and before them belong to the kernel's own list. */
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base + 0x40)), 0, &frame));
	assert_string_equal(frame.symbol, "of_module");
	assert_string_equal(frame.dso, "[mod]");
	/* Removed code may still be in stacks. */
	record_ksymbol(f, base, 0x40, PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER, "bpf_one");
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base)), 0, &frame));
	assert_string_equal(frame.symbol, "bpf_one");
	/* Until other code takes its place. */
	record_ksymbol(f, base + 0x20, 0x80, 0, "bpf_three");
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base + 0x9f)), 0, &frame));
	assert_string_equal(frame.symbol, "bpf_three");
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base)), 0, &frame));
	assert_string_equal(frame.symbol, "of_module");
	/* Invalid records. */
	record_ksymbol(f, UINT64_MAX - 1, 0x40, 0, "beyond");
	record_ksymbol(f, base, 0, 0, "empty");
	record_ksymbol(f, base, 1, 0, "");
	ksymbols_record(f->ksymbols, &base, sizeof(base));
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, base)), 0, &frame));
	assert_string_equal(frame.symbol, "of_module");
	for (uint64_t i = 0; i < 1 << 17; i++)
		record_ksymbol(f, base + 0x100000 + i * 16, 16, 0, "many");
}

static void hidden_addresses(void **state)
{
	static const char none[] = "0000000000000000 T kernel_one\n0000000000000000 t kernel_two\n";
	struct fixture *f = *state;
	struct frame frame;

	assert_false(addresses_hidden(f->kernel));
	stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, KADDR)), 0, &frame);
	assert_false(addresses_hidden(f->kernel));
	addresses_set_text(f->kernel, none, strlen(none));
	assert_false(addresses_hidden(f->kernel));
	stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, KADDR)), 0, &frame);
	assert_null(frame.symbol);
	assert_true(addresses_hidden(f->kernel));
}

/* A recording of the same kernel before a reboot, at another address. */
static void moved_kernel(void **state)
{
	struct fixture *f = *state;
	struct frame frame;

	addresses_anchor(f->kernel, "kernel_two", KADDR + 0x100 - 0x4000000);
	assert_true(
		stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, KADDR - 0x4000000)), 0, &frame));
	assert_string_equal(frame.symbol, "kernel_one");
	assert_int_equal(frame.symbol_offset, 0);
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, KADDR)), 0, &frame));
	assert_null(frame.symbol);
	/* The addresses of the modules are unknown. */
	assert_true(
		stacks_frame(f->stacks, intern(f, CHAIN(KERNEL, 0xffffffffc0000000)), 0, &frame));
	assert_null(frame.symbol);
}

static void write_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void later_modules(void **state)
{
	char symbols[] = "/tmp/profscript-symbols-XXXXXX",
	     modules[] = "/tmp/profscript-modules-XXXXXX";
	const char *dso = "", *first;
	struct addresses *a;
	uint64_t start;

	(void)state;
	close(mkstemp(symbols));
	close(mkstemp(modules));
	write_text(symbols, "ffffffffc0000010 t one\t[a]\n");
	write_text(modules, "a\n");
	a = addresses_new(ADDRESSES_SYMBOLS, symbols);
	addresses_watch(a, modules);
	first = addresses_find_frame(a, 0xffffffffc0000020, &start, &dso);
	assert_string_equal(first, "one");
	assert_string_equal(dso, "[a]");
	/* The last function of a module ends where its page does. */
	assert_non_null(addresses_find_frame(a, 0xffffffffc0001fff, &start, &dso));
	assert_null(addresses_find_frame(a, 0xffffffffc0002000, &start, &dso));
	write_text(symbols, "ffffffffc0000010 t one\t[a]\nffffffffc0002000 t two\t[b]\n");
	assert_null(addresses_find_frame(a, 0xffffffffc0002000, &start, &dso));
	write_text(modules, "a\nb\n");
	assert_string_equal(addresses_find_frame(a, 0xffffffffc0002001, &start, &dso), "two");
	assert_string_equal(dso, "[b]");
	assert_string_equal(first, "one");
	assert_null(addresses_find_frame(a, 0xffffffffc0004000, &start, &dso));
	for (int i = 0; i < 100; i++) {
		write_text(modules, i % 2 ? "a\n" : "b\n");
		addresses_find_frame(a, 0xffffffffc0004000, &start, &dso);
	}
	addresses_free(a);
	unlink(symbols);
	unlink(modules);
}

static void map_module(struct fixture *f, uint64_t addr, const char *path)
{
	struct {
		uint32_t pid, tid;
		uint64_t addr, len, offset;
		char path[64];
	} r = {UINT32_MAX, 0, addr, 0x1000, 0, ""};

	snprintf(r.path, sizeof(r.path), "%s", path);
	maps_record(f->maps, PERF_RECORD_MMAP, PERF_RECORD_MISC_KERNEL, &r, sizeof(r), 0);
}

static const char *dso_of(struct fixture *f, uint64_t addr)
{
	struct frame frame;

	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(addr)), 0, &frame));
	return frame.dso;
}

/* Those that a recording lists. */
static void recorded_modules(void **state)
{
	struct fixture *f = *state;

	map_module(f, 0xffffffffa0000000, "/lib/modules/6.1.0/kernel/net/snd-pcm.ko.xz");
	map_module(f, 0xffffffffa0001000, "[x_tables]");
	map_module(f, 0xffffffffa0002000, "[kernel.kallsyms]_text");
	map_module(f, 0xffffffffa0003000, "/boot/vmlinux");
	assert_string_equal(dso_of(f, 0xffffffffa0000fff), "[snd_pcm]");
	assert_string_equal(dso_of(f, 0xffffffffa0001000), "[x_tables]");
	assert_string_equal(dso_of(f, 0xffffffffa0002000), "[kernel.kallsyms]");
	assert_string_equal(dso_of(f, 0xffffffffa0003000), "[kernel.kallsyms]");
	assert_string_equal(dso_of(f, 0xffffffffc0000004), "[mod]");
}

/* Addresses of a 32-bit machine: modules may be below the kernel. */
static void recorded_on_32_bits(void **state)
{
	struct fixture *f = *state;
	struct frame frame;

	assert_null(dso_of(f, 0x80008200));
	stacks_start_kernel(f->stacks, 0x80008200);
	map_module(f, 0x7f006000, "/lib/modules/3.4.0/kernel/net/wireless/cfg80211.ko");
	assert_string_equal(dso_of(f, 0x80008201), "[kernel.kallsyms]");
	assert_string_equal(dso_of(f, 0x7f006008), "[cfg80211]");
	assert_null(dso_of(f, 0x7f007000));
	assert_true(stacks_frame(f->stacks, intern(f, CHAIN(USER, 0x90000000)), 0, &frame));
	assert_false(frame.in_kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ids_are_dense, set_up, tear_down),
		cmocka_unit_test_setup_teardown(spaces_are_part_of_the_key, set_up, tear_down),
		cmocka_unit_test_setup_teardown(addresses_are_not_short_stacks, set_up, tear_down),
		cmocka_unit_test_setup_teardown(chains_of_any_shape, set_up, tear_down),
		cmocka_unit_test_setup_teardown(kernel_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(user_frames, set_up, tear_down),
		cmocka_unit_test(later_modules),
		cmocka_unit_test_setup_teardown(jit_frames, set_up, tear_down),
		cmocka_unit_test_setup_teardown(later_code, set_up, tear_down),
		cmocka_unit_test_setup_teardown(hidden_addresses, set_up, tear_down),
		cmocka_unit_test_setup_teardown(moved_kernel, set_up, tear_down),
		cmocka_unit_test_setup_teardown(recorded_modules, set_up, tear_down),
		cmocka_unit_test_setup_teardown(recorded_on_32_bits, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("stacks", tests, NULL, NULL);
}
