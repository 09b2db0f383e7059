/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of recordings: the golden ones and what `perf script` says about them, files made of
 * single records, and a reader. Included after cmocka.h.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "error.h"
#include "event.h"
#include "recording/recording.h"
#include "source.h"

enum { HEADER = 104, ROUND = 68, BATCH = 64 };

struct bytes {
	uint8_t *at;
	size_t size;
};

/* The events of a recording. sum is over times, types and all bytes, in order. */
struct content {
	uint64_t records, samples, lost, comms, late, first, last_sample, last, sum;
};

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
