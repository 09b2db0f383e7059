/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The notes are written by hand, as the compiler writes them for <sys/sdt.h>.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>

#include "tests/unit/runtime/compile.h"
#include "error.h"
#include "probes/usdt.h"

/* A probe, and the note that describes it. word: the directive for an address; moved: the distance
 * that the file claims to have been moved since. */
#define NOTE(word, moved, semaphore, name, args)                                             \
	"990: .ascii \\\"" name "\\\"\\n.pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n" \
	".balign 4\\n.4byte 992f-991f, 994f-993f, 3\\n991: .asciz \\\"stapsdt\\\"\\n"        \
	"992: .balign 4\\n993: " word " 990b-" moved ", base-" moved ", " semaphore "\\n"    \
	".asciz \\\"lab\\\", \\\"" name "\\\", \\\"" args "\\\"\\n994: .balign 4\\n.popsection\\n"
#define WORDS ".8byte"
#define START                                                                                      \
	"__asm__(\".pushsection .stapsdt.base,\\\"a\\\"\\nbase: .space 1\\n.popsection\\n"         \
	".pushsection .probes,\\\"aw\\\"\\n.short 0\\nsem: .short 0x5353\\n.popsection\\n"         \
	".pushsection .data\\n.long 0\\n.globl shown\\n.type shown,@object\\nshown: .long 0x77\\n" \
	".popsection\\n.text\\n.globl _start\\n_start: nop\\n"
#define END "\");"

static struct usdt *open_file(const char *path)
{
	struct error err = {0};
	struct usdt *u = usdt_open(path, &err);

	assert_string_equal(err.text, "");
	assert_non_null(u);
	return u;
}

static struct usdt *open_text(const char *options, const char *text)
{
	return open_file(compile("probes", options, text));
}

/* The file has these bytes at the offset. */
static void assert_bytes(uint64_t offset, const char *bytes)
{
	char *text;
	size_t size = read_file(in_folder("probes"), &text);

	assert_true(offset + strlen(bytes) <= size);
	assert_memory_equal(text + offset, bytes, strlen(bytes));
	free(text);
}

static void test_list(void **state)
{
	static const char *const options[] = {"-pie", "-no-pie",
					      "-no-pie -Wl,-Ttext-segment=0x9000000 -s"};

	(void)state;
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		struct usdt *u =
			open_text(options[i], START NOTE(WORDS, "0", "0", "open", "-4@%edi 8@%rsi")
						      NOTE(WORDS, "0", "sem", "close", "") END);
		const struct usdt_probe *p = usdt_probe(u, 0);

		assert_int_equal(usdt_count(u), 2);
		assert_string_equal(p->provider, "lab");
		assert_string_equal(p->name, "open");
		assert_string_equal(p->args, "-4@%edi 8@%rsi");
		assert_int_equal(p->semaphore, 0);
		assert_bytes(p->offset, "open");
		p = usdt_probe(u, 1);
		assert_string_equal(p->name, "close");
		assert_string_equal(p->args, "");
		assert_bytes(p->offset, "close");
		assert_true(p->semaphore);
		assert_bytes(p->semaphore_offset, "SS");
		assert_null(usdt_probe(u, 2));
		usdt_free(u);
	}
}

static void test_prelinked(void **state)
{
	struct usdt *u = open_text(
		"-no-pie", START NOTE(WORDS, "0x3000", "sem-0x3000", "moved", "4@shown(%rip)") END);
	const struct usdt_probe *p = usdt_probe(u, 0);
	char fetch[64];

	(void)state;
	assert_int_equal(usdt_count(u), 1);
	assert_bytes(p->offset, "moved");
	assert_bytes(p->semaphore_offset, "SS");
	assert_int_equal(usdt_fetch_arg(u, 0, 0, NULL, fetch, sizeof(fetch), NULL), 0);
	usdt_free(u);
}

#ifdef __x86_64__
static void test_32_bits(void **state)
{
	struct usdt *u = open_text("-m32 -static",
				   START NOTE(".4byte", "0", "sem", "narrow", "-4@8(%esp)") END);
	char fetch[64];

	(void)state;
	assert_int_equal(usdt_count(u), 1);
	assert_bytes(usdt_probe(u, 0)->offset, "narrow");
	assert_bytes(usdt_probe(u, 0)->semaphore_offset, "SS");
	assert_int_equal(usdt_fetch_arg(u, 0, 0, NULL, fetch, sizeof(fetch), NULL), 0);
	assert_string_equal(fetch, "arg1=+8(%sp):s32");
	usdt_free(u);
}
#endif

