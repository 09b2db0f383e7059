/* SPDX-License-Identifier: GPL-2.0-only */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "error.h"

static void returns_code_and_text(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_set(&err, -EINVAL, "%s:%d: no such field", "a.lua", 7), -EINVAL);
	assert_string_equal(err.text, "a.lua:7: no such field");
	assert_int_equal(error_set(NULL, -ENOENT, "%s", "nobody reads this"), -ENOENT);
}

static void escapes_control_bytes(void **state)
{
	struct error err;

	(void)state;
	error_set(&err, -1, "'%s'", "\x1b[2J\n\t\x7f\x01ü");
	assert_string_equal(err.text, "'\\x1b[2J\\x0a\\x09\\x7f\\x01ü'");
}

static void accepts_its_own_text(void **state)
{
	struct error err;

	(void)state;
	error_set(&err, -1, "a\nb");
	error_set(&err, -1, "event sched:x: %s", err.text);
	assert_string_equal(err.text, "event sched:x: a\\x0ab");
}

static void marks_truncated_text(void **state)
{
	struct error err;
	char text[2 * sizeof(err.text)];
	size_t size = sizeof(err.text);

	(void)state;
	memset(text, 'x', sizeof(text));
	text[size - 1] = '\0';
	error_set(&err, -1, "%s", text);
	assert_string_equal(err.text, text);
	text[size - 1] = 'x';
	text[size] = '\0';
	error_set(&err, -1, "%s", text);
	assert_int_equal(strlen(err.text), size - 1);
	assert_string_equal(err.text + size - 5, "x...");
	memset(text, '\n', size);
	error_set(&err, -1, "%s", text);
	assert_true(strlen(err.text) < size);
	assert_string_equal(err.text + strlen(err.text) - 3, "...");
	assert_null(strchr(err.text, '\n'));
}

static void stays_unavailable(void **state)
{
	struct error err = {0};

	(void)state;
	error_set(&err, -1, "no such PMU");
	assert_false(err.unavailable);
	error_unavailable(&err);
	error_set(&err, -1, "cycles: %s", err.text);
	assert_true(err.unavailable);
	assert_string_equal(err.text, "cycles: no such PMU");
	error_unavailable(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(returns_code_and_text), cmocka_unit_test(escapes_control_bytes),
		cmocka_unit_test(accepts_its_own_text),	 cmocka_unit_test(marks_truncated_text),
		cmocka_unit_test(stays_unavailable),
	};

	return cmocka_run_group_tests_name("error", tests, NULL, NULL);
}
