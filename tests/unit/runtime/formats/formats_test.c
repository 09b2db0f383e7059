/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Formats are given as text, so that the tests need no tracefs. The few that print with
 * libtraceevent need those of the running kernel, and are skipped without them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <errno.h>

#include "error.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"

#define COMMON                                                                         \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"         \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"         \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n" \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FORMAT(name, id, fields, print) \
	"name: " name "\nID: " #id "\nformat:\n" COMMON fields "\nprint fmt: " print "\n"
#define FIELD(decl, offset, size, sign) \
	"\tfield:" decl ";\toffset:" #offset ";\tsize:" #size ";\tsigned:" #sign ";\n"

static const char switch_old[] = FORMAT(
	"sched_switch", 314,
	FIELD("char prev_comm[TASK_COMM_LEN]", 8, 16, 1) FIELD("pid_t prev_pid", 24, 4, 1)
		FIELD("int prev_prio", 28, 4, 1) FIELD("long prev_state", 32, 8, 1)
			FIELD("char next_comm[16]", 40, 16, 0) FIELD("pid_t next_pid", 56, 4, 1),
	"\"prev_comm=%s\", REC->prev_comm");

static const char migrate_new[] =
	FORMAT("sched_migrate_task", 320,
	       FIELD("__data_loc char[] comm", 8, 4, 0) FIELD("pid_t pid", 12, 4, 1)
		       FIELD("int prio", 16, 4, 1),
	       "\"comm=%s pid=%d\", __get_str(comm), REC->pid");

static const char sys_enter[] =
	FORMAT("sys_enter", 25, FIELD("long id", 8, 8, 1) FIELD("unsigned long args[6]", 16, 48, 0),
	       "\"NR %ld\", REC->id");

static const char kinds[] = FORMAT(
	"kinds", 7,
	FIELD("__rel_loc char[] label", 8, 4, 0) FIELD("u8 mac[6]", 12, 6, 0)
		FIELD("s8 level", 18, 1, 1) FIELD("bool on", 19, 1, 0)
			FIELD("const struct file * f", 20, 8, 0) FIELD("void *pair[2]", 28, 16, 0)
				FIELD("__data_loc u32[] list", 44, 4, 0)
					FIELD("void (*func)(struct work *)", 48, 8, 0)
						FIELD("char rest[]", 56, 0, 0),
	"\"%s\", __get_rel_str(label)");

static void add(struct formats *f, const char *system, const char *text)
{
	assert_int_equal(formats_add_text(f, system, text, strlen(text)), 0);
}

static struct formats *some_formats(void)
{
	struct formats *f = formats_new();

	assert_non_null(f);
	add(f, "sched", switch_old);
	add(f, "sched", migrate_new);
	add(f, "raw_syscalls", sys_enter);
	add(f, "test", kinds);
	return f;
}

static const struct field *field(const struct tracepoint *t, const char *name)
{
	const struct field *f;

	for (uint32_t i = 0; (f = tracepoint_field(t, i)); i++)
		if (strcmp(f->name, name) == 0)
			return f;
	fail_msg("no field %s", name);
	return NULL;
}

static void check(const struct tracepoint *t, const char *name, const char *type,
		  uint32_t elem_size, uint32_t count, uint32_t flags)
{
	const struct field *f = field(t, name);

	assert_string_equal(f->type, type);
	assert_int_equal(f->elem_size, elem_size);
	assert_int_equal(f->count, count);
	assert_int_equal(f->flags, flags);
}

