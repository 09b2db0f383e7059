/* SPDX-License-Identifier: GPL-2.0-only */
/* Programs are made with gcc, objcopy and xz. libelf finds the expected place of a function in the
 * unstripped program. */
#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "tests/unit/runtime/compile.h"
#include "symbols/symbols.h"

static const char source[] =
	"__attribute__((noinline)) static int local_one(int x) { return x * 3; }\n"
	"__attribute__((noinline)) int global_one(int x) { return local_one(x) + 7; }\n"
	"int _under(int x) __attribute__((alias(\"global_one\")));\n"
	"int two(int x) __attribute__((alias(\"global_one\")));\n"
	"int one(int x) __attribute__((weak, alias(\"global_one\")));\n"
	"int member(int) __asm__(\"_ZN5shape4areaEi\");\n"
	"__attribute__((noinline)) int member(int x) { return x ^ 5; }\n"
	"int crate(int) __asm__(\"_RNvCskwGfYPst2Cb_5crate4func\");\n"
	"__attribute__((noinline)) int crate(int x) { return x ^ 6; }\n"
	"int legacy(int) __asm__(\"_ZN4core3fmt3pad17h0123456789abcdefE\");\n"
	"__attribute__((noinline)) int legacy(int x) { return x ^ 7; }\n"
	"int main(int c, char **v) {\n"
	"  if (c > 1) __builtin_trap();\n"
	"  if (c > 0) { extern int getchar(void); getchar(); }\n"
	"  return v && global_one(c) + member(c) + crate(c) + legacy(c); }\n";

/* Labels without size, a function within another, one beyond the end of another. */
static const char assembly[] = ".text\n.globl outer,inner,tail,bare,_start\n"
			       ".type outer,@function\n.type inner,@function\n"
			       ".type tail,@function\n"
			       "_start: nop\n"
			       "outer: .skip 16,0x90\n"
			       "inside: .skip 16,0x90\n"
			       "inner: .skip 16,0x90\n"
			       ".size inner,16\n"
			       ".skip 16,0x90\n.size outer,64\n"
			       ".skip 8,0x90\n"
			       "bare: .skip 32,0x90\n"
			       "tail: .skip 8,0x90\n.size tail,8\n"
			       ".skip 24,0x90\n";

static void run(const char *format, ...)
{
	char command[2048];
	va_list ap;
	int n;

	n = snprintf(command, sizeof(command), "cd %s && ", folder);
	va_start(ap, format);
	vsnprintf(command + n, sizeof(command) - n, format, ap);
	va_end(ap);
	if (system(command))
		fail_msg("failed: %s", command);
}

static int make_sources(void **state)
{
	if (make_folder(state))
		return -1;
	setenv("HOME", folder, 1);
	write_file(in_folder("prog.c"), source, strlen(source));
	write_file(in_folder("odd.s"), assembly, strlen(assembly));
	return 0;
}

/* Offset in the file of an address. */
static uint64_t file_offset(Elf *elf, uint64_t addr)
{
	size_t count;
	GElf_Phdr ph;

	assert_int_equal(elf_getphdrnum(elf, &count), 0);
	for (size_t i = 0; i < count; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && addr >= ph.p_vaddr &&
		    addr - ph.p_vaddr < ph.p_filesz)
			return addr - ph.p_vaddr + ph.p_offset;
	fail_msg("no segment has %llx", (unsigned long long)addr);
	return 0;
}

/* The place of a function in an unstripped file of the folder, and its size. */
static uint64_t find_function(const char *name, const char *function, uint64_t *size)
{
	uint64_t offset = 0;
	Elf_Scn *scn = NULL;
	GElf_Shdr sh = {0};
	GElf_Sym sym;
	Elf *elf;
	int fd;

	fd = open(in_folder(name), O_RDONLY);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh))
		if (sh.sh_type == SHT_SYMTAB)
			break;
	assert_non_null(scn);
	for (int i = 0; !offset && gelf_getsym(elf_getdata(scn, NULL), i, &sym); i++)
		if (strcmp(elf_strptr(elf, sh.sh_link, sym.st_name), function) == 0) {
			*size = sym.st_size;
			offset = file_offset(elf, sym.st_value);
		}
	elf_end(elf);
	close(fd);
	assert_int_not_equal(offset, 0);
	return offset;
}

