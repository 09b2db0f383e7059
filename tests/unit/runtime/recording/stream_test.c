/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/stream.c: records of files and pipes, in pieces of any size, unaligned, kept.
 */
#include "recording/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

enum { TYPE = 9 /* PERF_RECORD_SAMPLE */, TRACING_DATA = 66, NR = 40000, MAX = 64 };

struct record {
	struct perf_event_header header;
	uint8_t data[MAX];
};

/* The record number n; sizes are no multiples of 8 if odd. */
static struct record record(uint32_t n, bool odd)
{
	struct record r = {
		.header = {.type = TYPE, .size = sizeof(r.header) + 8 + n % 7 * 8 + odd}};

	memset(r.data, (int)(n & 0xff), sizeof(r.data));
	memcpy(r.data, &n, sizeof(n));
	return r;
}

static void assert_record(const struct perf_event_header *rec, uint32_t n, bool odd)
{
	struct record want = record(n, odd);

	assert_int_equal((uintptr_t)rec & 7, 0);
	assert_memory_equal(rec, &want, want.header.size);
}

static int file_of_records(uint32_t nr, bool odd, size_t cut)
{
	int fd = memfd_create("stream", 0);

	for (uint32_t n = 0; n < nr; n++) {
		struct record r = record(n, odd);
		size_t size = r.header.size - (n == nr - 1 ? cut : 0);

		assert_int_equal(write(fd, &r, size), size);
	}
	return fd;
}

static void test_file(void **state)
{
	(void)state;
	for (int odd = 0; odd < 2; odd++) {
		const struct perf_event_header *rec;
		int fd = file_of_records(NR, odd, 0);
		struct stream *s = stream_new(fd);
		uint64_t size, before = 0;

		assert_non_null(s);
		assert_true(stream_is_file(s, &size));
		assert_int_equal(size, lseek(fd, 0, SEEK_END));
		assert_int_equal(stream_limit(s, 0, size), 0);
		for (uint32_t n = 0; n < NR; n++) {
			assert_int_equal(stream_next(s, true, &rec), 1);
			assert_record(rec, n, odd);
			assert_int_equal(stream_position(s), before + rec->size);
			before = stream_position(s);
		}
		assert_int_equal(stream_next(s, true, &rec), 0);
		assert_false(stream_is_cut(s));
		stream_free(s);
		close(fd);
	}
}

static void test_range(void **state)
{
	const struct perf_event_header *rec;
	struct record first = record(0, false);
	int fd = file_of_records(3, false, 0);
	struct stream *s = stream_new(fd);

	(void)state;
	assert_memory_equal(stream_at(s, 0, sizeof(first.header)), &first, sizeof(first.header));
	assert_int_equal(stream_limit(s, first.header.size, first.header.size + 24), 0);
	assert_int_equal(stream_next(s, true, &rec), 1);
	assert_record(rec, 1, false);
	assert_int_equal(stream_next(s, true, &rec), 0);
	stream_free(s);
	close(fd);
}

static void test_cut(void **state)
{
	const struct perf_event_header *rec;
	int fd = file_of_records(2, false, 5);
	struct stream *s = stream_new(fd);
	uint64_t size;

	(void)state;
	stream_is_file(s, &size);
	stream_limit(s, 0, size);
	assert_int_equal(stream_next(s, true, &rec), 1);
	assert_int_equal(stream_next(s, true, &rec), -ENODATA);
	assert_int_equal(ftruncate(fd, 8), 0);
	assert_true(stream_is_cut(s));
	stream_free(s);
	close(fd);
}

/* Kept records stay as they are until they are released, however much is read after them. */
static void test_pipe(void **state)
{
	static const struct perf_event_header *kept[NR];
	const struct perf_event_header *rec;
	struct stream *s;
	uint32_t nr = 0;
	int fds[2];

	(void)state;
	assert_int_equal(pipe2(fds, O_NONBLOCK), 0);
	s = stream_new(fds[0]);
	assert_int_equal(stream_next(s, false, &rec), -EAGAIN);
	for (uint32_t n = 0; n < NR; n++) {
		struct record r = record(n, true);
		size_t part = n % r.header.size;

		assert_int_equal(write(fds[1], &r, part), part);
		assert_int_equal(stream_next(s, false, &rec), -EAGAIN);
		assert_int_equal(write(fds[1], (uint8_t *)&r + part, r.header.size - part),
				 r.header.size - part);
		assert_int_equal(stream_next(s, false, &rec), 1);
		assert_int_equal(stream_keep(s, rec, n), rec->size);
		kept[nr++] = rec;
	}
	stream_release(s, NR / 2);
	for (uint32_t n = NR / 2; n < NR; n++)
		assert_record(kept[n], n, true);
	close(fds[1]);
	assert_int_equal(stream_next(s, true, &rec), 0);
	stream_free(s);
	close(fds[0]);
}

/* The first bytes have been read by somebody else, and data follows a record. */
static void test_continued(void **state)
{
	struct {
		struct perf_event_header header;
		uint32_t size;
		char data[16], rest[4];
	} __attribute__((packed))
	tracing = {{.type = TRACING_DATA, .size = 12}, 13, "thirteen bytes", "rest"};
	struct record r = record(7, false), after = record(8, false);
	const struct perf_event_header *rec;
	struct stream *s;
	const char *data;
	size_t size;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], (uint8_t *)&r + 3, r.header.size - 3), r.header.size - 3);
	assert_int_equal(write(fds[1], &tracing, 28), 28);
	assert_int_equal(write(fds[1], &after, after.header.size), after.header.size);
	assert_int_equal(write(fds[1], &after, 4), 4);
	close(fds[1]);
	s = stream_continue(fds[0], &r, 3);
	assert_false(stream_is_file(s, &size));
	assert_int_equal(stream_next(s, true, &rec), 1);
	assert_record(rec, 7, false);
	assert_int_equal(stream_next(s, true, &rec), 1);
	assert_int_equal(rec->type, TRACING_DATA);
	data = stream_payload(s, &size);
	assert_non_null(data);
	assert_int_equal(size, 16);
	assert_string_equal(data, "thirteen bytes");
	assert_int_equal(stream_next(s, true, &rec), 1);
	assert_record(rec, 8, false);
	assert_int_equal(stream_next(s, true, &rec), -ENODATA);
	stream_free(s);
	close(fds[0]);
}

static void test_too_small(void **state)
{
	const struct perf_event_header wrong = {.type = TYPE, .size = 7}, *rec;
	struct stream *s;
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], &wrong, sizeof(wrong)), sizeof(wrong));
	close(fds[1]);
	s = stream_new(fds[0]);
	assert_int_equal(stream_next(s, true, &rec), -EBADMSG);
	stream_free(s);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_file),	  cmocka_unit_test(test_range),
		cmocka_unit_test(test_cut),	  cmocka_unit_test(test_pipe),
		cmocka_unit_test(test_continued), cmocka_unit_test(test_too_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