static void test_fields(void **state)
{
	struct formats *f = some_formats();
	struct tracepoint *t = formats_find(f, "sched", "sched_switch", NULL);

	(void)state;
	assert_non_null(t);
	assert_ptr_equal(t, formats_find(f, "sched", "sched_switch", NULL));
	assert_int_equal(tracepoint_id(t), 314);
	assert_int_equal(tracepoint_nr_fields(t), 10);
	assert_null(tracepoint_field(t, 10));
	assert_string_equal(tracepoint_field(t, 0)->name, "common_type");
	assert_string_equal(tracepoint_print_fmt(t), "\"prev_comm=%s\", REC->prev_comm");
	assert_int_equal(field(t, "prev_state")->offset, 32);
	/* The length is an identifier, and the signs of old and new kernels differ. */
	check(t, "prev_comm", "char[TASK_COMM_LEN]", 1, 16, FIELD_ARRAY | FIELD_STRING);
	check(t, "next_comm", "char[16]", 1, 16, FIELD_ARRAY | FIELD_STRING);
	check(t, "prev_state", "long", 8, 1, FIELD_SIGNED);
	check(t, "common_pid", "int", 4, 1, FIELD_SIGNED | FIELD_COMMON);

	t = formats_find(f, "sched", "sched_migrate_task", NULL);
	check(t, "comm", "__data_loc char[]", 1, 0, FIELD_DYNAMIC | FIELD_STRING);
	t = formats_find(f, "raw_syscalls", "sys_enter", NULL);
	check(t, "args", "unsigned long[6]", 8, 6, FIELD_ARRAY);
	formats_free(f);
}

static void test_kinds(void **state)
{
	struct formats *f = some_formats();
	struct tracepoint *t = formats_find(f, "test", "kinds", NULL);

	(void)state;
	assert_non_null(t);
	check(t, "label", "__rel_loc char[]", 1, 0, FIELD_DYNAMIC | FIELD_RELATIVE | FIELD_STRING);
	check(t, "mac", "u8[6]", 1, 6, FIELD_ARRAY);
	check(t, "level", "s8", 1, 1, FIELD_SIGNED);
	check(t, "on", "bool", 1, 1, 0);
	check(t, "f", "const struct file *", 8, 1, FIELD_POINTER);
	check(t, "pair", "void *[2]", 8, 2, FIELD_ARRAY | FIELD_POINTER);
	check(t, "list", "__data_loc u32[]", 4, 0, FIELD_DYNAMIC);
	check(t, "func", "void (*)(struct work *)", 8, 1, FIELD_POINTER);
	check(t, "rest", "char[]", 1, 0, FIELD_ARRAY | FIELD_STRING);
	formats_free(f);
}

static void test_names(void **state)
{
	struct formats *f = some_formats();
	char *names = formats_names(f);

	(void)state;
	assert_string_equal(names, "raw_syscalls:sys_enter\nsched:sched_migrate_task\n"
				   "sched:sched_switch\ntest:kinds\n");
	free(names);
	assert_int_equal(formats_add_text(f, "sched", switch_old, strlen(switch_old)), -EEXIST);
	assert_int_equal(formats_add_text(f, "../etc", sys_enter, strlen(sys_enter)), -EINVAL);
	assert_int_equal(formats_add_text(f, "sched", "ID: 1\n", 6), -EINVAL);
	formats_free(f);
}

static void check_unknown(struct formats *f, const char *system, const char *name,
			  const char *message)
{
	struct error err = {0};

	errno = 0;
	assert_null(formats_find(f, system, name, &err));
	assert_int_equal(errno, ENOENT);
	assert_string_equal(err.text, message);
}

static void test_unknown(void **state)
{
	struct formats *f = some_formats();

	(void)state;
	check_unknown(f, "sched", "sched_swich",
		      "no such event 'sched:sched_swich'; did you mean 'sched:sched_switch'?");
	check_unknown(f, "shced", "sched_switch",
		      "no such event system 'shced'; did you mean 'sched'?");
	check_unknown(f, "nothing", "alike", "no such event system 'nothing'");
	check_unknown(f, "sched", "x/../../y", "no such event 'sched:x/../../y'");
	check_unknown(f, "", "", "no such event system ''");
	formats_free(f);
}

static void check_garbage(const char *text, const char *message)
{
	struct formats *f = formats_new();
	struct error err = {0};

	add(f, "test", text);
	assert_null(formats_find(f, "test", "bad", &err));
	assert_int_equal(errno, EINVAL);
	assert_string_equal(err.text, message);
	formats_free(f);
}

#define LINE_8 "event 'test:bad': cannot parse format line 9: "

