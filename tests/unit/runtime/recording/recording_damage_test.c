/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/recording.c: damaged files, foreign files, and files that are read because they
 * cannot be mapped. */
#include "recording/recording.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "error.h"
#include "source.h"
#include "tests/unit/runtime/recording/recordings.h"

static bool no_address_space; /* for mappings: files are read */

/* The limit is not really set: the sanitizers need terabytes. */
int getrlimit(__rlimit_resource_t what, struct rlimit *limit)
{
	int ret = prlimit(0, what, NULL, limit);

	if (what == RLIMIT_AS && no_address_space)
		limit->rlim_cur = 0;
	return ret;
}

static int limit_address_space(void **state)
{
	(void)state;
	no_address_space = true;
	return 0;
}

static int unlimit_address_space(void **state)
{
	(void)state;
	no_address_space = false;
	return 0;
}

static void test_truncated(void **state)
{
	(void)state;
	for (int i = 0; i < NR_GOLDENS; i++) {
		struct bytes b = read_golden(goldens[i].name);
		uint64_t before = 0;
		bool pipe = b.at[8] == 16;

		for (size_t size = 0; size < b.size; size += 997) {
			struct error err = {};
			struct source *r = recording_open_fd(file_of(b.at, size), "FILE", &err);
			struct content c;

			if (!r) {
				assert_memory_equal(err.text, "FILE: ", 6);
				assert_int_equal(before, 0);
				continue;
			}
			c = drain(r);
			assert_true(c.records >= before);
			before = c.records;
			/* A pipe that ends between two records does not look truncated. */
			assert_true(pipe || warning(r) != NULL);
			r->ops->free(r);
		}
		assert_true(before >= goldens[i].samples * 9 / 10);
		free(b.at);
	}
}

static void test_read_equals_mapped(void **state)
{
	for (int i = 0; i < NR_GOLDENS; i++) {
		struct bytes b = read_golden(goldens[i].name);
		struct content mapped = drain_fd(file_of(b.at, b.size)), read;

		limit_address_space(state);
		read = drain_fd(file_of(b.at, b.size));
		unlimit_address_space(state);
		assert_memory_equal(&read, &mapped, sizeof(mapped));
		free(b.at);
	}
}

/* A file that becomes shorter while it is read. */
static void test_shrinking(void **state)
{
	struct bytes b = read_golden("zstd.data");
	int fd = file_of(b.at, b.size);
	struct source *r;

	limit_address_space(state);
	r = open_fd(fd);
	assert_int_equal(ftruncate(fd, 2000), 0);
	assert_true(drain(r).samples < 4800);
	assert_string_equal(warning(r), "FILE: truncated while it was read: the events after that "
					"are missing");
	r->ops->free(r);
	unlimit_address_space(state);
	free(b.at);
}

/* Several files are mapped, and one of them becomes shorter after its records were delivered. */
static void test_shrinking_among_others(void **state)
{
	struct bytes b = read_golden("syscalls.data");
	int fd = file_of(b.at, b.size);
	struct source *shorter = open_fd(fd), *other = open_fd(file_of(b.at, b.size));
	struct slot slots[64];
	uint64_t sum = 0;
	struct error err;
	int n;

	(void)state;
	n = shorter->ops->next(shorter, slots, 64, UINT64_MAX, &err);
	assert_int_equal(n, 64);
	assert_int_equal(ftruncate(fd, 1), 0);
	for (int i = 0; i < n; i++)
		sum += ((const struct perf_event_header *)slots[i].rec)->size;
	assert_int_equal(sum, 0);
	assert_true(drain(other).samples > 0);
	assert_null(warning(other));
	other->ops->free(other);
	drain(shorter);
	assert_string_equal(warning(shorter), "FILE: truncated while it was read: the events after "
					      "that are missing");
	shorter->ops->free(shorter);
	free(b.at);
}

