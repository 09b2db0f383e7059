/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For tests of push: a made-up source of numbered samples that is pushed to some addresses, the
 * receivers of these, and a folder for their files. Included after cmocka.h.
 */
#pragma once
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "formats/formats.h"
#include "os/clock.h"
#include "push/push.h"
#include "recording/recording.h"
#include "source.h"

enum {
	PUSHED = EVENT_FIRST,
	LOCAL = EVENT_FIRST + 1,
	PUSHED_ID = 1001, /* of the kernel, one of several */
	OTHER_ID = 1003,
	LOCAL_ID = 1002,
	BATCH = 256,
	START = 1000000,
	STEP = 100 /* ns between samples */
};

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint32_t raw_size;
	uint32_t value;
	uint64_t filler[4];
};

struct loss {
	struct perf_event_header header;
	uint64_t id, lost;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint64_t identifier;
};

/* A source of n samples, numbered. Every third is of the class LOCAL. */
struct made {
	struct source source;
	struct formats *formats;
	struct sample samples[BATCH];
	struct loss loss;
	uint32_t n, next;
	uint32_t loss_after; /* how many samples it comes; 0: never */
	bool loss_is_unknown;
	bool stopped;
};

static struct error err;
static char dir[] = "/tmp/profscript-test-XXXXXX";
static char path[64], address[80];

static inline struct formats *made_formats(struct source *src, struct error *e)
{
	(void)e;
	return ((struct made *)src)->formats;
}

static inline uint64_t made_sample_type(struct source *src, const struct event_request *req)
{
	(void)src;
	(void)req;
	return 0;
}

static inline bool made_has_records(struct source *src, uint32_t kind)
{
	(void)src;
	(void)kind;
	return false;
}

static inline int made_add_event(struct source *src, const struct event_request *req,
				 struct error *e)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = req->attr.config,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_CPU | PERF_SAMPLE_RAW,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};
	int index = decoder_add_attr(src->decoder, &attr, e);

	decoder_add_id(src->decoder, req->class == PUSHED ? PUSHED_ID : LOCAL_ID, index);
	if (req->class == PUSHED)
		decoder_add_id(src->decoder, OTHER_ID, index);
	return decoder_add_class(src->decoder, index, req->class, 4);
}

static inline int made_open(struct source *src, const struct source_target *target, struct error *e)
{
	(void)target;
	return decoder_check(src->decoder, e);
}

static inline int made_start(struct source *src, struct error *e)
{
	(void)e;
	src->start = START + STEP; /* sample 0 is too early */
	return 0;
}

static inline uint64_t time_of(uint32_t number)
{
	return START + (uint64_t)number * STEP;
}

static inline uint64_t id_of(uint32_t number)
{
	return number % 3 == 2 ? LOCAL_ID : number % 3 ? PUSHED_ID : OTHER_ID;
}

static inline int made_next(struct source *src, struct slot *out, int max, uint64_t until,
			    struct error *e)
{
	struct made *m = (struct made *)src;
	int n = 0;

	(void)until;
	(void)e;
	if (m->loss_after && m->next >= m->loss_after) {
		m->loss_after = 0;
		m->loss =
			(struct loss){.header = {.type = PERF_RECORD_LOST, .size = sizeof(m->loss)},
				      .id = PUSHED_ID,
				      .lost = m->loss_is_unknown ? 0 : 7,
				      .time = time_of(m->next),
				      .identifier = PUSHED_ID};
		out[0] = (struct slot){.time = m->loss.time - STEP, .rec = &m->loss};
		return 1;
	}
	for (; n < max && n < BATCH && m->next < m->n; n++, m->next++) {
		m->samples[n] = (struct sample){
			.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(struct sample)},
			.id = id_of(m->next),
			.pid = 10,
			.tid = 11,
			.time = time_of(m->next),
			.cpu = 1,
			.raw_size = 4 + sizeof(m->samples[n].filler),
			.value = m->next,
		};
		out[n] = (struct slot){.time = time_of(m->next), .rec = &m->samples[n]};
	}
	src->horizon = time_of(m->next) - 1;
	return n || !m->stopped ? n : -ENODATA;
}

static inline int made_wait(struct source *src, int64_t timeout)
{
	struct pollfd poll_fd = {.fd = src->wake_fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout / 1000000) < 0 ? -errno : 0;
}

static inline void made_stop(struct source *src)
{
	((struct made *)src)->stopped = true;
}

static inline uint64_t made_now(struct source *src)
{
	(void)src;
	return clock_monotonic();
}

static inline void made_free(struct source *src)
{
	formats_free(((struct made *)src)->formats);
	decoder_free(src->decoder);
	free(src);
}

static const struct source_ops made_ops = {
	.formats = made_formats,
	.sample_type = made_sample_type,
	.has_records = made_has_records,
	.add_event = made_add_event,
	.open = made_open,
	.start = made_start,
	.next = made_next,
	.wait = made_wait,
	.stop = made_stop,
	.now = made_now,
	.free = made_free,
};

/* A run that pushes to some addresses. */
struct run {
	struct made *made;
	struct push *push;
	struct source *source;
	uint32_t local, losses; /* that were delivered */
	uint32_t last_local;
};

