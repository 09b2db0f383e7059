/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Sends what a small virtual machine does as the events of another machine: small:out, on the
 * clock of that machine. It waits for one receiver at a unix socket.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "wire/bytes.h"
#include "wire/own_records.h"
#include "wire/preamble.h"

enum { STREAM_ID = 9000, STREAM_GROUP = 64, FINISHED_ROUND = 68 };

struct stream {
	int fd; /* -1: nothing is sent */
	struct bytes out;
	struct wire_group group;
};

struct stream_sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, zero, raw_size;
	struct {
		uint16_t type;
		uint8_t flags, preempt_count;
		int32_t pid;
		uint64_t tsc;
		uint32_t n;
	} __attribute__((packed)) raw;
} __attribute__((packed));

static const char stream_format[] =
	"name: out\nID: 9000\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:u64 tsc;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:u32 n;\toffset:16;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"n %u tsc %llu\", REC->n, REC->tsc\n";

static inline void stream_send(struct stream *s)
{
	for (size_t at = 0; at < s->out.size;) {
		ssize_t n = send(s->fd, s->out.data + at, s->out.size - at, MSG_NOSIGNAL);

		if (n <= 0)
			exit(1);
		at += n;
	}
	s->out.size = 0;
}

static inline void stream_pair(struct stream *s, uint64_t tsc, uint64_t clock)
{
	struct wire_pair pair = {
		.head = wire_head(WIRE_PAIR, sizeof(pair)),
		.tsc = tsc,
		.clock = clock,
		.mono = clock,
		.read_error_ns = 1,
		.real_error_us = UINT32_MAX,
	};

	bytes_add(&s->out, &pair, sizeof(pair));
	stream_send(s);
}

/* The machine's clock was `clock` when its TSC was `tsc`. */
static inline void stream_open(struct stream *s, const char *path, uint64_t tsc, uint64_t clock)
{
	static const uint64_t id = STREAM_ID;
	struct wire_event event = {
		.attr = {.type = PERF_TYPE_TRACEPOINT,
			 .size = sizeof(event.attr),
			 .config = STREAM_ID,
			 .sample_period = 1,
			 .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
					PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
			 .sample_id_all = 1},
		.name = "small:out",
		.ids = &id,
		.nr_ids = 1,
		.system = "small",
		.format = stream_format,
		.format_size = sizeof(stream_format) - 1,
	};
	struct wire_hello hello = {.flags = WIRE_ORDERED, .epoch = 1, .clockid = 1};
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	if (bind(listener, (const struct sockaddr *)&address, sizeof(address)) ||
	    listen(listener, 1)) {
		perror(path);
		exit(1);
	}
	s->fd = accept(listener, NULL, NULL);
	close(listener);
	preamble_fill(&hello);
	memset(hello.boot_id, 1, sizeof(hello.boot_id));
	hello.nr_cpus = 1;
	snprintf(hello.hostname, sizeof(hello.hostname), "small");
	preamble_write(&s->out, &event, 1, &hello, clock, 0);
	stream_pair(s, tsc, clock);
	s->group.first_time = clock;
}

/* Sends the events since the last group. */
static inline void stream_flush(struct stream *s)
{
	struct perf_event_header end = {.type = FINISHED_ROUND, .size = sizeof(end)};
	size_t size = s->out.size;
	struct bytes out = {0};

	s->group.head = wire_head(WIRE_GROUP, sizeof(s->group));
	bytes_add(&out, &s->group, sizeof(s->group));
	bytes_add(&out, s->out.data, size);
	bytes_add(&out, &end, sizeof(end));
	free(s->out.data);
	s->out = out;
	stream_send(s);
	s->group.seq++;
	s->group.events_before += s->group.events;
	s->group.events = 0;
	s->group.first_time = s->group.last_time;
}

static inline void stream_event(struct stream *s, uint32_t n, uint64_t tsc, uint64_t clock)
{
	struct stream_sample sample = {
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(sample)},
		.id = STREAM_ID,
		.time = clock,
		.raw_size = sizeof(sample.raw),
		.raw = {.type = STREAM_ID, .tsc = tsc, .n = n},
	};

	_Static_assert(sizeof(sample) % 8 == 0, "records are aligned");
	/* Since stream_open() the machine may have waited for long. A sender reads its clocks each
	 * second: by one reading alone the receiver does not know their rate. */
	if (!n)
		stream_pair(s, tsc, clock);
	bytes_add(&s->out, &sample, sizeof(sample));
	s->group.last_time = clock;
	if (++s->group.events < STREAM_GROUP)
		return;
	stream_flush(s);
	stream_pair(s, tsc, clock);
}

static inline void stream_close(struct stream *s)
{
	struct wire_bye bye = {wire_head(WIRE_BYE, sizeof(bye))};

	stream_flush(s);
	bytes_add(&s->out, &bye, sizeof(bye));
	stream_send(s);
	close(s->fd);
	free(s->out.data);
}
