/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files are made by gcc. The place of a function is right if the file has the function's bytes
 * there: these begin with a text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/runtime/compile.h"
#include "probes/elf.h"
#include "error.h"

#define FUNCTION(section, scope, name, bytes)                                              \
	"__asm__(\".pushsection " section ",\\\"ax\\\"\\n" scope " " name "\\n.type " name \
	",@function\\n" name ": .ascii \\\"" bytes "\\\"\\n.size " name ", .-" name        \
	"\\n.popsection\");\n"
#define PROGRAM                                           \
	FUNCTION(".text", ".globl", "first", "first___")  \
	FUNCTION(".text", ".local", "second", "second__") \
	FUNCTION(".far", ".globl", "distant", "distant_") \
	"int data = 5; int absent(void); void _start(void) { absent(); }"
#define LIBRARY                                                                              \
	FUNCTION(".text", ".globl", "old_twice", "old_____")                                 \
	FUNCTION(".text", ".globl", "new_twice", "new_____")                                 \
	"__asm__(\".symver old_twice, twice@V1\\n.symver new_twice, twice@@V2\");" FUNCTION( \
		".text", ".globl", "only_old",                                               \
		"only_old") "__asm__(\".symver only_old, ancient@V1\");"                     \
			    "static void *pick(void) { return 0; } void chosen(void) "       \
			    "__attribute__((ifunc(\"pick\")));"

static struct elf_file *open_file(const char *path)
{
	struct error err = {0};
	struct elf_file *f = elf_file_open(path, &err);

	assert_string_equal(err.text, "");
	assert_non_null(f);
	return f;
}

static void assert_found(const char *path, const char *name, uint64_t plus, const char *bytes)
{
	struct elf_file *f = open_file(path);
	struct error err = {0};
	uint64_t offset = 0;
	char *text;
	size_t size = read_file(path, &text);
	int ret = elf_file_function(f, name, plus, &offset, &err);

	assert_string_equal(err.text, "");
	assert_int_equal(ret, 0);
	assert_true(offset + strlen(bytes) <= size);
	assert_memory_equal(text + offset, bytes, strlen(bytes));
	free(text);
	elf_file_free(f);
}

static void assert_refused(const char *path, const char *name, uint64_t plus, int code,
			   const char *message)
{
	struct elf_file *f = open_file(path);
	struct error err = {0};
	uint64_t offset;

	assert_int_equal(elf_file_function(f, name, plus, &offset, &err), code);
	if (!strstr(err.text, message))
		fail_msg("'%s' is not in '%s'", message, err.text);
	elf_file_free(f);
}

static void test_program_headers_decide(void **state)
{
	static const char *const options[] = {
		"-pie -Wl,--unresolved-symbols=ignore-all",
		"-no-pie -Wl,--unresolved-symbols=ignore-all",
		/* .far has another difference of address and offset than .text */
		"-no-pie -Wl,--unresolved-symbols=ignore-all,--section-start=.far=0x80000000",
		"-no-pie "
		"-Wl,--unresolved-symbols=ignore-all,-Ttext-segment=0x7000000,-z,noseparate-code",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *path = compile("program", options[i], PROGRAM);

		assert_found(path, "first", 0, "first___");
		assert_found(path, "first", 5, "___");
		assert_found(path, "second", 0, "second__");
		assert_found(path, "distant", 2, "stant_");
	}
}

static void test_invalid_places(void **state)
{
	const char *path = compile("wrong", "-shared -fPIC", PROGRAM);

	(void)state;
	assert_refused(path, "frist", 0, -ENOENT, "no function 'frist' in");
	assert_refused(path, "frist", 0, -ENOENT, "did you mean 'first'?");
	assert_refused(path, "data", 0, -ENOENT, "no function 'data'");
	assert_refused(path, "absent", 0, -ENOENT, "only imports 'absent'");
	assert_refused(path, "first", 8, -EINVAL, "'first' in");
	assert_refused(path, "first", 8, -EINVAL, "has only 8 bytes");
	assert_refused(path, "first", UINT64_MAX, -EINVAL, "has only 8 bytes");
	path = compile("bare", "-static -s", "void _start(void) {}");
	assert_refused(path, "_start", 0, -ENOENT, "has no symbols");
}

static void test_two_with_one_name(void **state)
{
	char options[256];
	const char *other =
		compile("other.o", "-c", FUNCTION(".text", ".local", "second", "other___"));

	(void)state;
	snprintf(options, sizeof(options), "-pie -Wl,--unresolved-symbols=ignore-all %s", other);
	assert_refused(compile("two", options, PROGRAM), "second", 0, -EINVAL,
		       "several functions 'second'");
}

static void test_versions(void **state)
{
	static const char map[] = "V1 { global: twice; ancient; chosen; local: *; }; V2 {} V1;";
	char options[256];

	(void)state;
	write_file(in_folder("map"), map, strlen(map));
	for (int stripped = 0; stripped < 2; stripped++) {
		const char *path;

		snprintf(options, sizeof(options), "-shared -fPIC -Wl,--version-script=%s %s",
			 in_folder("map"), stripped ? "-s" : "");
		path = compile("versions.so", options, LIBRARY);
		assert_found(path, "twice", 0, "new_____");
		assert_found(path, "ancient", 0, "only_old");
		assert_refused(path, "chosen", 0, -EINVAL, "an indirect function");
	}
}

