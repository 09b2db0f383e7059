/* SPDX-License-Identifier: GPL-2.0-only */
/* The rows of real files find the same callers as libdw, in a memory whose words follow from their
 * addresses; and damaged tables do no harm. */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "stacks/cfi.h"
#include "stacks/frame_rows.h"

#ifdef __x86_64__

enum { STEP = 7, ROUNDS = 60, CHANGES = 20 }; /* every STEPth row is looked at */

/* Words that look like those of a stack, so that sums of them do not overflow. */
static uint64_t word_at(uint64_t addr)
{
	return 0x7f0000000000 + (addr * 0x9e3779b97f4a7c15ULL >> 30) * 8;
}

static bool read_word(const struct cfi_memory *m, uint64_t addr, int number, uint64_t *word)
{
	(void)m;
	(void)number;
	*word = word_at(addr);
	return true;
}

/* The caller's registers as the comments in frame_rows.h say. */
static void apply(uint32_t rule, struct cfi_frame *f)
{
	uint64_t sp = f->reg[CFI_SP], bp = f->reg[CFI_BP], cfa = 0;
	int64_t offset = frame_offset(rule), saved = frame_saved_bp(rule);

	switch (frame_kind(rule)) {
	case FRAME_SP:
		cfa = sp + (uint64_t)offset;
		break;
	case FRAME_BP:
		cfa = bp + (uint64_t)offset;
		break;
	case FRAME_PLT:
		cfa = sp + 8 + ((f->reg[CFI_PC] & 15) >= (uint64_t)offset / 8 ? 8 : 0);
		break;
	case FRAME_BP_DEREF:
		cfa = word_at(bp + (uint64_t)offset);
		f->reg[CFI_BP] = word_at(bp);
		break;
	case FRAME_SIGNAL:
		f->reg[CFI_BP] = word_at(sp + 120);
		f->reg[CFI_SP] = word_at(sp + 160);
		f->reg[CFI_PC] = word_at(sp + 168);
		return;
	default:
		fail();
	}
	if (saved)
		f->reg[CFI_BP] = word_at(cfa + (uint64_t)saved);
	f->reg[CFI_PC] = word_at(cfa - 8);
	f->reg[CFI_SP] = cfa;
}

static struct cfi_frame frame_at(uint64_t pc)
{
	struct cfi_frame f = {.known = (1u << CFI_REGISTERS) - 1};

	for (int i = 0; i < CFI_REGISTERS; i++)
		f.reg[i] = 0x7fff00000000 + 0x1000 * (uint64_t)i;
	f.reg[CFI_PC] = pc;
	return f;
}

static void compare_row(struct cfi *cfi, uint64_t offset, uint64_t addr, uint32_t rule)
{
	const struct cfi_memory memory = {read_word};
	struct cfi_frame expected = frame_at(addr), got = frame_at(addr);
	enum cfi_result result;
	bool is_signal = false;

	result = cfi_step(cfi, offset, &expected, &memory, &is_signal);
	if (frame_kind(rule) == FRAME_OTHER)
		return;
	if (frame_kind(rule) == FRAME_NONE || frame_kind(rule) == FRAME_OUTERMOST) {
		assert_int_equal(result,
				 frame_kind(rule) == FRAME_NONE ? CFI_UNKNOWN : CFI_OUTERMOST);
		return;
	}
	assert_int_equal(result, CFI_CALLER);
	assert_int_equal(is_signal, frame_kind(rule) == FRAME_SIGNAL);
	apply(rule, &got);
	assert_int_equal(got.reg[CFI_PC], expected.reg[CFI_PC]);
	assert_int_equal(got.reg[CFI_SP], expected.reg[CFI_SP]);
	assert_int_equal(got.reg[CFI_BP], expected.reg[CFI_BP]);
}

/* Returns the place in the file of an address, if it is code. */
static bool find_offset(Elf *elf, uint64_t addr, uint64_t *offset)
{
	size_t count;
	GElf_Phdr ph;

	assert_int_equal(elf_getphdrnum(elf, &count), 0);
	for (size_t i = 0; i < count; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		*offset = addr - ph.p_vaddr + ph.p_offset;
		if (addr >= ph.p_vaddr && addr - ph.p_vaddr < ph.p_filesz)
			return true;
	}
	return false;
}

/* Compares the rows of a file, and returns how many there are of each kind. */
static void compare_file(const char *path, uint32_t kinds[8])
{
	int fd = open(path, O_RDONLY);
	struct frame_rows rows;
	struct cfi *cfi;
	uint64_t offset;
	Elf *elf;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(frame_rows_read(elf, &rows), 0);
	cfi = cfi_open(dup(fd));
	assert_non_null(cfi);
	for (uint32_t i = 0; i < rows.count; i++) {
		uint32_t kind = frame_kind(rows.rows[i].rule);

		assert_true(i == 0 || rows.rows[i].addr > rows.rows[i - 1].addr);
		kinds[kind]++;
		if (i % STEP && (kind == FRAME_SP || kind == FRAME_BP || kind == FRAME_NONE))
			continue;
		if (find_offset(elf, rows.rows[i].addr, &offset))
			compare_row(cfi, offset, rows.rows[i].addr, rows.rows[i].rule);
	}
	assert_true(rows.others <= rows.count / 100);
	cfi_free(cfi);
	free(rows.rows);
	elf_end(elf);
	close(fd);
}

