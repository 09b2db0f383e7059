/* SPDX-License-Identifier: GPL-2.0-only */
/* Steps out of functions whose tables are written by hand, over a stack of 64 words. Each has one
 * instruction with its own rules; they are assembled one byte after the other. */
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "stacks/cfi.h"
#include "tests/unit/runtime/compile.h"

#ifdef __x86_64__

enum { BX = 3, R12 = 12 };
enum { STACK = 0x1000, WORDS = 64, MANY = 300 };

/* Places in the assembly, in bytes. */
enum place {
	AT_BEGIN,
	AFTER_PUSH,
	WITH_FRAME,
	AFTER_POP,
	OUTERMOST,
	OF_SIGNAL,
	MOVED,
	LOST_REGISTER,
	CFA_EXPRESSION,
	VALUE_EXPRESSION,
	A_JUMP,
	ABSURD,
	WITHOUT_TABLE,
	FIRST_OF_MANY,
};

static const char assembly[] =
	"asm(\".text\\n\""
	"\".cfi_startproc\\n nop\\n\""
	"\".cfi_def_cfa_offset 16\\n .cfi_offset rbp, -16\\n nop\\n\""
	"\".cfi_def_cfa_register rbp\\n nop\\n\""
	"\".cfi_restore rbp\\n .cfi_def_cfa rsp, 8\\n nop\\n .cfi_endproc\\n\""
	"\".cfi_startproc\\n .cfi_undefined rip\\n nop\\n .cfi_endproc\\n\""
	"\".cfi_startproc\\n .cfi_signal_frame\\n nop\\n .cfi_endproc\\n\""
	"\".cfi_startproc\\n .cfi_register rbx, r12\\n nop\\n .cfi_endproc\\n\""
	"\".cfi_startproc\\n .cfi_undefined rbx\\n nop\\n .cfi_endproc\\n\""
	/* CFA: the word at rsp + 16 */
	"\".cfi_startproc\\n .cfi_escape 0x0f, 3, 0x77, 16, 0x06\\n nop\\n .cfi_endproc\\n\""
	/* rip: the value rbp + 5, not a word of the stack */
	"\".cfi_startproc\\n .cfi_escape 0x16, 16, 2, 0x76, 5\\n nop\\n .cfi_endproc\\n\""
	/* CFA: a jump to itself, which is not made */
	"\".cfi_startproc\\n .cfi_escape 0x0f, 3, 0x2f, 0xfd, 0xff\\n nop\\n .cfi_endproc\\n\""
	/* CFA: an addition without anything to add */
	"\".cfi_startproc\\n .cfi_escape 0x0f, 1, 0x22\\n nop\\n .cfi_endproc\\n\""
	"\"nop\\n\""
	"\".set n, 0\\n .rept 300\\n .cfi_startproc\\n .cfi_def_cfa_offset 8 + 8 * (n % 50)\\n "
	"nop\\n\""
	"\".cfi_endproc\\n .set n, n + 1\\n .endr\\n\");";

static struct cfi *cfi;
static uint64_t text; /* where the instructions are in the file */
static uint64_t stack[WORDS];

static bool read_stack(const struct cfi_memory *m, uint64_t addr, int number, uint64_t *word)
{
	(void)number;
	(void)m;
	if (addr < STACK || addr >= STACK + sizeof(stack) || addr % 8)
		return false;
	*word = stack[(addr - STACK) / 8];
	return true;
}

static uint64_t section_offset(int fd, const char *wanted)
{
	uint64_t offset = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (!strcmp(elf_strptr(elf, names, sh.sh_name), wanted))
			offset = sh.sh_offset;
	elf_end(elf);
	return offset;
}

static int make_program(void **state)
{
	int fd;

	if (make_folder(state))
		return -1;
	fd = open(compile("rules.so", "-shared -masm=intel", assembly), O_RDONLY);
	text = section_offset(fd, ".text");
	cfi = cfi_open(fd);
	for (int i = 0; i < WORDS; i++)
		stack[i] = 0x100 + i;
	return text && cfi ? 0 : -1;
}

static int remove_program(void **state)
{
	cfi_free(cfi);
	return remove_folder(state);
}

/* A frame at the start of the stack. */
static struct cfi_frame top(void)
{
	struct cfi_frame f = {.known = (1u << CFI_REGISTERS) - 1};

	for (int i = 0; i < CFI_REGISTERS; i++)
		f.reg[i] = 0x9000 + i;
	f.reg[CFI_SP] = STACK;
	f.reg[CFI_BP] = STACK + 32;
	return f;
}

static enum cfi_result step(enum place place, struct cfi_frame *f, bool *is_signal)
{
	const struct cfi_memory memory = {read_stack};

	return cfi_step(cfi, text + place, f, &memory, is_signal);
}

static void one_step(enum place place, uint64_t pc, uint64_t sp, uint64_t bp)
{
	struct cfi_frame f = top();
	bool is_signal = true;

	assert_int_equal(step(place, &f, &is_signal), CFI_CALLER);
	assert_false(is_signal);
	assert_int_equal(f.reg[CFI_PC], pc);
	assert_int_equal(f.reg[CFI_SP], sp);
	assert_int_equal(f.reg[CFI_BP], bp);
}

