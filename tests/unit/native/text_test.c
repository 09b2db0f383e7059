/* SPDX-License-Identifier: GPL-2.0-only */
/* native/text.c: which bytes are clean, and how the others are escaped. */
#include "native/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void check(const char *in, enum text_mode mode, const char *expected)
{
	char out[256];
	size_t n = strlen(in), size = text_escape(out, in, n, mode);

	out[size] = '\0';
	assert_string_equal(out, expected);
	assert_int_equal(text_clean(in, n, mode), strcmp(in, expected) == 0);
}

static void test_clean(void **state)
{
	(void)state;
	check("", TEXT_CELL, "");
	check("plain text, longer than a word; ~ }", TEXT_CELL,
	      "plain text, longer than a word; ~ }");
	check("gr\xc3\xbc\xc3\x9f \xe6\xa1\x86\xe6\x9e\xb6 \xf0\x9f\x90\xa7", TEXT_CELL,
	      "gr\xc3\xbc\xc3\x9f \xe6\xa1\x86\xe6\x9e\xb6 \xf0\x9f\x90\xa7");
	check("\xc2\xa0 is no control", TEXT_JSON, "\xc2\xa0 is no control");
}

static void test_controls(void **state)
{
	(void)state;
	check("a\x1b[31mred", TEXT_CELL, "a\\x1b[31mred");
	check("\x7f", TEXT_CELL, "\\x7f");
	check("eightcha\x7f", TEXT_CELL, "eightcha\\x7f");
	check("C1 \xc2\x9b"
	      "2J",
	      TEXT_CELL, "C1 \\xc2\\x9b2J");
	check("line\n\ttab\r", TEXT_CELL, "line\\x0a\\x09tab\\x0d");
	check("line\n\ttab\r", TEXT_LINES, "line\n\ttab\\x0d");
}

static void test_invalid_utf8(void **state)
{
	(void)state;
	check("\xff", TEXT_CELL, "\\xff");
	check("\x9b"
	      "31m",
	      TEXT_CELL, "\\x9b31m");
	check("cut \xe6\xa1", TEXT_CELL, "cut \\xe6\\xa1");
	check("overlong \xc0\xaf \xe0\x80\xaf", TEXT_CELL, "overlong \\xc0\\xaf \\xe0\\x80\\xaf");
	check("surrogate \xed\xa0\x80", TEXT_CELL, "surrogate \\xed\\xa0\\x80");
	check("beyond \xf4\x90\x80\x80", TEXT_CELL, "beyond \\xf4\\x90\\x80\\x80");
	check("\xc3"
	      "A",
	      TEXT_CELL, "\\xc3A");
}

static void test_json(void **state)
{
	(void)state;
	check("say \"hi\" \\ there", TEXT_JSON, "say \\\"hi\\\" \\\\ there");
	check("\n\x1b\x7f", TEXT_JSON, "\\u000a\\u001b\\u007f");
	check("\xc2\x9b", TEXT_JSON, "\\u009b");
	check("bad \xff", TEXT_JSON, "bad \\\\xff");
}

static void test_nul(void **state)
{
	char out[32];

	(void)state;
	assert_int_equal(text_clean("a\0b", 3, TEXT_CELL), 0);
	assert_int_equal(text_escape(out, "a\0b", 3, TEXT_CELL), 6);
	assert_memory_equal(out, "a\\x00b", 6);
}

/* The word-wise test must agree with the byte-wise one at every place in the word. */
static void test_every_byte_at_every_place(void **state)
{
	(void)state;
	for (int byte = 0; byte < 256; byte++)
		for (int place = 0; place < 16; place++) {
			char s[16];

			memset(s, 'x', sizeof(s));
			s[place] = (char)byte;
			assert_int_equal(text_clean(s, sizeof(s), TEXT_CELL),
					 byte >= 0x20 && byte < 0x7f);
		}
}

/* Escaped text is clean, and fits into the requested space. */
static void test_random_bytes(void **state)
{
	(void)state;
	srandom(3);
	for (int round = 0; round < 20000; round++) {
		size_t n = (size_t)(random() % 24);
		char *in = malloc(n + 1), *out = malloc(6 * n + 1);
		enum text_mode mode = round & 1 ? TEXT_CELL : TEXT_JSON;

		for (size_t i = 0; i < n; i++)
			in[i] = (char)random();
		size_t size = text_escape(out, in, n, mode);

		assert_true(size <= 6 * n);
		assert_int_equal(text_clean(out, size, TEXT_CELL), 1);
		if (text_clean(in, n, mode)) {
			assert_int_equal(size, n);
			assert_memory_equal(in, out, n);
		}
		free(in);
		free(out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_controls),
		cmocka_unit_test(test_invalid_utf8),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_nul),
		cmocka_unit_test(test_every_byte_at_every_place),
		cmocka_unit_test(test_random_bytes),
	};

	return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
