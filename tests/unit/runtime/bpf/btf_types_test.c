/* SPDX-License-Identifier: GPL-2.0-only */
/* Small BTF data whose types have several sizes, and the same data with damages. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/btf.h>
#include <cmocka.h>
#include "bpf/btf_types.h"

#define INFO(kind, n) ((uint32_t)(kind) << 24 | (n))

static const char strings[] = "\0int\0rq\0pid_t";
enum { NO_NAME = 0, INT = 1, RQ = 5, PID = 8 }; /* offsets there */

static const uint32_t sections[] = {
	NO_NAME, INFO(BTF_KIND_PTR, 0),	       3,			 /* 1 */
	INT,	 INFO(BTF_KIND_INT, 0),	       4, 32,			 /* 2 */
	RQ,	 INFO(BTF_KIND_STRUCT, 2),     8, INT, 2, 0, PID, 2, 32, /* 3 */
	RQ,	 INFO(BTF_KIND_STRUCT, 0),     0,			 /* 4 */
	RQ,	 INFO(BTF_KIND_TYPEDEF, 0),    3,			 /* 5 */
	NO_NAME, INFO(BTF_KIND_FUNC_PROTO, 1), 2, PID, 2,		 /* 6 */
	PID,	 INFO(BTF_KIND_TYPEDEF, 0),    2,			 /* 7 */
};
enum { LAST = 7 };

struct made {
	struct btf_header header;
	uint32_t types[sizeof(sections) / sizeof(sections[0])];
	char strings[sizeof(strings)];
};

static struct made make(void)
{
	struct made made = {.header = {.magic = BTF_MAGIC,
				       .version = BTF_VERSION,
				       .hdr_len = sizeof(struct btf_header),
				       .type_len = sizeof(sections),
				       .str_off = sizeof(sections),
				       .str_len = sizeof(strings)}};

	memcpy(made.types, sections, sizeof(sections));
	memcpy(made.strings, strings, sizeof(strings));
	return made;
}

static const size_t made_size = offsetof(struct made, strings) + sizeof(strings);

static void check_types(const struct btf_types *types)
{
	assert_int_equal(btf_types_find(types, "int", BTF_KIND_INT), 2);
	assert_int_equal(btf_types_find(types, "rq", BTF_KIND_STRUCT), 3);
	assert_int_equal(btf_types_find(types, "rq", BTF_KIND_TYPEDEF), 5);
	assert_int_equal(btf_types_find(types, "pid_t", BTF_KIND_TYPEDEF), LAST);
	assert_int_equal(btf_types_find(types, "pid_t", BTF_KIND_STRUCT), 0);
	assert_int_equal(btf_types_find(types, "r", BTF_KIND_STRUCT), 0);
	assert_int_equal(btf_types_find(types, "rq", 1000), 0);
	assert_int_equal(btf_types_at(types, 3)->size, 8);
	assert_string_equal(btf_types_name(types, btf_types_at(types, LAST)->name_off), "pid_t");
	assert_int_equal(btf_types_at(types, 0)->info, 0);
	assert_int_equal(btf_types_at(types, LAST + 1)->info, 0);
	assert_string_equal(btf_types_name(types, sizeof(strings)), "");
}

static void finds_types(void **state)
{
	struct made made = make();
	struct btf_types *types;

	(void)state;
	assert_int_equal(btf_types_copy(&made, made_size, &types), 0);
	memset(&made, 0xff, sizeof(made)); /* it is a copy */
	check_types(types);
	btf_types_close(types);
}

static void opens_files(void **state)
{
	char path[] = "/tmp/btf_types_test.XXXXXX";
	struct made made = make();
	struct btf_types *types;
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &made, made_size), made_size);
	close(fd);
	assert_int_equal(btf_types_open(path, NULL, &types), 0);
	check_types(types);
	btf_types_close(types);
	unlink(path);
	assert_int_equal(btf_types_open(path, NULL, &types), -ENOENT);
	assert_int_equal(btf_types_open("/dev/null", NULL, &types), -EBADMSG);
	assert_int_equal(btf_types_open("/", NULL, &types), -EISDIR);
}

/* A module's types: their ids and strings follow those of the kernel. */
static void opens_modules(void **state)
{
	static const char names[] = "own";
	enum { OWN = sizeof(strings), TYPES = 6 };
	struct {
		struct btf_header header;
		uint32_t types[TYPES];
		char strings[sizeof(names)];
	} module = {
		.header = {.magic = BTF_MAGIC,
			   .version = BTF_VERSION,
			   .hdr_len = sizeof(struct btf_header),
			   .type_len = TYPES * sizeof(uint32_t),
			   .str_off = TYPES * sizeof(uint32_t),
			   .str_len = sizeof(names)},
		.types = {OWN, INFO(BTF_KIND_TYPEDEF, 0), 3,	    /* 8 */
			  RQ, INFO(BTF_KIND_TYPEDEF, 0), LAST + 1}, /* 9 */
		.strings = "own",
	};
	char path[] = "/tmp/btf_types_test.XXXXXX";
	struct btf_types *kernel, *types;
	struct made made = make();
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &module, sizeof(module)), sizeof(module));
	close(fd);
	assert_int_equal(btf_types_copy(&made, made_size, &kernel), 0);
	assert_int_equal(btf_types_open(path, kernel, &types), 0);
	unlink(path);
	assert_int_equal(btf_types_first(kernel), 1);
	assert_int_equal(btf_types_first(types), LAST + 1);
	assert_int_equal(btf_types_find(types, "own", BTF_KIND_TYPEDEF), LAST + 1);
	assert_int_equal(btf_types_find(kernel, "own", BTF_KIND_TYPEDEF), 0);
	assert_int_equal(btf_types_find(types, "rq", BTF_KIND_TYPEDEF), LAST + 2);
	assert_int_equal(btf_types_find(types, "rq", BTF_KIND_STRUCT), 3);
	assert_int_equal(btf_types_at(types, LAST + 2)->type, LAST + 1);
	assert_int_equal(btf_types_at(types, 3)->size, 8);
	assert_int_equal(btf_types_at(types, LAST + 3)->info, 0);
	assert_string_equal(btf_types_name(types, OWN), "own");
	assert_string_equal(btf_types_name(types, PID), "pid_t");
	assert_string_equal(btf_types_name(types, OWN + sizeof(names)), "");
	btf_types_close(types);
	btf_types_close(kernel);
}

static void refuses_damages(void **state)
{
	struct btf_types *types;
	struct made made;

	(void)state;
	for (size_t size = 0; size < made_size; size++) {
		made = make();
		assert_int_equal(btf_types_copy(&made, size, &types), -EBADMSG);
	}
	made = make();
	made.header.magic++;
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EBADMSG);
	made = make();
	made.header.hdr_len--;
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EBADMSG);
	made = make();
	made.header.type_len -= 4; /* the last type is cut */
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EBADMSG);
	made = make();
	made.header.str_len--; /* the last name does not end */
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EBADMSG);
	made = make();
	made.types[8] = INFO(BTF_KIND_STRUCT, 1000); /* of type 3 */
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EBADMSG);
	made = make();
	made.types[8] = INFO(31, 0);
	assert_int_equal(btf_types_copy(&made, made_size, &types), -EOPNOTSUPP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_types),
		cmocka_unit_test(opens_files),
		cmocka_unit_test(opens_modules),
		cmocka_unit_test(refuses_damages),
	};

	return cmocka_run_group_tests_name("btf_types", tests, NULL, NULL);
}
