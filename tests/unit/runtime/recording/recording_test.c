/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/recording.c with its reader: the golden recordings, pipes, order. */
#include "recording/recording.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include <cmocka.h>
#include "decode/decoder.h"
#include "error.h"
#include "source.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"
#include "tests/unit/runtime/recording/recordings.h"

/* The names of its events in one line, except perf's own; valid until the next call. */
static const char *names(const struct source *s)
{
	static char text[256];

	text[0] = 0;
	for (uint32_t i = 0; i < s->info.nr_events; i++) {
		const struct recorded_event *ev = &s->info.events[i];

		if (ev->type == PERF_TYPE_SOFTWARE && ev->config == PERF_COUNT_SW_DUMMY)
			continue;
		if (text[0])
			strcat(text, ", ");
		strcat(text, ev->name);
	}
	return text;
}

static void test_golden(void **state)
{
	(void)state;
	for (int i = 0; i < NR_GOLDENS; i++) {
		const struct golden *g = &goldens[i];
		struct error err;
		struct source *r;
		struct content c;
		char path[128];

		snprintf(path, sizeof(path), "tests/recordings/%s", g->name);
		r = recording_open(path, &err);
		assert_non_null(r);
		assert_string_equal(names(r), g->events);
		assert_string_equal(r->info.arch, "x86_64");
		c = drain(r);
		assert_null(warning(r));
		assert_int_equal(c.samples, g->samples);
		assert_int_equal(c.comms, g->comms);
		assert_int_equal(c.lost, g->lost);
		assert_int_equal(c.late, 0);
		assert_int_equal(c.first, g->first);
		assert_int_equal(c.last_sample, g->last);
		assert_int_equal(r->start, g->says_start ? g->first : UINT64_MAX);
		r->ops->free(r);
	}
}

static void test_names_formats_clock(void **state)
{
	struct error err;
	struct source *r = recording_open("tests/recordings/syscalls.data", &err);
	struct tracepoint *t;
	double sec, nsec;

	(void)state;
	assert_non_null(r);
	assert_string_equal(r->info.events[1].name, "raw_syscalls:sys_exit");
	t = formats_find(r->ops->formats(r, &err), "raw_syscalls", "sys_exit", &err);
	assert_non_null(t);
	assert_int_equal(tracepoint_id(t), decoder_attr(r->decoder, 1)->config);
	/* 1795329711.808970 at 3136.744869565 of the recording's clock */
	sec = r->info.wall_sec;
	nsec = r->info.wall_nsec;
	assert_true(fabs(sec - 1795329711 + 3136 + (nsec - 808970000 + 744869565) / 1e9) < 1e-6);
	r->ops->free(r);

	r = recording_open("tests/recordings/sched.data", &err);
	assert_non_null(r);
	sec = r->info.wall_sec;
	nsec = r->info.wall_nsec;
	assert_true(isnan(sec));
	r->ops->free(r);
}

/* A file as the pipe that perf would have written. */
static struct bytes as_pipe(const struct bytes *file)
{
	uint64_t start[2], section[2], at, attr_size;
	const uint64_t *contents = (const void *)file->at;
	uint64_t data = contents[5], data_size = contents[6], bits = contents[9];
	struct bytes b = {};

	memcpy(start, file->at, 8);
	start[1] = 16;
	add(&b, start, 16);
	attr_size = contents[2] - 16;
	for (at = contents[3]; at < contents[3] + contents[4]; at += attr_size + 16) {
		struct perf_event_header rec = {.type = 64};

		memcpy(section, file->at + at + attr_size, 16);
		rec.size = sizeof(rec) + attr_size + section[1];
		add(&b, &rec, sizeof(rec));
		add(&b, file->at + at, attr_size);
		add(&b, file->at + section[0], section[1]);
	}
	at = data + data_size;
	for (uint64_t id = 0; id < 64; id++) {
		struct perf_event_header rec = {.type = id == 1 ? 66 : 80, .size = 16};
		uint64_t value = id;

		if (!(bits >> id & 1))
			continue;
		memcpy(section, file->at + at, 16);
		at += 16;
		if (id == 1)
			value = section[1];
		else
			rec.size += section[1];
		add(&b, &rec, sizeof(rec));
		add(&b, &value, sizeof(value));
		add(&b, file->at + section[0], section[1]);
		if (id == 1)
			add(&b, "\0\0\0\0\0\0\0", -section[1] & 7);
	}
	add(&b, file->at + data, data_size);
	return b;
}

static void test_pipe_equals_file(void **state)
{
	static const size_t pieces[] = {1, 7, 1000, 65536};

	(void)state;
	for (int i = 0; i < NR_GOLDENS; i++) {
		struct bytes file, pipe;
		struct content whole, piped;

		if (!strcmp(goldens[i].name, "pipe.data"))
			continue;
		file = read_golden(goldens[i].name);
		whole = drain_fd(file_of(file.at, file.size));
		pipe = as_pipe(&file);
		for (int k = 0; k < 5; k++) {
			int fd = k < 4 ? pipe_of(&pipe, pieces[k]) : file_of(pipe.at, pipe.size);
			struct source *r = open_fd(fd);

			assert_string_equal(names(r), goldens[i].events);
			piped = drain(r);
			assert_null(warning(r));
			assert_memory_equal(&piped, &whole, sizeof(whole));
			r->ops->free(r);
		}
		free(pipe.at);
		free(file.at);
		while (wait(NULL) > 0)
			;
	}
}