/* Adds the file of that name in the folder as it is now. */
static uint32_t add(struct symbols *s, const char *name)
{
	const char *path = in_folder(name);
	struct stat st = {0};

	stat(path, &st);
	return symbols_add(s, &(struct symbols_file){.path = path, .inode = st.st_ino});
}

/* Looks up a function of the unstripped file `in` in the file `name`. */
static void check(struct symbols *s, const char *name, const char *in, const char *function,
		  const char *shown)
{
	uint32_t file = add(s, name);
	struct symbol symbol;
	uint64_t size = 0, offset = find_function(in, function, &size);

	for (uint64_t at = 0; at < size; at++) {
		assert_true(symbols_find(s, file, offset + at, &symbol));
		assert_string_equal(symbol.name, shown);
		assert_int_equal(symbol.offset, at);
	}
}

static bool knows(struct symbols *s, const char *name, const char *in, const char *function)
{
	struct symbol symbol;
	uint64_t size;

	return symbols_find(s, add(s, name), find_function(in, function, &size), &symbol);
}

/* Whether a section has a stub of this name, from its first byte on. */
static bool has_stub(struct symbols *s, const char *name, const char *section, const char *stub)
{
	int fd = open(in_folder(name), O_RDONLY);
	uint32_t file = add(s, name);
	Elf_Scn *scn = NULL;
	bool found = false;
	size_t strings;
	GElf_Shdr sh;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_int_equal(elf_getshdrstrndx(elf, &strings), 0);
	while ((scn = elf_nextscn(elf, scn)) && gelf_getshdr(scn, &sh)) {
		if (strcmp(elf_strptr(elf, strings, sh.sh_name), section) != 0)
			continue;
		for (uint64_t at = 0; at < sh.sh_size; at++) {
			struct symbol symbol;

			if (symbols_find(s, file, sh.sh_offset + at, &symbol) &&
			    strcmp(symbol.name, stub) == 0 && symbol.offset == at % 16)
				found = true;
		}
	}
	elf_end(elf);
	close(fd);
	return found;
}

static void check_all(struct symbols *s, const char *name, const char *in)
{
	check(s, name, in, "local_one", "local_one");
	check(s, name, in, "global_one", "global_one");
	check(s, name, in, "_ZN5shape4areaEi", "shape::area");
	check(s, name, in, "main", "main");
}

static void stubs_of_the_linker(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);

	(void)state;
#ifdef __x86_64__
	run("gcc -O0 -Wl,-z,lazy prog.c -o lazy && strip lazy");
	assert_true(has_stub(s, "lazy", ".plt", "getchar@plt"));
	run("gcc -O0 -Wl,-z,now,-z,ibtplt prog.c -o ibt");
	assert_true(has_stub(s, "ibt", ".plt.sec", "getchar@plt"));
	assert_true(has_stub(s, "ibt", ".plt.got", "__cxa_finalize@plt"));
	assert_false(has_stub(s, "ibt", ".text", "getchar@plt"));
	run("gcc -O0 -shared -fPIC prog.c -o stub.so");
	assert_true(has_stub(s, "stub.so", ".plt", "shape::area@plt"));
#endif
	symbols_free(s);
}

static void kinds_of_programs(void **state)
{
	static const char *const flags[] = {"-pie -fPIE",
					    "-no-pie",
					    "-static",
					    "-static-pie -fPIE",
					    "-shared -fPIC",
					    "-no-pie -Wl,-z,noseparate-code",
					    "-no-pie -Wl,-Ttext-segment=0x10000000"};
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	char name[16];

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		snprintf(name, sizeof(name), "kind%zu", i);
		run("gcc -O1 %s -o %s prog.c", flags[i], name);
		check_all(s, name, name);
	}
	symbols_free(s);
}