static void test_garbage(void **state)
{
	(void)state;
	check_garbage("name: bad\n", "event 'test:bad': format has no ID");
	check_garbage("name: bad\nID: 1\n", "event 'test:bad': format has no fields");
	check_garbage("name: bad\nID: x1\n",
		      "event 'test:bad': cannot parse format line 2: ID: x1");
	check_garbage("name: bad\nID: 1\nfield:int a;\n",
		      "event 'test:bad': cannot parse format line 3: field:int a;");
	check_garbage(FORMAT("bad", 1, FIELD("int common_pid", 8, 4, 1), "\"\""),
		      LINE_8 "\\x09field:int common_pid;\\x09offset:8;\\x09size:4;\\x09signed:1;");
	check_garbage(FORMAT("bad", 1, FIELD("int a", 4294967295, 4, 1), "\"\""),
		      LINE_8 "\\x09field:int a;\\x09offset:4294967295;\\x09size:4;\\x09signed:1;");
	check_garbage(FORMAT("bad", 1, FIELD("__data_loc char[] a", 8, 8, 1), "\"\""), LINE_8
		      "\\x09field:__data_loc char[] a;\\x09offset:8;\\x09size:8;\\x09signed:1;");
	check_garbage(FORMAT("bad", 1, FIELD("int 9; os.exit()", 8, 4, 1), "\"\""), LINE_8
		      "\\x09field:int 9; os.exit();\\x09offset:8;\\x09size:4;\\x09signed:1;");
	check_garbage(FORMAT("bad", 1, FIELD("a]", 8, 4, 1), "\"\""),
		      LINE_8 "\\x09field:a];\\x09offset:8;\\x09size:4;\\x09signed:1;");
}

/* Every prefix of a format parses or is refused with a message, and never crashes. */
static void test_prefixes(void **state)
{
	(void)state;
	for (size_t n = strlen("name: kinds\n"); n < strlen(kinds); n++) {
		struct formats *f = formats_new();
		struct error err = {0};

		assert_int_equal(formats_add_text(f, "test", kinds, n), 0);
		if (!formats_find(f, "test", "kinds", &err))
			assert_string_not_equal(err.text, "");
		formats_free(f);
	}
}

static const char *print(struct tracepoint *t, const void *raw, uint32_t size)
{
	static char line[512];

	tracepoint_print(t, raw, size, line, sizeof(line));
	return line;
}

/* Added texts are printed field by field. */
static void test_print_fields(void **state)
{
	struct formats *f = some_formats();
	struct tracepoint *t = formats_find(f, "sched", "sched_migrate_task", NULL);
	struct {
		uint16_t type;
		uint8_t flags, preempt;
		int32_t common_pid;
		uint32_t comm;
		int32_t pid, prio;
		char text[12];
	} raw = {320, 0, 0, 5, 4 << 16 | 20, 7, -1, "ab\n"};
	char cut[8];

	(void)state;
	assert_string_equal(print(t, &raw, sizeof(raw)), "comm=ab\\x0a pid=7 prio=-1");
	/* Shorter than the fields, and than the dynamic field claims. */
	assert_string_equal(print(t, &raw, 20), "comm=? pid=7 prio=-1");
	assert_string_equal(print(t, &raw, 14), "comm=? pid=? prio=?");
	assert_string_equal(print(t, &raw, 0), "comm=? pid=? prio=?");
	raw.comm = 0xffffffff;
	assert_string_equal(print(t, &raw, sizeof(raw)), "comm=? pid=7 prio=-1");
	raw.comm = 0 << 16 | sizeof(raw);
	assert_string_equal(print(t, &raw, sizeof(raw)), "comm= pid=7 prio=-1");
	assert_int_equal(tracepoint_print(t, (uint8_t *)&raw, sizeof(raw), cut, sizeof(cut)), 19);
	assert_string_equal(cut, "comm= p");
	assert_int_equal(tracepoint_print(t, (uint8_t *)&raw, sizeof(raw), NULL, 0), 19);
	formats_free(f);
}

static void test_print_kinds(void **state)
{
	struct formats *f = some_formats();
	struct tracepoint *t = formats_find(f, "test", "kinds", NULL);
	uint8_t raw[80] = {[12] = 1, 2, 3, 4, 5, 255, 254, 1, 0x10, [27] = 0xff, [28] = 7};
	uint32_t label = 3 << 16 | 56, list = 8 << 16 | 72;

	(void)state;
	memcpy(raw + 8, &label, sizeof(label));
	memcpy(raw + 44, &list, sizeof(list));
	memcpy(raw + 56, "end", 4);
	memcpy(raw + 68, "lab", 3);
	raw[72] = 9;
	assert_string_equal(print(t, raw, sizeof(raw)),
			    "label=lab mac={1,2,3,4,5,255} level=-2 on=1 f=0xff00000000000010 "
			    "pair={0x7,0x0} list={9,0} func=0x0 rest=end");
	formats_free(f);
}