static void test_no_probes(void **state)
{
	struct error err = {0};
	struct usdt *u = open_text("-static", "void _start(void) {}");

	(void)state;
	assert_int_equal(usdt_count(u), 0);
	usdt_free(u);
	write_file(in_folder("text"), "text", 4);
	assert_null(usdt_open(in_folder("text"), &err));
	assert_non_null(strstr(err.text, "is not an ELF file"));
}

/* The arguments of one note and the text that fetches them; NULL: not possible. */
struct translation {
	const char *arg, *fetch;
};

static void assert_translations(const struct translation *list, size_t count, int machine)
{
	char text[8192], fetch[128], *file;
	const char *path;
	struct usdt *u;
	size_t size;

	strcpy(text, START "990: nop\\n.pushsection .note.stapsdt,\\\"\\\",\\\"note\\\"\\n"
			   ".4byte 8, 994f-993f, 3\\n.asciz \\\"stapsdt\\\"\\n"
			   "993: .8byte 990b, base, 0\\n.asciz \\\"lab\\\", \\\"all\\\", \\\"");
	for (size_t i = 0; i < count; i++)
		sprintf(text + strlen(text), "%s%s", i ? " " : "", list[i].arg);
	strcat(text, "\\\"\\n994: .balign 4\\n.popsection\\n" END);
	path = compile("probes", "-static", text);
	size = read_file(path, &file);
	((Elf64_Ehdr *)file)->e_machine = machine;
	write_file(path, file, size);
	free(file);
	u = open_file(path);
	assert_int_equal(usdt_count(u), 1);
	for (size_t i = 0; i < count; i++) {
		struct error err = {0};
		int ret = usdt_fetch_arg(u, 0, i, "x=%s", fetch, sizeof(fetch), &err);

		if (ret != (list[i].fetch ? 0 : -EOPNOTSUPP))
			fail_msg("%s: %d %s", list[i].arg, ret, ret ? err.text : fetch);
		if (list[i].fetch && strcmp(fetch + 2, list[i].fetch) != 0)
			fail_msg("%s: %s, not %s", list[i].arg, fetch + 2, list[i].fetch);
		if (!list[i].fetch)
			assert_non_null(strstr(err.text, list[i].arg));
	}
	assert_int_equal(usdt_fetch_arg(u, 0, count, NULL, fetch, sizeof(fetch), NULL), -ENOENT);
	usdt_free(u);
}

static void test_x86_arguments(void **state)
{
	static const struct translation list[] = {
		{"-4@%edi", "%di:s32"},
		{"8@%rsi", "%si:u64"},
		{"-1@%dl", "%dx:s8"},
		{"2@%r9w", "%r9:u16"},
		{"1@%r15b", "%r15:u8"},
		{"1@%sil", "%si:u8"},
		{"1@%ah", NULL},
		{"8@%rip", NULL},
		{"-4@$-9", "\\-9:s32"},
		{"8@$0x10", "\\16:u64"},
		{"8@$shown", NULL},
		{"8@(%rax)", "+0(%ax):u64"},
		{"-4@-20(%rbp)", "-20(%bp):s32"},
		{"8@0x8(%rsp)", "+8(%sp):u64"},
		{"8@-8(%rax,%rbx,4)", NULL},
		{"8@(,%rbx,8)", NULL},
		{"8@%fs:16", NULL},
		{"8@%fs:(%rax)", NULL},
		{"8f@%xmm0", NULL},
		{"16@%xmm1", NULL},
		{"4@nowhere(%rip)", NULL},
		{"%rax", NULL},
		{"4@", NULL},
		{"4@5", NULL},
	};

	(void)state;
	assert_translations(list, sizeof(list) / sizeof(list[0]), EM_X86_64);
}

static void test_arm64_arguments(void **state)
{
	static const struct translation list[] = {
		{"-4@w0", "%x0:s32"},
		{"8@x30", "%x30:u64"},
		{"8@x31", NULL},
		{"8@xa", NULL},
		{"8@sp", "%sp:u64"},
		{"-4@[sp, 12]", "+12(%sp):s32"},
		{"-4@[sp,12]", "+12(%sp):s32"},
		{"8@[x19]", "+0(%x19):u64"},
		{"8@[x19, -8]", "-8(%x19):u64"},
		{"8@[x0, x1]", NULL},
		{"8@[x0, x1, lsl 3]", NULL},
		{"8@[x0, :lo12:shown]", NULL},
		{"-8@-5", "\\-5:s64"},
		{"8f@d0", NULL},
		{"8@[x0", NULL},
	};

	(void)state;
	assert_translations(list, sizeof(list) / sizeof(list[0]), EM_AARCH64);
}

static void test_other_machine(void **state)
{
	static const struct translation list[] = {{"4@5", NULL}};

	(void)state;
	assert_translations(list, 1, EM_PPC64);
}