/* The file in which a function of this process is. */
static const char *path_of(const char *part)
{
	static char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	char *path = NULL;

	while (!path && fgets(line, sizeof(line), maps))
		if (strstr(line, part))
			path = strchr(line, '/');
	fclose(maps);
	assert_non_null(path);
	path[strcspn(path, "\n")] = '\0';
	return path;
}

static void of_libc(void **state)
{
	uint32_t kinds[8] = {0};

	(void)state;
	compare_file(path_of("/libc.so"), kinds);
	assert_true(kinds[FRAME_SP] > 10000);
	assert_true(kinds[FRAME_BP] > 0);
	assert_int_equal(kinds[FRAME_SIGNAL], 1);
	assert_true(kinds[FRAME_OUTERMOST] > 0);
	assert_int_equal(kinds[FRAME_PLT], 1);
}

static void of_programs(void **state)
{
	static const char *const paths[] = {"/proc/self/exe", "/bin/bash", "/usr/bin/gcc"};
	uint32_t kinds[8] = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		compare_file(paths[i], kinds);
	assert_true(kinds[FRAME_SP] > 1000);
}

/* Finds the tables of a file, in memory that may be changed. */
static Elf_Data *find_tables(Elf *elf)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (!strcmp(elf_strptr(elf, names, sh.sh_name), ".eh_frame"))
			return elf_rawdata(scn, NULL);
	fail();
	return NULL;
}

/* A function that has a linker's stub, whose CFA has no offset that could be changed, and a bad
 * CIE: where its rules are unknown, those of its functions are, too. */
static void changed_expression(void **state)
{
	static const uint8_t
		tables[] = {20,	  0,	0,    0,    0,	  0,	0,    0,    1,	  'z',	'R',
			    0,	  1,	0x78, 16,   1,	  0x03, 0x0c, 7,    8,	  0x90, 1,
			    0,	  0, /* CIE: CFA = sp + 8 */
			    40,	  0,	0,    0,    28,	  0,	0,    0,    0,	  0x10, 0,
			    0,	  0,	1,    0,    0,	  0, /* FDE: 0x1000 to 0x1100 */
			    0x0f, 11,	0x77, 8,    0x80, 0,	0x3f, 0x1a, 0x3b, 0x2a, 0x33,
			    0x24, 0x22, 0x41, 0x0e, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			    0xff, 0x7f, 0,    0,    0,	  0,	0,    0,    0};
	enum { IN_CIE = 22 };
	int fd = open(path_of("/libc.so"), O_RDONLY);
	struct frame_rows rows;
	Elf_Data *data;
	Elf *elf;

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	data = find_tables(elf);
	memcpy(data->d_buf, tables, sizeof(tables));
	assert_int_equal(frame_rows_read(elf, &rows), 0);
	assert_int_equal(rows.count, 3);
	assert_int_equal(rows.rows[0].addr, 0x1000);
	assert_int_equal(frame_kind(rows.rows[0].rule), FRAME_PLT);
	assert_int_equal(rows.rows[1].addr, 0x1001);
	assert_int_equal(frame_kind(rows.rows[1].rule), FRAME_OTHER);
	assert_int_equal(rows.rows[2].addr, 0x1100);
	assert_int_equal(frame_kind(rows.rows[2].rule), FRAME_NONE);
	free(rows.rows);
	((uint8_t *)data->d_buf)[IN_CIE] = 0x3f; /* no instruction */
	assert_int_equal(frame_rows_read(elf, &rows), -ENOENT);
	elf_end(elf);
	close(fd);
}

/* A copy of a file's tables in which bytes are changed. */
static void damaged(void **state)
{
	char *path = strdup(path_of("/libc.so"));
	int fd = open(path, O_RDONLY);
	struct frame_rows rows;
	uint32_t random = 1;
	uint8_t *original;
	Elf_Data *data;
	Elf *elf;

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	data = find_tables(elf);
	original = malloc(data->d_size);
	memcpy(original, data->d_buf, data->d_size);
	for (int i = 0; i < ROUNDS; i++) {
		memcpy(data->d_buf, original, data->d_size);
		for (int change = 0; change < CHANGES; change++) {
			random = random * 1664525 + 1013904223;
			((uint8_t *)data->d_buf)[random % data->d_size] = (uint8_t)(random >> 24);
		}
		if (!frame_rows_read(elf, &rows)) {
			for (uint32_t row = 1; row < rows.count; row++)
				assert_true(rows.rows[row].addr > rows.rows[row - 1].addr);
			free(rows.rows);
		}
	}
	free(original);
	elf_end(elf);
	close(fd);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_libc),
		cmocka_unit_test(of_programs),
		cmocka_unit_test(changed_expression),
		cmocka_unit_test(damaged),
	};

	return cmocka_run_group_tests_name("frame_rows", tests, NULL, NULL);
}

#else

int main(void)
{
	puts("1..0 # SKIP unwind tables are those of x86-64");
	return 0;
}

#endif
