/* SPDX-License-Identifier: GPL-2.0-only */
/* Functions of files that are assembled here, looked up by their place in the file. Each line of
 * `layout` says which function owns its byte. */
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
#include "symbols/symtab.h"
#include "tests/unit/runtime/compile.h"

/* Blocks of 16 bytes. */
static const char layout[] =
	"asm(\".text\\n\""
	"\".macro function name\\n .globl \\\\name\\n .type \\\\name, %function\\n"
	" \\\\name:\\n .endm\\n\""
	"\"function outer\\n .skip 16\\n\""		       /* 0: outer */
	"\"label:\\n .skip 16\\n\""			       /* 1: outer */
	"\"function inner\\n .skip 16\\n .size inner, 16\\n\"" /* 2: inner */
	"\".skip 16\\n .size outer, 64\\n\""		       /* 3: outer */
	"\".skip 16\\n\""				       /* 4: none */
	"\"open: .skip 16\\n\""				       /* 5: open */
	"\".skip 16\\n\""				       /* 6: open */
	"\"function __best\\n function better\\n function better_one\\n function a\\n"
	" .weak weak_of_a_long_name\\n .type weak_of_a_long_name, %function\\n"
	" weak_of_a_long_name:\\n\""
	"\".skip 16\\n .size __best, 16\\n .size better, 16\\n .size better_one, 16\\n"
	" .size a, 16\\n .size weak_of_a_long_name, 16\\n\""	       /* 7: better_one */
	"\"function versioned\\n .skip 16\\n .size versioned, 16\\n\"" /* 8 */
	"\"function last\\n .skip 16\\n .size last, 16\\n\");";	       /* 9 */

enum { BLOCK = 16 };

struct table {
	struct symtab *symtab;
	uint64_t text; /* the place of the section in the file */
	bool data;     /* it is for variables */
	int fd, full;
};

static uint64_t section_offset(Elf *elf, const char *wanted)
{
	uint64_t offset = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	size_t names;

	assert_int_equal(elf_getshdrstrndx(elf, &names), 0);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (!strcmp(elf_strptr(elf, names, sh.sh_name), wanted))
			offset = sh.sh_offset;
	return offset;
}

/* Adds the functions of a file; the table owns its descriptor. */
static int add_file(struct table *t, const char *path)
{
	int fd = open(path, O_RDONLY), ret;
	struct symtab_names names = {.fd = fd, .owned = true};
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	if (!t->symtab) {
		t->symtab = symtab_new(elf, t->data);
		assert_non_null(t->symtab);
		t->text = section_offset(elf, ".text");
		t->fd = fd;
	}
	ret = symtab_add(t->symtab, elf, &names);
	elf_end(elf);
	return ret;
}

static struct table open_file(const char *path)
{
	struct table t = {0};

	t.full = add_file(&t, path);
	assert_int_equal(symtab_finish(t.symtab), 0);
	return t;
}

/* The byte at this offset is this far from the start of the function. NULL: of no function. */
static void byte_is_of(const struct table *t, uint64_t offset, const char *name, uint64_t plus)
{
	uint64_t got = 0;
	const char *found = symtab_find(t->symtab, offset, &got);

	if (!name) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, name);
	assert_int_equal(got, plus);
}

static const char *make_layout(const char *output, const char *options)
{
	return compile(output, options, layout);
}

static void the_innermost_function_has_a_byte(void **state)
{
	struct table t = open_file(make_layout("full.so", "-shared"));

	(void)state;
	assert_int_equal(t.full, 1);
	byte_is_of(&t, t.text, "outer", 0);
	byte_is_of(&t, t.text + 1 * BLOCK, "outer", BLOCK); /* no label splits a function */
	byte_is_of(&t, t.text + 2 * BLOCK - 1, "outer", 2 * BLOCK - 1);
	byte_is_of(&t, t.text + 2 * BLOCK, "inner", 0);
	byte_is_of(&t, t.text + 3 * BLOCK - 1, "inner", BLOCK - 1);
	byte_is_of(&t, t.text + 3 * BLOCK, "outer", 3 * BLOCK);
	byte_is_of(&t, t.text + 4 * BLOCK, NULL, 0);
	byte_is_of(&t, t.text + 5 * BLOCK - 1, NULL, 0);
	byte_is_of(&t, t.text + 9 * BLOCK, "last", 0);
	byte_is_of(&t, t.text + 10 * BLOCK, NULL, 0);
	byte_is_of(&t, 0, NULL, 0);
	byte_is_of(&t, UINT64_MAX, NULL, 0);
	symtab_free(t.symtab);
}