/* The contents of the file at an address. */
static int byte_at(uint64_t addr)
{
	char *text;
	int byte = -1;

	read_file(in_folder("probes"), &text);
	for (int i = 0; i < ((Elf64_Ehdr *)text)->e_phnum; i++) {
		const Elf64_Phdr *ph = (void *)(text + ((Elf64_Ehdr *)text)->e_phoff);

		if (ph[i].p_type == PT_LOAD && addr - ph[i].p_vaddr < ph[i].p_filesz)
			byte = text[addr - ph[i].p_vaddr + ph[i].p_offset];
	}
	free(text);
	return byte;
}

/* The kernel adds the distance by which the probe's segment was moved to the offset of "@+OFFSET".
 */
static void test_variables(void **state)
{
	struct usdt *u = open_text(
		"-pie", START NOTE(WORDS, "0", "0", "global", "4@shown(%rip) 4@shown+4(%rip)") END);
	const struct usdt_probe *p = usdt_probe(u, 0);
	unsigned long long at, behind;
	uint64_t difference = p->addr - p->offset;
	char fetch[64];

	(void)state;
	assert_int_equal(usdt_fetch_arg(u, 0, 0, NULL, fetch, sizeof(fetch), NULL), 0);
	assert_int_equal(sscanf(fetch, "arg1=@+0x%llx:u32", &at), 1);
	assert_int_equal(usdt_fetch_arg(u, 0, 1, NULL, fetch, sizeof(fetch), NULL), 0);
	assert_int_equal(sscanf(fetch, "arg2=@+0x%llx:u32", &behind), 1);
	assert_int_equal(behind, at + 4);
	/* .data is in a segment that differs by another amount. */
	assert_int_equal(byte_at(at + difference), 0x77);
	usdt_free(u);
}

static void assert_format(struct usdt *u, const char *format, int code, const char *text)
{
	struct error err = {0};
	char fetch[24] = "";

	assert_int_equal(usdt_fetch_arg(u, 0, 0, format, fetch, sizeof(fetch), &err), code);
	if (!strstr(code ? err.text : fetch, text))
		fail_msg("'%s' is not in '%s'", text, code ? err.text : fetch);
}

static void test_formats(void **state)
{
	struct usdt *u = open_text("-static", START NOTE(WORDS, "0", "0", "one", "8@%rdi") END);

	(void)state;
	assert_format(u, NULL, 0, "arg1=%di:u64");
	assert_format(u, "path=+0(%s):string", 0, "path=+0(%di):string");
	assert_format(u, "flags=%s", 0, "flags=%di:u64");
	assert_format(u, "flags=%di", -EINVAL, "needs exactly one %s");
	assert_format(u, "%s=%s", -EINVAL, "needs exactly one %s");
	assert_format(u, "much_too_long_for_this=%s", -EINVAL, "too long");
	usdt_free(u);
}

static void try_file(const char *path)
{
	struct usdt *u = usdt_open(path, NULL);
	char fetch[64];

	for (uint32_t i = 0; u && i < usdt_count(u); i++)
		for (uint32_t arg = 0; arg < 4; arg++)
			usdt_fetch_arg(u, i, arg, NULL, fetch, sizeof(fetch), NULL);
	usdt_free(u);
}

static void test_damaged_files(void **state)
{
	const char *path = compile("damaged", "-static",
				   START NOTE(WORDS, "0", "sem", "one", "-4@%edi 8@shown(%rip)")
					   NOTE(WORDS, "0", "0", "two", "8@8(%rsp)") END);
	char *text, *copy, *note;
	size_t size = read_file(path, &text);
	uint32_t random = 1;

	(void)state;
	copy = malloc(size);
	note = memmem(text, size, "stapsdt", 8);
	assert_non_null(note);
	for (int i = 0; i < 2000; i++) {
		memcpy(copy, text, size);
		for (int j = 0; j < 3; j++) {
			random = random * 1103515245 + 12345;
			/* in the notes, or anywhere */
			if (i & 1)
				copy[note - text - 12 + (random >> 8) % 160] = random >> 3;
			else
				copy[(random >> 8) % size] = random >> 3;
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
		cmocka_unit_test(test_list),
		cmocka_unit_test(test_prelinked),
#ifdef __x86_64__
		cmocka_unit_test(test_32_bits),
#endif
		cmocka_unit_test(test_no_probes),
		cmocka_unit_test(test_x86_arguments),
		cmocka_unit_test(test_arm64_arguments),
		cmocka_unit_test(test_other_machine),
		cmocka_unit_test(test_variables),
		cmocka_unit_test(test_formats),
		cmocka_unit_test(test_damaged_files),
	};

	return cmocka_run_group_tests_name("usdt", tests, make_folder, remove_folder);
}