static void names_are_readable(void **state)
{
	static const char *const rows[][4] = {
		{"_ZN5shape4areaEi", "shape::area", "shape::area(int)", "_ZN5shape4areaEi"},
		{"_RNvCskwGfYPst2Cb_5crate4func", "crate::func", "crate::func",
		 "_RNvCskwGfYPst2Cb_5crate4func"},
		{"_ZN4core3fmt3pad17h0123456789abcdefE", "core::fmt::pad", "core::fmt::pad",
		 "_ZN4core3fmt3pad17h0123456789abcdefE"},
	};

	(void)state;
	run("gcc -O1 -o names prog.c");
	for (int style = NAMES_SHORT; style <= NAMES_MANGLED; style++) {
		struct symbols *s = symbols_new(true, style);

		for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
			check(s, "names", "names", rows[i][0], rows[i][1 + style]);
		symbols_free(s);
	}
}

static void odd_symbols(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	struct {
		int at;
		const char *name;
		int plus;
	} rows[] = {
		{-1, "_start", 0}, {0, "outer", 0},    {15, "outer", 15}, {16, "outer", 16},
		{31, "outer", 31}, {32, "inner", 0},   {47, "inner", 15}, {48, "outer", 48},
		{63, "outer", 63}, {64, NULL, 0},      {71, NULL, 0},	  {72, "bare", 0},
		{103, "bare", 31}, {104, "tail", 0},   {111, "tail", 7},  {112, NULL, 0},
		{135, NULL, 0},	   {1 << 20, NULL, 0},
	};
	uint64_t size, outer;
	struct symbol symbol;
	uint32_t file;

	(void)state;
	run("gcc -nostdlib -static -o odd odd.s");
	outer = find_function("odd", "outer", &size);
	file = add(s, "odd");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		symbols_find(s, file, outer + rows[i].at, &symbol);
		if (!rows[i].name) {
			assert_null(symbol.name);
			continue;
		}
		assert_non_null(symbol.name);
		assert_string_equal(symbol.name, rows[i].name);
		assert_int_equal(symbol.offset, rows[i].plus);
	}
	symbols_free(s);
}

/* strip_with: the program that strips `stripped` and records the place of the rest. */
static void stripped(const char *build_id, const char *strip_with, bool found)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);

	run("rm -rf whole stripped stripped.debug .debug && "
	    "gcc -O1 -Wl,--build-id=%s -o whole prog.c && strip -o stripped whole && "
	    "objcopy --only-keep-debug whole stripped.debug && %s",
	    build_id, strip_with);
	if (found)
		check_all(s, "stripped", "whole");
	else
		assert_false(knows(s, "stripped", "whole", "local_one"));
	symbols_free(s);
}

static void separate_debug_files(void **state)
{
	(void)state;
	stripped("sha1", "rm stripped.debug", false);
	stripped("none", "objcopy --add-gnu-debuglink=stripped.debug stripped", true);
	stripped("sha1", "objcopy --add-gnu-debuglink=stripped.debug stripped", true);
	stripped("none",
		 "objcopy --add-gnu-debuglink=stripped.debug stripped && mkdir .debug && "
		 "mv stripped.debug .debug/",
		 true);
	/* A file that does not belong to it: another check sum, another build id. */
	stripped("none",
		 "objcopy --add-gnu-debuglink=stripped.debug stripped && echo >>stripped.debug",
		 false);
	stripped("sha1",
		 "objcopy --add-gnu-debuglink=stripped.debug stripped && "
		 "gcc -O1 -Wl,--build-id=0x1234 -o whole2 prog.c && "
		 "objcopy --only-keep-debug whole2 stripped.debug",
		 false);
	stripped("0x12345678",
		 "mkdir -p .debug/.build-id/12/345678 && mv stripped.debug "
		 ".debug/.build-id/12/345678/debug",
		 true);
	stripped("0x12345678",
		 "mkdir -p .cache/debuginfod_client/12345678 && mv stripped.debug "
		 ".cache/debuginfod_client/12345678/debuginfo",
		 true);
}

static void mini_debug_info(void **state)
{
	(void)state;
	stripped("sha1",
		 "strip --strip-debug stripped.debug && xz -k stripped.debug && objcopy "
		 "--add-section .gnu_debugdata=stripped.debug.xz stripped && "
		 "rm stripped.debug*",
		 true);
	stripped("sha1",
		 "xz -k stripped.debug && head -c 300 stripped.debug.xz >cut && objcopy "
		 "--add-section .gnu_debugdata=cut stripped && rm stripped.debug*",
		 false);
	/* 200 MiB of zeros in 30 KiB. */
	stripped("sha1",
		 "head -c 200M /dev/zero | xz -0 >bomb && objcopy "
		 "--add-section .gnu_debugdata=bomb stripped && rm stripped.debug*",
		 false);
}