static void test_order(void **state)
{
	enum { N = 3000 };
	struct bytes b = new_file();
	struct slot slots[2];
	struct source *r;
	struct source *s;
	struct content c;
	struct error err;

	(void)state;
	/* Three rounds of two rings each; the last one has a record that should have been in the
	 * first, and one without time. */
	for (int round = 1; round <= 3; round++) {
		for (int ring = 0; ring < 2; ring++)
			for (int i = 0; i < N; i++)
				add_record(&b, PERF_RECORD_SAMPLE, round * 10000 + i * 4 + ring);
		if (round == 3) {
			add_record(&b, PERF_RECORD_SAMPLE, 10001);
			add_record(&b, PERF_RECORD_COMM, 0);
		}
		add_record(&b, ROUND, 0);
	}
	c = drain_fd(file_of(b.at, b.size));
	assert_int_equal(c.samples, 6 * N + 1);
	assert_int_equal(c.comms, 1);
	assert_int_equal(c.late, 2);
	assert_int_equal(c.first, 10000);

	r = open_fd(file_of(b.at, b.size));
	s = r;
	assert_int_equal(s->ops->next(s, slots, 2, 9999, &err), 0);
	assert_true(s->horizon >= 9999);
	assert_int_equal(s->ops->next(s, slots, 2, 10000, &err), 1);
	assert_int_equal(slots[0].time, 10000);
	assert_int_equal(s->ops->next(s, slots, 2, UINT64_MAX, &err), 2);
	assert_int_equal(slots[0].time, 10001);
	assert_int_equal(slots[1].time, 10004);
	assert_true(s->horizon >= 10001 && s->horizon <= 10004);
	r->ops->free(r);
	free(b.at);
}

/* As perf dumps a ring that is written backward: the newest record first, no rounds. */
static void test_backwards(void **state)
{
	struct bytes b = new_file();
	struct content c;

	(void)state;
	add_record(&b, PERF_RECORD_COMM, 0);
	for (int i = 5000; i > 0; i--)
		add_record(&b, PERF_RECORD_SAMPLE, i);
	c = drain_fd(file_of(b.at, b.size));
	assert_int_equal(c.samples, 5000);
	assert_int_equal(c.late, 0);
	assert_int_equal(c.first, 1);
	assert_int_equal(c.last, 5000);
	free(b.at);
}

/* The writer still exists: complete records are handed out, then nothing for now. */
static void test_live_pipe(void **state)
{
	struct bytes file = new_file(), pipe_bytes;
	struct slot slots[8];
	struct source *r;
	struct source *s;
	struct error err;
	int fds[2];

	(void)state;
	for (int i = 1; i <= 4; i++) {
		add_record(&file, PERF_RECORD_SAMPLE, i);
		if (i % 2 == 0)
			add_record(&file, ROUND, 0);
	}
	pipe_bytes = as_pipe(&file);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], pipe_bytes.at, pipe_bytes.size - 5), pipe_bytes.size - 5);
	r = open_fd(fds[0]);
	s = r;
	assert_int_equal(s->ops->next(s, slots, 8, UINT64_MAX, &err), 0);
	assert_int_equal(s->ops->wait(s, 1000), 0);
	assert_int_equal(write(fds[1], pipe_bytes.at + pipe_bytes.size - 5, 5), 5);
	assert_int_equal(s->ops->next(s, slots, 8, UINT64_MAX, &err), 2);
	assert_int_equal(slots[1].time, 2);
	assert_int_equal(s->ops->next(s, slots, 8, UINT64_MAX, &err), 0);
	assert_int_equal(s->horizon, 2);
	close(fds[1]);
	assert_int_equal(s->ops->next(s, slots, 8, UINT64_MAX, &err), 2);
	assert_int_equal(slots[1].time, 4);
	assert_int_equal(s->ops->next(s, slots, 8, UINT64_MAX, &err), -ENODATA);
	r->ops->free(r);
	free(pipe_bytes.at);
	free(file.at);
}

static void notice_is(struct bytes *b, const char *text)
{
	struct source *s = open_fd(file_of(b->at, b->size));

	assert_string_equal(s->notice.text, text);
	assert_int_equal(s->is_urgent, *text != 0);
	s->ops->free(s);
	free(b->at);
}

/* A trace by the hardware is named, in files and pipes, and the rest is read. */
static void test_traces(void **state)
{
	enum { AUXTRACE_INFO = 70 };
	uint64_t info[] = {(uint64_t)16 << 48 | AUXTRACE_INFO, 1};
	struct bytes file = new_file(), pipe;

	(void)state;
	add(&file, info, sizeof(info));
	add_record(&file, PERF_RECORD_SAMPLE, 1);
	pipe = as_pipe(&file);
	notice_is(&pipe, "FILE: the Intel PT trace in it is not decoded; only its other events are "
			 "read");
	info[1] = 99;
	memcpy(file.at + file.size - 16 - sizeof(info), info, sizeof(info));
	notice_is(&file, "FILE: the hardware trace in it is not decoded; only its other events are "
			 "read");
	file = new_file();
	add_record(&file, PERF_RECORD_SAMPLE, 1);
	notice_is(&file, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),		 cmocka_unit_test(test_names_formats_clock),
		cmocka_unit_test(test_pipe_equals_file), cmocka_unit_test(test_order),
		cmocka_unit_test(test_backwards),	 cmocka_unit_test(test_live_pipe),
		cmocka_unit_test(test_traces),
	};

	return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