static void a_function_with_a_frame_pointer(void **state)
{
	(void)state;
	one_step(AT_BEGIN, 0x100, STACK + 8, STACK + 32);
	one_step(AFTER_PUSH, 0x101, STACK + 16, 0x100);
	one_step(WITH_FRAME, 0x105, STACK + 48, 0x104);
	one_step(AFTER_POP, 0x100, STACK + 8, STACK + 32);
}

static void ends_and_signals(void **state)
{
	struct cfi_frame f = top(), before = f;
	bool is_signal = false;

	(void)state;
	assert_int_equal(step(OUTERMOST, &f, &is_signal), CFI_OUTERMOST);
	assert_memory_equal(&f, &before, offsetof(struct cfi_frame, used));
	assert_int_equal(step(OF_SIGNAL, &f, &is_signal), CFI_CALLER);
	assert_true(is_signal);
}

static void registers_move_and_get_lost(void **state)
{
	struct cfi_frame f = top();
	bool is_signal;

	(void)state;
	assert_int_equal(step(MOVED, &f, &is_signal), CFI_CALLER);
	assert_int_equal(f.reg[BX], 0x9000 + R12);
	assert_true(f.known >> BX & 1);
	f = top();
	f.known &= ~(1u << R12);
	assert_int_equal(step(MOVED, &f, &is_signal), CFI_CALLER);
	assert_false(f.known >> BX & 1);

	f = top();
	assert_int_equal(step(LOST_REGISTER, &f, &is_signal), CFI_CALLER);
	assert_false(f.known >> BX & 1);
	assert_true(f.known >> R12 & 1);
	/* A register whose rule is "same value" stays unknown. */
	f.reg[CFI_SP] = STACK;
	assert_int_equal(step(AT_BEGIN, &f, &is_signal), CFI_CALLER);
	assert_false(f.known >> BX & 1);
}

static void expressions(void **state)
{
	struct cfi_frame f = top();
	bool is_signal;

	(void)state;
	stack[2] = STACK + 80;
	assert_int_equal(step(CFA_EXPRESSION, &f, &is_signal), CFI_CALLER);
	stack[2] = 0x102;
	assert_int_equal(f.reg[CFI_SP], STACK + 80);
	assert_int_equal(f.reg[CFI_PC], 0x109);

	f = top();
	assert_int_equal(step(VALUE_EXPRESSION, &f, &is_signal), CFI_CALLER);
	assert_int_equal(f.reg[CFI_PC], STACK + 32 + 5);
	f = top();
	assert_int_equal(step(A_JUMP, &f, &is_signal), CFI_UNREADABLE);
	f = top();
	assert_int_equal(step(ABSURD, &f, &is_signal), CFI_UNREADABLE);
}

static void unknown_and_unreadable(void **state)
{
	struct cfi_frame f = top(), before;
	bool is_signal;

	(void)state;
	assert_int_equal(step(WITHOUT_TABLE, &f, &is_signal), CFI_UNKNOWN);
	assert_int_equal(cfi_step(cfi, 1ULL << 40, &f, NULL, &is_signal), CFI_UNKNOWN);
	assert_int_equal(cfi_step(cfi, 0, &f, NULL, &is_signal), CFI_UNKNOWN); /* the header */
	f.reg[CFI_SP] = STACK + sizeof(stack);
	before = f;
	assert_int_equal(step(AT_BEGIN, &f, &is_signal), CFI_UNREADABLE);
	assert_memory_equal(&f, &before, offsetof(struct cfi_frame, used));
	f = top();
	f.known &= ~(1u << CFI_SP);
	assert_int_equal(step(AT_BEGIN, &f, &is_signal), CFI_UNREADABLE);
}

/* More addresses than the initial table of known ones has room for; then all of them again. */
static void many_addresses(void **state)
{
	uint64_t bytes = cfi_bytes(cfi), grown = 0;

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < MANY; i++)
			one_step(FIRST_OF_MANY + i, 0x100 + i % 50, STACK + 8 + 8 * (i % 50),
				 STACK + 32);
		if (!round)
			grown = cfi_bytes(cfi);
	}
	assert_true(grown > bytes);
	assert_int_equal(cfi_bytes(cfi), grown);
}

static void invalid_programs(void **state)
{
	struct cfi_frame f = top();
	const char *path = in_folder("text");
	struct cfi *c;
	bool is_signal;

	(void)state;
	write_file(path, "no ELF file", 11);
	assert_null(cfi_open(open(path, O_RDONLY)));
	assert_null(cfi_open(-1));
	path = compile("bare.so", "-shared -fno-asynchronous-unwind-tables",
		       "int f(void) { return 1; }");
	c = cfi_open(open(path, O_RDONLY));
	assert_non_null(c);
	assert_int_equal(cfi_step(c, 0x1000, &f, NULL, &is_signal), CFI_UNKNOWN);
	cfi_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_with_a_frame_pointer),
		cmocka_unit_test(ends_and_signals),
		cmocka_unit_test(registers_move_and_get_lost),
		cmocka_unit_test(expressions),
		cmocka_unit_test(unknown_and_unreadable),
		cmocka_unit_test(many_addresses),
		cmocka_unit_test(invalid_programs),
	};

	return cmocka_run_group_tests_name("cfi", tests, make_program, remove_program);
}

#else

static void of_this_machine(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(of_this_machine)};

	return cmocka_run_group_tests_name("cfi", tests, NULL, NULL);
}

#endif