static void other_files(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	struct symbol symbol;

	(void)state;
	run("mkfifo fifo; mkdir -p directory; : >empty; echo text >text; "
	    "head -c 100 /bin/true >cut_elf; ln -s /dev/zero device");
	for (const char *const *name = (const char *const[]){"fifo", "directory", "empty", "text",
							     "cut_elf", "device", "none", NULL};
	     *name; name++)
		assert_false(symbols_find(s, add(s, *name), 0x1000, &symbol));
	assert_false(symbols_find(s, 0, 0, &symbol));
	assert_false(symbols_find(s, 12345, 0, &symbol));
	assert_null(symbols_path(s, 0));
	assert_null(symbols_path(s, 12345));
	symbols_free(s);
}

static void replaced_and_changed_files(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	const uint8_t id[4] = {0x12, 0x34, 0x56, 0x78}, other[4] = {0x12, 0x34, 0x56, 0x79};
	struct symbols_file file = {.build_id = id, .build_id_size = sizeof(id)};
	struct symbol symbol;
	uint64_t size, offset;
	uint32_t first, second;

	(void)state;
	run("gcc -O1 -Wl,--build-id=0x12345678 -o program prog.c");
	offset = find_function("program", "main", &size);
	first = add(s, "program");
	run("cp program program2 && mv program2 program");
	second = add(s, "program");
	assert_int_not_equal(first, second);
	assert_false(symbols_find(s, first, offset, &symbol));
	assert_true(symbols_find(s, second, offset, &symbol));
	/* Known by its build id instead: any inode, but that build id. */
	file.path = in_folder("program");
	first = symbols_add(s, &file);
	assert_int_equal(symbols_add(s, &file), first);
	assert_true(symbols_find(s, first, offset, &symbol));
	assert_int_equal(symbols_add(s, &file), first);
	file.build_id = other;
	assert_int_not_equal(symbols_add(s, &file), first);
	assert_false(symbols_find(s, symbols_add(s, &file), offset, &symbol));
	/* A path alone is trusted. */
	file.build_id_size = 0;
	assert_true(symbols_find(s, symbols_add(s, &file), offset, &symbol));
	assert_int_equal(symbols_add(s, &file), symbols_add(s, &file));
	symbols_free(s);
}

/* A deleted program is found through the process that runs it, also after its end. */
static void deleted_programs(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT), *late = symbols_new(true, NAMES_SHORT);
	char maps[64], line[512];
	const char *path = in_folder("deleted");
	unsigned long long start = 0, end = 0;
	struct symbol symbol;
	uint64_t size, offset;
	uint32_t file;
	FILE *list;
	int in[2];
	pid_t pid;

	(void)state;
	run("gcc -O1 -o deleted prog.c && cp deleted kept");
	offset = find_function("kept", "local_one", &size);
	file = add(s, "deleted");
	assert_int_equal(pipe(in), 0);
	pid = fork();
	if (!pid) {
		dup2(in[0], 0);
		close(in[1]);
		execl(path, path, NULL);
		_exit(1);
	}
	snprintf(maps, sizeof(maps), "/proc/%d/maps", pid);
	for (int tries = 0; !start && tries < 1000; tries++) {
		usleep(1000);
		list = fopen(maps, "r");
		while (list && fgets(line, sizeof(line), list))
			if (strstr(line, "/deleted\n") && strstr(line, " r-xp "))
				sscanf(line, "%llx-%llx", &start, &end);
		if (list)
			fclose(list);
	}
	assert_int_not_equal(start, 0);
	run("rm deleted");
	symbols_open(s, file, pid, start, end);
	close(in[1]);
	close(in[0]);
	waitpid(pid, NULL, 0);
	assert_true(symbols_find(s, file, offset, &symbol));
	assert_string_equal(symbol.name, "local_one");
	/* A file that was not opened in time is lost. */
	file = symbols_add(late, &(struct symbols_file){.path = in_folder("deleted"), .inode = 1});
	symbols_open(late, file, pid, start, end);
	assert_false(symbols_find(late, file, offset, &symbol));
	symbols_free(late);
	symbols_free(s);
}