static void a_label_without_size_goes_up_to_the_next(void **state)
{
	struct table t = open_file(make_layout("full.so", "-shared"));

	(void)state;
	byte_is_of(&t, t.text + 5 * BLOCK, "open", 0);
	byte_is_of(&t, t.text + 7 * BLOCK - 1, "open", 2 * BLOCK - 1);
	symtab_free(t.symtab);
}

/* As in perf: global before weak, fewer leading underscores, then the longest name. */
static void one_of_several_names_is_taken(void **state)
{
	struct table t = open_file(make_layout("full.so", "-shared"));

	(void)state;
	byte_is_of(&t, t.text + 7 * BLOCK, "better_one", 0);
	byte_is_of(&t, t.text + 8 * BLOCK - 1, "better_one", BLOCK - 1);
	symtab_free(t.symtab);
}

static void a_version_is_not_part_of_a_name(void **state)
{
	struct table t = {0};
	const char *path = make_layout("versions.so", "-shared");
	char command[512];

	(void)state;
	snprintf(command, sizeof(command), "objcopy --redefine-sym versioned=versioned@@ONE_2 %s",
		 path);
	assert_int_equal(system(command), 0);
	t = open_file(path);
	byte_is_of(&t, t.text + 8 * BLOCK + 3, "versioned", 3);
	symtab_free(t.symtab);
}

/* A stripped file has the names for the dynamic linker; its debug file has all names. */
static void two_files_make_one_table(void **state)
{
	const char *path = make_layout("stripped.so", "-shared");
	struct table t = {0};
	char command[512];

	(void)state;
	snprintf(command, sizeof(command),
		 "cd %s && objcopy --only-keep-debug stripped.so debug && "
		 "strip stripped.so",
		 folder);
	assert_int_equal(system(command), 0);
	t = open_file(path);
	assert_int_equal(t.full, 0);
	byte_is_of(&t, t.text, "outer", 0);
	byte_is_of(&t, t.text + 5 * BLOCK, NULL, 0);
	symtab_free(t.symtab);

	t = (struct table){0};
	assert_int_equal(add_file(&t, path), 0);
	assert_int_equal(add_file(&t, in_folder("debug")), 1);
	assert_int_equal(symtab_finish(t.symtab), 0);
	byte_is_of(&t, t.text + 2 * BLOCK, "inner", 0);
	byte_is_of(&t, t.text + 5 * BLOCK, "open", 0);
	byte_is_of(&t, t.text + 7 * BLOCK, "better_one", 0);
	symtab_free(t.symtab);
}

static void descriptors_are_closed_if_they_are_owned(void **state)
{
	const char *path = make_layout("full.so", "-shared");
	struct table t = open_file(path);
	int fd = open(path, O_RDONLY);
	struct symtab_names names = {.fd = fd};
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	struct symtab *other = symtab_new(elf, false);

	(void)state;
	assert_true(fcntl(t.fd, F_GETFD) >= 0);
	symtab_free(t.symtab);
	assert_int_equal(fcntl(t.fd, F_GETFD), -1);

	assert_int_equal(symtab_add(other, elf, &names), 1);
	elf_end(elf);
	assert_int_equal(symtab_finish(other), 0);
	symtab_free(other);
	assert_true(fcntl(fd, F_GETFD) >= 0);
	close(fd);
}

/* A file in memory; the names are read from there. */
static struct table open_memory(char *bytes, size_t size)
{
	struct symtab_names names = {.fd = -1, .owned = true, .memory = bytes, .size = size};
	struct table t = {.fd = -1};
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_memory(bytes, size);
	assert_non_null(elf);
	t.symtab = symtab_new(elf, false);
	t.text = section_offset(elf, ".text");
	t.full = symtab_add(t.symtab, elf, &names);
	elf_end(elf);
	assert_int_equal(symtab_finish(t.symtab), 0);
	return t;
}

