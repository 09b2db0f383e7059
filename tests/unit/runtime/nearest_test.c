/* SPDX-License-Identifier: GPL-2.0-only */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "nearest.h"

static const char *find(struct nearest *n, const char *word, const char *const *names)
{
	nearest_start(n, word);
	for (; *names; names++)
		nearest_try(n, *names, strlen(*names));
	return n->name;
}

static void check(const char *word, const char *expected)
{
	static const char *const names[] = {"sched:sched_switch", "sched:sched_waking",
					    "sched:sched_wakeup", "pid", NULL};
	struct nearest n;

	assert_string_equal(find(&n, word, names), expected);
}

static void test_nearest(void **state)
{
	(void)state;
	check("sched:sched_switch", "sched:sched_switch");
	check("sched:sched_swich", "sched:sched_switch");
	check("shced:sched_wakeup", "sched:sched_wakeup");
	check("sched:sched_wakin", "sched:sched_waking");
	check("SCHED:sched_wakin", "sched:sched_waking");
	check("pdi", "pid"); /* swapped neighbors are one edit */
	check("pi", "pid");
	check("xyz", "");
	check("", "");
	check("sched", "");
}

static void test_bounds(void **state)
{
	char longest[NEAREST_MAX + 2];
	struct nearest n;

	(void)state;
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = '\0';
	nearest_start(&n, longest);
	assert_false(nearest_try(&n, longest, NEAREST_MAX));
	longest[NEAREST_MAX] = '\0';
	nearest_start(&n, longest);
	assert_false(nearest_try(&n, "", 0));
	assert_false(nearest_try(&n, longest, NEAREST_MAX + 1));
	assert_true(nearest_try(&n, longest, NEAREST_MAX));
	assert_string_equal(n.name, longest);
	/* Only the given size is read, and nothing is nearer than the word itself. */
	nearest_start(&n, "pdi");
	assert_true(nearest_try(&n, "pidX", 3));
	assert_string_equal(n.name, "pid");
	assert_true(nearest_try(&n, "pdi", 3));
	assert_false(nearest_try(&n, "pdi", 3));
	assert_string_equal(nearest_hint(&n), "; did you mean 'pdi'?");
	nearest_start(&n, "pid");
	assert_string_equal(nearest_hint(&n), "");
}

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* The distance from the whole matrix, without a bound. */
static int full_distance(const char *a, int a_len, const char *b, int b_len)
{
	int d[16][16];

	for (int i = 0; i <= a_len; i++) {
		for (int j = 0; j <= b_len; j++) {
			d[i][j] = i + j;
			if (!i || !j)
				continue;
			d[i][j] = least(d[i - 1][j] + 1, d[i][j - 1] + 1);
			d[i][j] = least(d[i][j], d[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
		}
	}
	return d[a_len][b_len];
}

static int random_word(char *word)
{
	int len = 1 + rand() % 15;

	for (int i = 0; i < len; i++)
		word[i] = "abc"[rand() % 3];
	word[len] = '\0';
	return len;
}

/* Of random words, finds the first one with the least distance. */
static void test_random_words(void **state)
{
	(void)state;
	srand(1);
	for (int round = 0; round < 20000; round++) {
		char word[16], names[4][16];
		const char *list[5] = {names[0], names[1], names[2], names[3], NULL};
		const char *expected = "";
		int len = random_word(word), limit = len < 3 ? 1 : len / 3;
		struct nearest n;

		for (int i = 0; i < 4; i++) {
			int d = full_distance(word, len, names[i], random_word(names[i]));

			if (d < limit || (d == limit && !*expected)) {
				limit = d;
				expected = names[i];
			}
		}
		assert_string_equal(find(&n, word, list), expected);
	}
}

/* A program's symbols: many and long. Comparing all of them would take more than ten seconds. */
static void test_time_is_bounded(void **state)
{
	char word[NEAREST_MAX + 1], name[NEAREST_MAX + 1];
	struct nearest n;
	clock_t start = clock();

	(void)state;
	memset(word, 'a', NEAREST_MAX);
	word[NEAREST_MAX] = '\0';
	memcpy(name, word, sizeof(name));
	for (int i = 0; i < NEAREST_MAX; i += 2)
		name[i] = 'b';
	nearest_start(&n, word);
	for (int i = 0; i < 2000000; i++)
		assert_false(nearest_try(&n, name, NEAREST_MAX));
	assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
	assert_false(nearest_try(&n, word, NEAREST_MAX));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_random_words),
		cmocka_unit_test(test_time_is_bounded),
	};

	return cmocka_run_group_tests_name("nearest", tests, NULL, NULL);
}
