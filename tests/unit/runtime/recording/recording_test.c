/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/recording/recording.c with its reader: the golden recordings, pipes, order, damage,
 * foreign files. The numbers are those of `perf script` for the same files. */
#include "recording/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/perf_event.h>

#include <cmocka.h>
#include "decode/decoder.h"
#include "error.h"
#include "source.h"
#include "formats/formats.h"
#include "formats/tracepoint.h"

enum { HEADER = 104, ROUND = 68, BATCH = 64 };

struct bytes {
	uint8_t *at;
	size_t size;
};

/* The events of a recording. sum is over times, types and all bytes, in order. */
struct content {
	uint64_t records, samples, lost, comms, late, first, last_sample, last, sum;
};

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

static void add(struct bytes *b, const void *from, size_t size)
{
	b->at = realloc(b->at, b->size + size);
	assert_non_null(b->at);
	memcpy(b->at + b->size, from, size);
	b->size += size;
}

static struct bytes read_golden(const char *name)
{
	struct bytes b = {};
	char path[128], part[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "tests/recordings/%s", name);
	f = fopen(path, "r");
	assert_non_null(f);
	while ((n = fread(part, 1, sizeof(part), f)))
		add(&b, part, n);
	fclose(f);
	return b;
}

static int file_of(const void *at, size_t size)
{
	int fd = memfd_create("recording", 0);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, at, size), size);
	return fd;
}

/* A process that writes the bytes into a pipe, in pieces. */
static int pipe_of(const struct bytes *b, size_t piece)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	if (!fork()) {
		close(fds[0]);
		for (size_t i = 0; i < b->size; i += piece) {
			size_t n = b->size - i < piece ? b->size - i : piece;

			if (write(fds[1], b->at + i, n) != (ssize_t)n)
				_exit(1);
		}
		_exit(0);
	}
	close(fds[1]);
	return fds[0];
}

static void note(struct content *c, const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;

	c->records++;
	c->samples += rec->type == PERF_RECORD_SAMPLE;
	c->comms += rec->type == PERF_RECORD_COMM;
	if (rec->type == PERF_RECORD_LOST)
		c->lost += ((const uint64_t *)(rec + 1))[1];
	if (slot->flags & EVENT_LATE)
		c->late++;
	else
		assert_true(slot->time >= c->last);
	if (slot->time > c->last)
		c->last = slot->time;
	if (rec->type == PERF_RECORD_SAMPLE && !c->first)
		c->first = slot->time;
	if (rec->type == PERF_RECORD_SAMPLE)
		c->last_sample = slot->time;
	c->sum = c->sum * 31 + slot->time;
	for (int i = 0; i < rec->size; i++)
		c->sum = c->sum * 31 + ((const uint8_t *)rec)[i];
}

static const char *warning(const struct source *s)
{
	return s->warning.text[0] ? s->warning.text : NULL;
}

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

static struct content drain(struct source *s)
{
	struct slot slots[BATCH];
	struct content c = {};
	struct error err;
	int n;

	while ((n = s->ops->next(s, slots, BATCH, UINT64_MAX, &err)) >= 0) {
		for (int i = 0; i < n; i++) {
			assert_true(slots[i].ring < s->nr_rings);
			note(&c, &slots[i]);
		}
		if (!n)
			assert_int_equal(s->ops->wait(s, 1000000000), 0);
	}
	assert_int_equal(n, -ENODATA);
	return c;
}

static struct source *open_fd(int fd)
{
	struct error err;
	struct source *r = recording_open_fd(fd, "FILE", &err);

	if (!r)
		fail_msg("%s", err.text);
	return r;
}

static struct content drain_fd(int fd)
{
	struct source *r = open_fd(fd);
	struct content c = drain(r);

	assert_null(warning(r));
	r->ops->free(r);
	return c;
}

static const struct golden {
	const char *name, *events;
	uint64_t samples, comms, lost, first, last; /* first, last: times of samples */
	bool says_start;
} goldens[] = {
	{"sched.data", "sched:sched_wakeup, sched:sched_switch", 334, 3, 0, 3147404888252,
	 3147414229575, true},
	{"syscalls.data", "raw_syscalls:sys_enter, raw_syscalls:sys_exit", 236, 2, 0, 3136788956470,
	 3136789973892, true},
	{"pipe.data", "raw_syscalls:sys_enter, raw_syscalls:sys_exit", 58, 2, 0, 3138028483127,
	 3138029533490, false},
	{"zstd.data", "raw_syscalls:sys_enter, raw_syscalls:sys_exit", 4800, 3, 0, 3139209594612,
	 3139270725793, false},
	{"lost.data", "raw_syscalls:sys_enter, raw_syscalls:sys_exit", 108, 4, 1274 + 892 + 892,
	 3140345157701, 3140385205774, true},
	{"mixed.data", "sched:sched_switch, cpu-clock", 43, 3, 0, 3141556521937, 3141579430148,
	 true},
};

enum { NR_GOLDENS = sizeof(goldens) / sizeof(goldens[0]) };

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

/* A file with one event whose samples contain only their time. */
static struct bytes new_file(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_type = PERF_SAMPLE_TIME,
				       .sample_id_all = 1};
	uint64_t contents[13] = {0, HEADER, sizeof(attr) + 16, HEADER, sizeof(attr) + 16};
	uint64_t no_ids[2] = {};
	struct bytes b = {};

	memcpy(contents, "PERFILE2", 8);
	contents[5] = HEADER + sizeof(attr) + 16;
	add(&b, contents, sizeof(contents));
	add(&b, &attr, sizeof(attr));
	add(&b, no_ids, sizeof(no_ids));
	return b;
}

static void add_record(struct bytes *b, uint32_t type, uint64_t time)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		char comm[8];
		uint64_t time;
	} comm = {{PERF_RECORD_COMM, 0, sizeof(comm)}, 1, 1, "comm", time};
	struct {
		struct perf_event_header header;
		uint64_t time;
	} sample = {{type, 0, sizeof(sample)}, time};
	uint64_t *contents;

	if (type == PERF_RECORD_COMM)
		add(b, &comm, sizeof(comm));
	else
		add(b, &sample, type == ROUND ? 8 : sizeof(sample));
	if (type == ROUND)
		((struct perf_event_header *)(b->at + b->size - 8))->size = 8;
	contents = (uint64_t *)b->at;
	contents[6] = b->size - contents[5];
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
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_names_formats_clock),
		cmocka_unit_test(test_pipe_equals_file),
		cmocka_unit_test(test_order),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_live_pipe),
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

	return cmocka_run_group_tests_name("recording", tests, NULL, NULL);
}