static void same_build_id_shares_a_table(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	struct symbols_stats stats;

	(void)state;
	run("gcc -O1 -Wl,--build-id=sha1 -o twin1 prog.c && cp twin1 twin2");
	check_all(s, "twin1", "twin1");
	check_all(s, "twin2", "twin1");
	symbols_read_stats(s, &stats);
	assert_int_equal(stats.files, 2);
	assert_int_equal(stats.tables, 1);
	symbols_free(s);
}

static void vdso(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	struct symbols *recorded = symbols_new(false, NAMES_SHORT);
	struct symbols_file file = {.path = "[vdso]"};
	uint32_t id = symbols_add(s, &file), found = 0;
	struct symbol symbol;

	(void)state;
	for (uint64_t at = 0; at < 0x4000; at += 4)
		if (symbols_find(s, id, at, &symbol) && strstr(symbol.name, "gettime"))
			found++;
	symbols_add(recorded, &file);
	for (uint64_t at = 0; at < 0x4000; at += 4)
		assert_false(symbols_find(recorded, 1, at, &symbol));
	symbols_free(recorded);
	symbols_free(s);
	if (!found)
		skip();
}

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Many files: descriptors stay bounded, and all files are found again. */
static void descriptors_are_bounded(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_SHORT);
	int before = open_descriptors();
	uint64_t size, offset;
	struct symbols_stats stats;
	struct symbol symbol;
	char name[16];

	(void)state;
	run("gcc -O1 -Wl,--build-id=none -o many prog.c && strip --strip-debug many && "
	    "for i in $(seq 400); do cp many m$i; done");
	offset = find_function("many", "main", &size);
	for (int round = 0; round < 2; round++)
		for (int i = 1; i <= 400; i++) {
			snprintf(name, sizeof(name), "m%d", i);
			assert_true(symbols_find(s, add(s, name), offset + round, &symbol));
		}
	symbols_read_stats(s, &stats);
	assert_int_equal(stats.files, 400);
	assert_in_range(open_descriptors() - before, 1, 256);
	assert_in_range(stats.tables, 1, 256);
	symbols_free(s);
}

/* Every function of this test program that nm knows. */
static void agrees_with_nm(void **state)
{
	struct symbols *s = symbols_new(true, NAMES_MANGLED);
	unsigned long long addr, size;
	char command[4200], path[4096] = "", line[1024], name[512], type;
	struct stat st;
	struct symbol symbol;
	uint32_t file;
	int checked = 0, fd;
	FILE *nm;
	Elf *elf;

	(void)state;
	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	fd = open(path, O_RDONLY);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	fstat(fd, &st);
	file = symbols_add(s, &(struct symbols_file){.path = path, .inode = st.st_ino});
	snprintf(command, sizeof(command), "nm -S --defined-only %s", path);
	nm = popen(command, "r");
	while (fgets(line, sizeof(line), nm)) {
		if (sscanf(line, "%llx %llx %c %511s", &addr, &size, &type, name) != 4 ||
		    !strchr("tTW", type) || !size)
			continue;
		assert_true(symbols_find(s, file, file_offset(elf, addr + size / 2), &symbol));
		assert_int_equal(symbol.offset, size / 2);
		checked++;
	}
	pclose(nm);
	elf_end(elf);
	close(fd);
	assert_true(checked > 50);
	symbols_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds_of_programs),
		cmocka_unit_test(stubs_of_the_linker),
		cmocka_unit_test(names_are_readable),
		cmocka_unit_test(odd_symbols),
		cmocka_unit_test(separate_debug_files),
		cmocka_unit_test(mini_debug_info),
		cmocka_unit_test(other_files),
		cmocka_unit_test(replaced_and_changed_files),
		cmocka_unit_test(deleted_programs),
		cmocka_unit_test(same_build_id_shares_a_table),
		cmocka_unit_test(vdso),
		cmocka_unit_test(descriptors_are_bounded),
		cmocka_unit_test(agrees_with_nm),
	};

	return cmocka_run_group_tests_name("symbols", tests, make_sources, remove_folder);
}