static void names_in_memory_and_invalid_names(void **state)
{
	const char *path = make_layout("full.so", "-shared");
	char *bytes;
	size_t size = read_file(path, &bytes);
	struct table t = open_memory(bytes, size);
	Elf64_Ehdr *header;
	Elf64_Shdr *sections;

	(void)state;
	byte_is_of(&t, t.text + 2 * BLOCK + 5, "inner", 5);
	symtab_free(t.symtab);

	/* Every name starts beyond the end of its table, every function is endless. */
	size = read_file(path, &bytes);
	header = (Elf64_Ehdr *)bytes;
	sections = (Elf64_Shdr *)(bytes + header->e_shoff);
	for (int i = 0; i < header->e_shnum; i++) {
		Elf64_Sym *symbols = (Elf64_Sym *)(bytes + sections[i].sh_offset);

		if (sections[i].sh_type != SHT_SYMTAB && sections[i].sh_type != SHT_DYNSYM)
			continue;
		for (size_t k = 0; k < sections[i].sh_size / sizeof(*symbols); k++) {
			symbols[k].st_name = UINT32_MAX - k;
			symbols[k].st_size = UINT64_MAX;
		}
	}
	t = open_memory(bytes, size);
	for (int i = 0; i < 10 * BLOCK; i++)
		byte_is_of(&t, t.text + i, NULL, 0);
	symtab_free(t.symtab);
}

static uint64_t place_of(const char *path, const char *section)
{
	int fd = open(path, O_RDONLY);
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	uint64_t offset = section_offset(elf, section);

	elf_end(elf);
	close(fd);
	return offset;
}

static void variables_have_names_also_beyond_the_file(void **state)
{
	const char *path = compile("vars.so", "-shared -fPIC",
				   "__attribute__((section(\"own_section\"))) int filled[10] = {1};"
				   "int zeroed[1000]; __thread int own = 5;"
				   "const int constant[10] = {2}; int call(void) { return own; }");
	struct table t = {.data = true};
	const char *found = NULL;
	uint64_t at, plus;

	(void)state;
	t.full = add_file(&t, path);
	assert_int_equal(t.full, 1);
	assert_int_equal(symtab_finish(t.symtab), 0);
	byte_is_of(&t, place_of(path, "own_section") + 4, "filled", 4);
	byte_is_of(&t, place_of(path, ".rodata"), "constant", 0);
	byte_is_of(&t, place_of(path, ".text"), NULL, 0);
	/* Where .bss would be in the file. */
	for (at = place_of(path, ".data"); at < place_of(path, ".data") + 65536; at++) {
		found = symtab_find(t.symtab, at, &plus);
		if (found && !strcmp(found, "zeroed"))
			break;
	}
	byte_is_of(&t, at, "zeroed", 0);
	byte_is_of(&t, at + 3999, "zeroed", 3999);
	byte_is_of(&t, at + 4000, NULL, 0);
	symtab_free(t.symtab);
}

static void stubs_of_the_linker_have_names(void **state)
{
	const char *path = compile("calls.so", "-shared -fPIC",
				   "int absent(int); int call(int x) { return absent(x) + 1; }");
	int fd = open(path, O_RDONLY);
	uint64_t stubs, plus, at;
	struct table t;
	Elf *elf;
	int found = 0;

	(void)state;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	stubs = section_offset(elf, ".plt");
	elf_end(elf);
	close(fd);
	if (!stubs)
		skip();
	t = open_file(path);
	for (at = stubs; at < stubs + 64; at += BLOCK) {
		const char *name = symtab_find(t.symtab, at, &plus);

		if (name && !strcmp(name, "absent@plt")) {
			assert_int_equal(plus, 0);
			found++;
		}
	}
	assert_int_equal(found, 1);
	symtab_free(t.symtab);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_innermost_function_has_a_byte),
		cmocka_unit_test(a_label_without_size_goes_up_to_the_next),
		cmocka_unit_test(one_of_several_names_is_taken),
		cmocka_unit_test(a_version_is_not_part_of_a_name),
		cmocka_unit_test(two_files_make_one_table),
		cmocka_unit_test(descriptors_are_closed_if_they_are_owned),
		cmocka_unit_test(names_in_memory_and_invalid_names),
		cmocka_unit_test(variables_have_names_also_beyond_the_file),
		cmocka_unit_test(stubs_of_the_linker_have_names),
	};

	return cmocka_run_group_tests_name("symtab", tests, make_folder, remove_folder);
}