static void test_addresses(void **state)
{
	struct elf_file *f =
		open_file(compile("data", "-pie -Wl,--unresolved-symbols=ignore-all", PROGRAM));
	uint64_t addr, offset;
	char *text;

	(void)state;
	assert_int_equal(elf_file_address(f, "data", &addr), 0);
	assert_int_equal(elf_file_offset(f, addr, 0, &offset), 0);
	read_file(in_folder("data"), &text);
	assert_int_equal(text[offset], 5);
	free(text);
	assert_int_equal(elf_file_offset(f, addr, 1, &offset), -ENOENT);
	assert_int_equal(elf_file_offset(f, UINT64_MAX, 0, &offset), -ENOENT);
	assert_int_equal(elf_file_address(f, "absent", &addr), -ENOENT);
	assert_int_equal(elf_file_address(f, "nowhere", &addr), -ENOENT);
	elf_file_free(f);
}

/* As in a file with gigabytes before its code. */
static void test_names_as_in_the_source(void **state)
{
	const char *path = compile(
		"mangled", "-shared -fPIC",
		FUNCTION(".text", ".globl", "_ZN5shape4areaEi", "area(int")
			FUNCTION(".text", ".globl", "_ZN5shape4areaEd", "area(dou")
				FUNCTION(".text", ".globl", "_ZN5shape4sizeEv", "size()__"));

	(void)state;
	assert_found(path, "shape::area(int)", 0, "area(int");
	assert_found(path, "shape::area(double)", 0, "area(dou");
	assert_found(path, "shape::size", 0, "size()__");
	assert_found(path, "_ZN5shape4areaEi", 0, "area(int");
	assert_refused(path, "shape::area", 0, -EINVAL, "several functions 'shape::area'");
	assert_refused(path, "shape::aera(int)", 0, -ENOENT, "no function 'shape::aera(int)'");
}

static void test_go_programs(void **state)
{
	static const char go[] =
		"__asm__(\".section .go.buildinfo,\\\"a\\\"\\n.ascii \\\"x\\\"\\n.text\");"
		"void _start(void) {}";
	struct elf_file *f;

	(void)state;
	f = open_file(compile("go", "-static -s", go));
	assert_int_equal(elf_file_is_go(f), 1);
	elf_file_free(f);
	f = open_file(compile("other", "-static", "void _start(void) {}"));
	assert_int_equal(elf_file_is_go(f), 0);
	elf_file_free(f);
}

static void test_large_offsets(void **state)
{
	const uint64_t beyond = 5ull << 30;
	const char *path = compile("large", "-no-pie -static", "void _start(void) {}");
	struct elf_file *f = open_file(path);
	struct error err = {0};
	uint64_t before, after;
	Elf64_Phdr *phdr;
	char *text;
	size_t size = read_file(path, &text);

	(void)state;
	assert_int_equal(elf_file_function(f, "_start", 0, &before, &err), 0);
	elf_file_free(f);
	phdr = (void *)(text + ((Elf64_Ehdr *)text)->e_phoff);
	for (int i = 0; i < ((Elf64_Ehdr *)text)->e_phnum; i++)
		if (phdr[i].p_flags & PF_X)
			phdr[i].p_offset += beyond;
	write_file(path, text, size);
	free(text);
	assert_int_equal(truncate(path, 2 * beyond), 0);
	f = open_file(path);
	assert_int_equal(elf_file_function(f, "_start", 0, &after, &err), 0);
	assert_int_equal(after, before + beyond);
	elf_file_free(f);
}

static void assert_not_opened(const char *path, const char *message)
{
	struct error err = {0};

	assert_null(elf_file_open(path, &err));
	if (!strstr(err.text, message))
		fail_msg("'%s' is not in '%s'", message, err.text);
}

static void test_no_elf_file(void **state)
{
	(void)state;
	write_file(in_folder("text"), "#!/bin/sh\n", 10);
	write_file(in_folder("empty"), "", 0);
	assert_int_equal(mkfifo(in_folder("fifo"), 0600), 0);
	assert_not_opened(in_folder("text"), "is not an ELF file");
	assert_not_opened(in_folder("empty"), "is not an ELF file");
	assert_not_opened(in_folder("nothing"), "No such file or directory");
	assert_not_opened(folder, "is not a regular file");
	assert_not_opened(in_folder("fifo"), "is not a regular file");
}

/* Nothing is asserted except that it returns: the sanitizers watch. */
static void try_file(const char *path)
{
	struct elf_file *f = elf_file_open(path, NULL);
	struct error err;
	uint64_t offset;

	if (!f)
		return;
	elf_file_function(f, "frist", 0, &offset, &err);
	elf_file_function(f, "first", 3, &offset, &err);
	elf_file_address(f, "data", &offset);
	elf_file_free(f);
}

static void test_damaged_files(void **state)
{
	const char *path = compile("damaged", "-shared -fPIC", PROGRAM);
	char *text, *copy;
	size_t size = read_file(path, &text);
	uint32_t random = 1;

	(void)state;
	copy = malloc(size);
	for (size_t cut = 0; cut < size; cut += 1 + cut / 16) {
		write_file(path, text, cut);
		try_file(path);
	}
	for (int i = 0; i < 2000; i++) {
		memcpy(copy, text, size);
		for (int j = 0; j < 4; j++) {
			random = random * 1103515245 + 12345;
			/* the place of the headers: at the start and at the end */
			copy[(i & 1 ? random >> 8 : size - 1 - (random >> 8) % 2048) % size] =
				random >> 3;
		}
		write_file(path, copy, size);
		try_file(path);
	}
	free(copy);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names_as_in_the_source),
		cmocka_unit_test(test_program_headers_decide),
		cmocka_unit_test(test_invalid_places),
		cmocka_unit_test(test_two_with_one_name),
		cmocka_unit_test(test_versions),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_go_programs),
		cmocka_unit_test(test_large_offsets),
		cmocka_unit_test(test_no_elf_file),
		cmocka_unit_test(test_damaged_files),
	};

	return cmocka_run_group_tests_name("elf", tests, make_folder, remove_folder);
}
