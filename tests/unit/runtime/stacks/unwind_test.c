/* SPDX-License-Identifier: GPL-2.0-only */
/* Samples are made of this program's own registers and stack. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <execinfo.h>
#include <ucontext.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <cmocka.h>
#include "event.h"
#include "stacks/maps.h"
#include "symbols/symbols.h"
#include "stacks/unwind.h"

#define USER   ((uint64_t)PERF_CONTEXT_USER)
#define KERNEL ((uint64_t)PERF_CONTEXT_KERNEL)

enum { DEPTH = 5, DUMP = 4096, NR_REGISTERS = 17, MAX_WORDS = 64 + DUMP / 8 };

struct fixture {
	struct symbols *symbols;
	struct maps *maps;
	struct unwind *unwind;
	struct perf_event_attr attr;
	/* A sample: kernel chain, payload, registers, copy of the stack. */
	uint64_t words[MAX_WORDS];
	uint32_t nr_words, registers, dump;
	void *callers[64];
	int nr_callers, own; /* which of them is take_sample() */
	struct event ev;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	f->symbols = symbols_new(true, NAMES_SHORT);
	f->maps = maps_new(f->symbols, true);
	f->unwind = unwind_new(f->symbols, f->maps);
	f->attr.sample_type = PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW | PERF_SAMPLE_REGS_USER |
			      PERF_SAMPLE_STACK_USER;
	f->attr.sample_regs_user = unwind_registers();
	assert_true(unwind_is_for(&f->attr));
	*state = f;
	return f->unwind ? 0 : -1;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	unwind_free(f->unwind);
	maps_free(f->maps);
	symbols_free(f->symbols);
	free(f);
	return 0;
}

#ifdef __x86_64__