static void test_symbols(void **state)
{
	static const char text[] = "0000000000001000 A percpu\n"
				   "ffffffff81000000 T _text\n"
				   "ffffffff81000000 t alias\n"
				   "garbage\n"
				   "ffffffff82000000 t late\t[module]\n"
				   "ffffffff81000100 T do_work\n";
	static const char strings[] = "0xffffffff83000000 : \"CPU start\\n\"\n";
	struct formats *f = formats_new();
	uint64_t start = 0;

	(void)state;
	/* Without a text nothing is known: this is not a set of the running kernel. */
	assert_null(formats_symbol(f, 0xffffffff81000000, &start));
	assert_int_equal(formats_add_kallsyms(f, text, strlen(text)), 0);
	assert_string_equal(formats_symbol(f, 0xffffffff810000ff, &start), "_text");
	assert_true(start == 0xffffffff81000000);
	assert_string_equal(formats_symbol(f, 0xffffffff81000100, &start), "do_work");
	assert_string_equal(formats_symbol(f, 0xffffffff82000001, &start), "late");
	assert_null(formats_symbol(f, 0xffffffff80ffffff, &start));
	assert_null(formats_symbol(f, 0xffffffff81200000, &start));
	assert_null(formats_symbol(f, 0x1000, &start));

	assert_null(formats_string(f, 0xffffffff83000000));
	assert_int_equal(formats_add_strings(f, strings, strlen(strings)), 0);
	assert_string_equal(formats_string(f, 0xffffffff83000000), "CPU start");
	assert_null(formats_string(f, 0xffffffff83000001));
	formats_free(f);
}

static void add_pieces(struct formats *f, const char *text, size_t piece)
{
	size_t size = strlen(text);

	for (size_t at = 0; at < size; at += piece)
		formats_add_symbols(f, text + at, size - at < piece ? size - at : piece);
	formats_add_symbols(f, "", 0);
}

/* Symbols that come in pieces, from a stream that may begin again or be damaged. */
static void test_symbol_pieces(void **state)
{
	static const char text[] = "\n\nffffffff81000000 T _text\n\n\n"
				   "ffffffff81000100 T do_work\n\n";
	static const char other[] = "ffffffff91000000 T _text\n\0\xff T x\nzz\n9 T\n9\n"
				    "ffffffff91000100 t after_damage\n";
	struct formats *f = formats_new();
	const char *name;
	uint64_t start;
	char *line = malloc(60000);

	(void)state;
	formats_add_symbols(f, text, 20);
	assert_null(formats_symbol(f, 0xffffffff81000000, &start)); /* they are not complete */
	formats_restart_symbols(f);
	add_pieces(f, text, 7);
	name = formats_symbol(f, 0xffffffff81000101, &start);
	assert_string_equal(name, "do_work");
	add_pieces(f, text, 9); /* the link was broken */
	assert_ptr_equal(formats_symbol(f, 0xffffffff81000101, &start), name);
	formats_add_symbols(f, "", 0); /* no symbols are no reason to forget those */
	assert_ptr_equal(formats_symbol(f, 0xffffffff81000101, &start), name);

	/* Another kernel: the names of the first one stay valid. */
	formats_add_symbols(f, other, sizeof(other) - 1);
	formats_add_symbols(f, "", 0);
	assert_null(formats_symbol(f, 0xffffffff81000101, &start));
	assert_string_equal(formats_symbol(f, 0xffffffff91000100, &start), "after_damage");
	assert_string_equal(name, "do_work");

	/* More than any kernel has: none of it is taken. */
	memset(line, 'x', 60000);
	memcpy(line, "ffffffffa1000000 T x", 20);
	line[59999] = '\n';
	for (int i = 0; i < 600; i++)
		formats_add_symbols(f, line, 60000);
	formats_add_symbols(f, "", 0);
	assert_null(formats_symbol(f, 0xffffffffa1000000, &start));
	for (int i = 0; i < 60000; i += 6)
		memcpy(line + i, "9 T x\n", 6);
	for (int i = 0; i < 120; i++)
		formats_add_symbols(f, line, 60000);
	formats_add_symbols(f, "", 0);
	assert_null(formats_symbol(f, 9, &start));
	assert_string_equal(formats_symbol(f, 0xffffffff91000100, &start), "after_damage");
	free(line);
	formats_free(f);
}