/* Opens a run of a source with these operations without starting it. */
static inline struct run prepare_from(const struct source_ops *ops, const char *const *addresses,
				      const char *secret_file)
{
	const struct source_target target = {0};
	struct made *m = calloc(1, sizeof(*m));
	struct run run = {.made = m};
	struct event_request pushed = {.name = "pushed", .class = PUSHED, .attr.config = 1};
	struct event_request local = {.name = "local", .class = LOCAL, .attr.config = 2};

	m->source.ops = ops;
	m->source.decoder = decoder_new();
	m->source.start = UINT64_MAX;
	m->formats = formats_new();
	run.push = push_new(&m->source, &err);
	assert_non_null(run.push);
	run.source = push_source(run.push);
	for (; *addresses; addresses++) {
		int bit = push_add(run.push, *addresses, &err);

		assert_true(bit >= 0);
		pushed.push |= 1ull << bit;
	}
	unsetenv("PROFSCRIPT_SECRET");
	assert_int_equal(push_set_secret(run.push, secret_file, &err), 0);
	assert_int_equal(run.source->ops->add_event(run.source, &pushed, &err), 0);
	assert_int_equal(run.source->ops->add_event(run.source, &local, &err), 0);
	if (run.source->ops->open(run.source, &target, &err))
		fail_msg("%s", err.text);
	return run;
}

static inline struct run prepare_run(const char *const *addresses, const char *secret_file)
{
	return prepare_from(&made_ops, addresses, secret_file);
}

static inline struct run open_run(const char *const *addresses, const char *secret_file)
{
	struct run run = prepare_run(addresses, secret_file);

	assert_int_equal(run.source->ops->start(run.source, &err), 0);
	return run;
}

static inline void note(struct run *run, const struct slot *slot)
{
	const struct sample *s = slot->rec;

	run->losses += s->header.type == PERF_RECORD_LOST;
	if (s->header.type != PERF_RECORD_SAMPLE)
		return;
	assert_int_equal(s->id, LOCAL_ID);
	assert_true(!run->local || s->value > run->last_local);
	run->last_local = s->value;
	run->local++;
}

/* One round of a session: takes what there is, or waits. Returns the source's verdict. */
static inline int step(struct run *run)
{
	struct slot slots[BATCH];
	int n = run->source->ops->next(run->source, slots, BATCH, UINT64_MAX, &err);

	for (int i = 0; i < n; i++)
		note(run, &slots[i]);
	if (!n)
		run->source->ops->wait(run->source, 10000000);
	return n;
}

/* Lets the source produce samples until it has made n. */
static inline void produce(struct run *run, uint32_t n)
{
	run->made->n = n;
	while (run->made->next < n)
		assert_true(step(run) >= 0);
}

static inline void steps(struct run *run, int n)
{
	while (n--)
		assert_true(step(run) >= 0);
}

static inline int end_run(struct run *run)
{
	int ret;

	run->source->ops->stop(run->source);
	while ((ret = step(run)) >= 0)
		;
	return ret;
}

static inline uint32_t pushed_below(uint32_t n)
{
	uint32_t pushed = 0;

	for (uint32_t i = 1; i < n; i++) /* sample 0 is too early */
		pushed += id_of(i) != LOCAL_ID;
	return pushed;
}

/* What a recording of a pushed stream contains. */
struct content {
	uint32_t samples, losses, lost;
	uint64_t loss_end;
};

/* shift: what was added to the times. */
static inline struct content read_recording(const char *file, uint64_t shift)
{
	struct event_request req = {.name = "pushed",
				    .class = PUSHED,
				    .attr = {.type = PERF_TYPE_SOFTWARE, .config = 1}};
	const struct source_target target = {0};
	struct source *src = recording_open(file, &err);
	struct content content = {0};
	struct slot slots[BATCH];
	uint32_t expected = 1;
	int n;

	if (!src)
		fail_msg("%s", err.text);
	assert_string_equal(src->info.events[0].name, "pushed");
	assert_int_equal(src->ops->add_event(src, &req, &err), 0);
	assert_int_equal(src->ops->open(src, &target, &err), 0);
	while ((n = src->ops->next(src, slots, BATCH, UINT64_MAX, &err)) >= 0) {
		for (int i = 0; i < n; i++) {
			const struct perf_event_header *rec = slots[i].rec;
			struct event ev;
			uint32_t value;

			if (rec->type == PERF_RECORD_LOST) {
				assert_int_equal(decoder_decode(src->decoder, rec, &ev, 1), 1);
				content.losses++;
				content.lost += ev.period;
				assert_true(decoder_time(src->decoder, rec, &content.loss_end));
			}
			if (rec->type != PERF_RECORD_SAMPLE)
				continue;
			assert_int_equal(decoder_decode(src->decoder, rec, &ev, 1), 1);
			memcpy(&value, ev.raw, sizeof(value));
			if (id_of(expected) == LOCAL_ID)
				expected++;
			assert_int_equal(value, expected++);
			assert_int_equal(slots[i].time, time_of(value) + shift);
			assert_int_equal(ev.class, PUSHED);
			assert_int_equal(ev.pid, 10);
			assert_int_equal(ev.tid, 11);
			assert_int_equal(ev.cpu, 1);
			assert_int_equal(ev.raw_size, 4 + 4 * 8);
			content.samples++;
		}
	}
	assert_int_equal(n, -ENODATA);
	assert_string_equal(src->warning.text, "");
	src->ops->free(src);
	return content;
}

static inline int connect_here(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, strlen(path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Lets the run go on until so many receivers are there. */
static inline void await(struct run *run, uint32_t receivers)
{
	struct push_totals totals;

	do {
		steps(run, 1);
		push_read_totals(run->push, 0, &totals);
	} while (totals.receivers != receivers);
	steps(run, 5);
}

static inline int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	return 0;
}

static inline int clean(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static inline int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}