__attribute__((noinline, no_sanitize("address"))) static void take_sample(struct fixture *f)
{
	/* In perf's order: ax bx cx dx si di bp sp ip r8 to r15. */
	static const int order[NR_REGISTERS] = {
		REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_RIP,
		REG_R8,	 REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
	uint64_t *w = f->words;
	ucontext_t context;

	f->nr_callers = backtrace(f->callers, 64);
	/* ASan's own backtrace() may be one of them. */
	for (f->own = 0; f->callers[f->own + 1] != __builtin_return_address(0); f->own++)
		assert_in_range(f->own, 0, 4);
	getcontext(&context);
	*w++ = 2;
	*w++ = KERNEL;
	*w++ = 0xffffffff81000000;
	*w++ = 12 | 0xabcdefull << 32; /* the payload's size, and 12 bytes of it */
	*w++ = 0;
	f->registers = (uint32_t)(w - f->words);
	*w++ = 2; /* a 64-bit program */
	for (int i = 0; i < NR_REGISTERS; i++)
		*w++ = (uint64_t)context.uc_mcontext.gregs[order[i]];
	f->dump = (uint32_t)(w - f->words);
	*w++ = DUMP;
	/* ASan forbids reading stacks. */
	for (int i = 0; i < DUMP / 8; i++)
		*w++ = ((volatile uint64_t *)context.uc_mcontext.gregs[REG_RSP])[i];
	*w++ = DUMP;
	f->nr_words = (uint32_t)(w - f->words);
}

__attribute__((noinline, no_sanitize("address"))) static int deeper(struct fixture *f, int depth)
{
	volatile char room[100];

	room[depth] = 1;
	if (depth)
		return deeper(f, depth - 1) + room[depth];
	take_sample(f);
	return room[0];
}

/* Unwinds the first nr words of the sample, the only readable ones. */
static void unwind(struct fixture *f, uint32_t nr)
{
	uint64_t *copy = malloc(nr * sizeof(*copy) + 1);

	memcpy(copy, f->words, nr * sizeof(*copy));
	f->ev = (struct event){.pid = getpid(), .time = 1, .chain = copy};
	f->ev.raw = (uint8_t *)copy + 3 * 8 + 4;
	f->ev.raw_size = 12;
	unwind_event(f->unwind, &f->attr, copy, nr, &f->ev);
	if (f->ev.chain == copy)
		f->ev.chain = NULL;
	free(copy);
}

static void own_stack(void **state)
{
	struct fixture *f = *state;
	struct unwind_stats stats;

	assert_int_equal(deeper(f, DEPTH), DEPTH + 1);
	unwind(f, f->nr_words);
	assert_non_null(f->ev.chain);
	assert_int_equal(f->ev.chain[1], KERNEL);
	assert_int_equal(f->ev.chain[2], 0xffffffff81000000);
	assert_int_equal(f->ev.chain[3], USER);
	/* Frame 4 is take_sample() itself, at another instruction. */
	assert_in_range(f->nr_callers, DEPTH + 3, 64);
	assert_in_range(f->ev.chain[0], 3 + DEPTH + 3, 3 + 64);
	for (int i = 1; i < DEPTH + 3; i++)
		assert_int_equal(f->ev.chain[4 + i], (uintptr_t)f->callers[f->own + i]);
	unwind_read_stats(f->unwind, &stats);
	assert_int_equal(stats.stacks, 1);
	assert_true(stats.bytes > 0);
	/* The same again, from the cache. */
	unwind(f, f->nr_words);
	assert_int_equal(f->ev.chain[4 + DEPTH], (uintptr_t)f->callers[f->own + DEPTH]);
	unwind_forget_chains(f->unwind);
}

static void short_copies(void **state)
{
	struct fixture *f = *state;
	struct unwind_stats stats;

	deeper(f, DEPTH);
	/* The kernel copied less than it was asked for. */
	f->words[f->nr_words - 1] = 1400;
	unwind(f, f->nr_words);
	assert_in_range(f->ev.chain[0], 4, 3 + DEPTH);
	assert_int_equal(f->ev.chain[5], (uintptr_t)f->callers[f->own + 1]);
	unwind_read_stats(f->unwind, &stats);
	assert_int_equal(stats.cut, 1);
	/* No stack at all, but the registers exist. */
	f->words[f->dump] = 0;
	unwind(f, f->dump + 2);
	assert_int_equal(f->ev.chain[0], 4);
	unwind_read_stats(f->unwind, &stats);
	assert_int_equal(stats.cut, 2);
	assert_int_equal(stats.lost, 0);
}

static void invalid_samples(void **state)
{
	struct fixture *f = *state;
	uint64_t registers[NR_REGISTERS];

	deeper(f, DEPTH);
	for (uint32_t nr = 5; nr < f->nr_words; nr++) {
		unwind(f, nr);
		/* Registers alone give the innermost frame. */
		assert_int_equal(f->ev.chain ? f->ev.chain[0] : 0, nr < f->dump ? 0 : 4);
	}
	for (uint64_t size = 1; size; size <<= 1) {
		f->words[f->dump] = size;
		unwind(f, f->nr_words);
	}
	f->words[f->dump] = DUMP;
	f->words[f->nr_words - 1] = UINT64_MAX;
	unwind(f, f->nr_words);
	assert_int_equal(f->ev.chain[5], (uintptr_t)f->callers[f->own + 1]);
	/* Registers with arbitrary values. */
	memcpy(registers, f->words + f->registers + 1, sizeof(registers));
	for (int i = 0; i < NR_REGISTERS; i++)
		for (int bit = 0; bit < 64; bit++) {
			f->words[f->registers + 1 + i] = registers[i] ^ 1ull << bit;
			unwind(f, f->nr_words);
			unwind_forget_chains(f->unwind);
			f->words[f->registers + 1 + i] = registers[i];
		}
	/* None: a kernel thread. */
	f->words[f->registers] = 0;
	unwind(f, f->nr_words);
	assert_null(f->ev.chain);
}

/* The frame that a 32-bit program executes, or what the kernel has found of it. */
static void programs_of_32_bits(void **state)
{
	struct fixture *f = *state;
	struct unwind_stats stats;

	deeper(f, DEPTH);
	f->words[f->registers] = 1;
	unwind(f, f->nr_words);
	assert_int_equal(f->ev.chain[0], 4);
	assert_int_equal(f->ev.chain[3], USER);
	assert_int_equal(f->ev.chain[4], f->words[f->registers + 1 + 8]);
	f->words[1] = USER;
	unwind(f, f->nr_words);
	assert_null(f->ev.chain);
	unwind_read_stats(f->unwind, &stats);
	assert_int_equal(stats.stacks, 2);
	assert_int_equal(stats.lost, 2);
}

/* What an event has counted stands in front of the chain, also of the one that is put in its place.
 */
static void counts_stay_in_front(void **state)
{
	struct fixture *f = *state;
	uint64_t record[2 + MAX_WORDS] = {0, 77}; /* its header, its count */

	deeper(f, DEPTH);
	memcpy(record + 2, f->words, f->nr_words * sizeof(*record));
	f->attr.sample_type |= PERF_SAMPLE_READ;
	f->ev = (struct event){.pid = getpid(), .time = 1, .chain = record + 2};
	unwind_event(f->unwind, &f->attr, record + 1, f->nr_words + 1, &f->ev);
	assert_ptr_not_equal(f->ev.chain, record + 2);
	assert_int_equal(f->ev.chain[-1], 77);
}

/* Chains are kept for a batch of events; what is more than there can be is left as it is. */
static void memory_is_bounded(void **state)
{
	struct fixture *f = *state;
	int n = 0;

	deeper(f, DEPTH);
	do
		unwind(f, f->nr_words);
	while (f->ev.chain && ++n < 1 << 20);
	assert_in_range(n, 1024, 1 << 17);
	unwind_forget_chains(f->unwind);
	unwind(f, f->nr_words);
	assert_non_null(f->ev.chain);
}

/* Unwinds the sample with a chain of user frames that the kernel has found. */
static void unwind_with(struct fixture *f, const uint64_t *followed, uint32_t n)
{
	uint64_t chain[64] = {n + 3, KERNEL, 0xffffffff81000000, USER};
	uint64_t *copy = malloc((f->nr_words + n + 1) * sizeof(*copy));

	memcpy(chain + 4, followed, n * sizeof(*followed));
	memcpy(copy, chain, (n + 4) * sizeof(*chain));
	memcpy(copy + n + 4, f->words + 3, (f->nr_words - 3) * sizeof(*copy));
	f->ev = (struct event){.pid = getpid(), .time = 1, .chain = copy};
	unwind_event(f->unwind, &f->attr, copy, f->nr_words + n + 1, &f->ev);
	assert_ptr_not_equal(f->ev.chain, copy);
	free(copy);
}

/* Where the copy ends, the kernel's frames follow, if the last frame has the pointer that led to
 * them. */
static void kernels_frames_follow(void **state)
{
	struct fixture *f = *state;
	uint64_t followed[4], ip;
	struct unwind_stats stats;

	deeper(f, DEPTH);
	ip = f->words[f->registers + 1 + 8];
	f->words[f->nr_words - 1] = 0;
	followed[0] = ip;
	for (int i = 1; i < 4; i++)
		followed[i] = (uintptr_t)f->callers[f->own + i + 1];
	for (int again = 0; again < 2; again++) {
		unwind_with(f, followed, 4);
		assert_int_equal(f->ev.chain[0], 3 + 4);
		assert_memory_equal(f->ev.chain + 4, followed, sizeof(followed));
	}
	/* Others of the same place. */
	followed[3] = (uintptr_t)f->callers[f->own + 1];
	unwind_with(f, followed, 4);
	assert_memory_equal(f->ev.chain + 4, followed, sizeof(followed));
	/* What is not code is not taken. */
	followed[2] = 0x1234;
	unwind_with(f, followed, 4);
	assert_int_equal(f->ev.chain[0], 3 + 2);
	unwind_read_stats(f->unwind, &stats);
	assert_int_equal(stats.stacks, 4);
	assert_int_equal(stats.cut, 0);
	/* A frame pointer that is not the one where the kernel began leads nowhere. */
	f->words[f->nr_words - 1] = DUMP;
	unwind_with(f, followed, 4);
	assert_in_range(f->ev.chain[0], 3 + DEPTH + 3, 3 + 64);
}

/* The frames of a former walk are taken only if all that it has read is the same. */
static void other_callers(void **state)
{
	struct fixture *f = *state;
	uint64_t caller, *stack = f->words;
	int at = 0;

	deeper(f, DEPTH);
	unwind(f, f->nr_words);
	caller = f->ev.chain[6];
	/* A stack may also hold copies of the address that no walk reads. */
	for (int i = (int)f->dump + 1; i < (int)f->dump + DUMP / 8 && !at; i++) {
		if (stack[i] != caller)
			continue;
		stack[i] = (uintptr_t)unwind_new;
		unwind(f, f->nr_words);
		if (f->ev.chain[6] == (uintptr_t)unwind_new)
			at = i;
		stack[i] = caller;
	}
	assert_int_not_equal(at, 0);
	unwind(f, f->nr_words);
	assert_int_equal(f->ev.chain[6], caller);
	/* Mappings may have changed. */
	unwind_maps_changed(f->unwind, &f->ev);
	unwind(f, f->nr_words);
	assert_int_equal(f->ev.chain[6], caller);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(kernels_frames_follow, set_up, tear_down),
		cmocka_unit_test_setup_teardown(other_callers, set_up, tear_down),
		cmocka_unit_test_setup_teardown(own_stack, set_up, tear_down),
		cmocka_unit_test_setup_teardown(short_copies, set_up, tear_down),
		cmocka_unit_test_setup_teardown(invalid_samples, set_up, tear_down),
		cmocka_unit_test_setup_teardown(programs_of_32_bits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(counts_stay_in_front, set_up, tear_down),
		cmocka_unit_test_setup_teardown(memory_is_bounded, set_up, tear_down),
	};

	return cmocka_run_group_tests_name("unwind", tests, NULL, NULL);
}

#else

static void other_machines(void **state)
{
	(void)state;
	assert_int_equal(unwind_registers(), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(other_machines)};

	return cmocka_run_group_tests_name("unwind", tests, set_up, tear_down);
}

#endif