static struct formats *live(void)
{
	struct error err = {0};
	struct formats *f = formats_open_tracefs(&err);

	if (!f) {
		assert_string_not_equal(err.text, "");
		print_message("%s\n", err.text);
		skip();
	}
	return f;
}

static void test_live(void **state)
{
	struct formats *f = live();
	struct tracepoint *t = formats_find(f, "sched", "sched_switch", NULL);
	char *names = formats_names(f);
	uint8_t raw[64] = {0};
	int32_t pid = 4711;

	(void)state;
	assert_non_null(t);
	assert_non_null(strstr(names, "\nsched:sched_switch\n"));
	free(names);
	check_unknown(f, "sched", "sched_swich",
		      "no such event 'sched:sched_swich'; did you mean 'sched:sched_switch'?");
	memcpy(raw + field(t, "next_pid")->offset, &pid, sizeof(pid));
	memcpy(raw + field(t, "next_comm")->offset, "next", 4);
	assert_non_null(strstr(print(t, raw, sizeof(raw)), "next_comm=next next_pid=4711 "));
	/* Fields beyond a truncated payload print as zero, not as the payload before. */
	assert_non_null(strstr(print(t, raw, 24), "prev_comm= prev_pid=0 "));
	assert_non_null(strstr(print(t, raw, 24), "next_comm= next_pid=0 "));
	assert_non_null(strstr(print(t, raw, 0), "next_comm= next_pid=0 "));
	formats_free(f);
}

/* Dynamic fields that point outside the payload. */
static void test_live_hostile(void **state)
{
	struct formats *f = live();
	struct tracepoint *t = formats_find(f, "sched", "sched_process_exec", NULL);
	uint8_t raw[16];

	(void)state;
	assert_non_null(t);
	memset(raw, 0xff, sizeof(raw));
	assert_non_null(strstr(print(t, raw, sizeof(raw)), "filename= "));
	formats_free(f);
}

/* A longer text takes the place of the first one; one that does not parse does not. */
static void test_set_text(void **state)
{
	static const char longer[] = FORMAT(
		"sched_migrate_task", 320,
		FIELD("__data_loc char[] comm", 8, 4, 0) FIELD("pid_t pid", 12, 4, 1)
			FIELD("int prio", 16, 4, 1) FIELD("__data_loc char[] more", 20, 4, 0),
		"\"more=%s\", __get_str(more)");
	struct formats *f = formats_new();
	struct error err = {0};
	struct tracepoint *t;
	size_t size;

	(void)state;
	add(f, "sched", migrate_new);
	t = formats_find(f, "sched", "sched_migrate_task", &err);
	assert_non_null(t);
	assert_int_equal(tracepoint_nr_fields(t), 7);
	assert_int_equal(tracepoint_set_text(t, "name: x\nformat:\n\tfield:", &err), -EINVAL);
	assert_non_null(strstr(err.text, "event 'sched:sched_migrate_task'"));
	assert_int_equal(tracepoint_nr_fields(t), 7);
	assert_int_equal(tracepoint_set_text(t, longer, &err), 0);
	assert_int_equal(tracepoint_nr_fields(t), 8);
	assert_string_equal(tracepoint_field(t, 7)->name, "more");
	assert_string_equal(tracepoint_text(t, &size), longer);
	assert_int_equal(size, strlen(longer));
	assert_string_equal(tracepoint_print_fmt(t), "\"more=%s\", __get_str(more)");
	formats_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),	     cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_names),	     cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_garbage),	     cmocka_unit_test(test_prefixes),
		cmocka_unit_test(test_print_fields), cmocka_unit_test(test_print_kinds),
		cmocka_unit_test(test_symbols),	     cmocka_unit_test(test_symbol_pieces),
		cmocka_unit_test(test_live),	     cmocka_unit_test(test_live_hostile),
		cmocka_unit_test(test_set_text),
	};

	return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