static void test_unfinished(void **state)
{
	struct bytes b = read_golden("syscalls.data");
	uint64_t *contents = (uint64_t *)b.at, size = contents[5] + contents[6];
	struct source *r;

	(void)state;
	contents[6] = 0;
	r = open_fd(file_of(b.at, size));
	assert_int_equal(drain(r).samples, 236);
	assert_string_equal(r->info.events[0].name, "2:443");
	assert_string_equal(warning(r),
			    "FILE: not finished by perf: records, names and formats may be "
			    "missing");
	r->ops->free(r);
	free(b.at);
}

static void test_damaged_record(void **state)
{
	struct bytes b = new_file();
	struct source *r;

	(void)state;
	for (int i = 0; i < 10; i++)
		add_record(&b, PERF_RECORD_SAMPLE, i + 1);
	((struct perf_event_header *)(b.at + b.size - 4 * 16))->size = 4;
	r = open_fd(file_of(b.at, b.size));
	assert_int_equal(drain(r).samples, 6);
	assert_non_null(strstr(warning(r), "damaged"));
	r->ops->free(r);
	free(b.at);
}

static void refused(int fd, const char *why)
{
	struct error err = {};

	assert_null(recording_open_fd(fd, "FILE", &err));
	assert_string_equal(err.text, why);
}

static void test_foreign(void **state)
{
	static const struct {
		const char *start, *why;
	} foreign[] = {
		{"\177ELF.............", "FILE: not a perf recording (an ELF file)"},
		{"\x1f\x8b..............", "FILE: not a perf recording (compressed by gzip)"},
		{"#include <a.h>\n\n", "FILE: not a perf recording (text)"},
		{"\1\2\3\4\5\6\7\1\2\3\4\5\6\7\1\2",
		 "FILE: not a perf recording (unknown content)"},
		{"2ELIFREP........",
		 "FILE: not a perf recording (recorded on a machine with the other byte order)"},
	};
	struct bytes b = read_golden("sched.data");
	struct error err = {};

	(void)state;
	for (unsigned int i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		refused(file_of(foreign[i].start, 16), foreign[i].why);
	refused(file_of("", 0), "FILE: not a perf recording (empty)");
	refused(file_of("hello\n", 6), "FILE: not a perf recording (shorter than a header)");
	refused(file_of(b.at, 50), "FILE: cut off inside its header");
	refused(pipe_of(&b, 4096),
		"FILE: cannot read a perf.data file through a pipe: give its name");
	((uint64_t *)b.at)[9] |= 1 << 24;
	refused(file_of(b.at, b.size),
		"FILE: part of a directory written by perf record --threads, "
		"which is not supported");
	assert_null(recording_open("tests", &err));
	assert_string_equal(err.text, "tests: not a perf recording (a directory)");
	assert_null(recording_open("tests/none", &err));
	assert_string_equal(err.text, "tests/none: No such file or directory");
	free(b.at);
	while (wait(NULL) > 0)
		;
}

/* The file of perf record --kcore has all records; that directory's format is 0. */
static void test_kcore_directory(void **state)
{
	struct bytes b = read_golden("sched.data");
	uint64_t *contents = (uint64_t *)b.at, *section;
	struct error err = {};
	struct source *s;

	(void)state;
	assert_int_equal(contents[9] >> 24 & 3, 2); /* the section of 25 becomes that of 24 */
	contents[9] ^= 3 << 24;
	section = (uint64_t *)(b.at + contents[5] + contents[6]) +
		  2 * __builtin_popcountll(contents[9] & ((1 << 24) - 1));
	section[1] = 8;
	memset(b.at + section[0], 0, 8);
	s = recording_open_fd(file_of(b.at, b.size), "FILE", &err);
	assert_string_equal(err.text, "");
	assert_non_null(s);
	s->ops->free(s);
	free(b.at);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_shrinking_among_others),
		cmocka_unit_test(test_unfinished),
		cmocka_unit_test(test_damaged_record),
		cmocka_unit_test(test_foreign),
		cmocka_unit_test(test_kcore_directory),
		cmocka_unit_test(test_read_equals_mapped),
		cmocka_unit_test(test_shrinking),
		cmocka_unit_test_setup_teardown(test_truncated, limit_address_space,
						unlimit_address_space),
	};

	return cmocka_run_group_tests_name("recording_damage", tests, NULL, NULL);
}
