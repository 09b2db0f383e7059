/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/push: a made-up source is pushed to files and sockets, and what arrives is read by the
 * reader of recordings, or record by record. */
#include "push/push.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <zstd.h>

#include <cmocka.h>
#include "decode/decoder.h"
#include "formats/formats.h"
#include "os/clock.h"
#include "push/group.h"
#include "recording/recording.h"
#include "source.h"
#include "wire/own_records.h"
#include "wire/secret.h"

enum {
	PUSHED = EVENT_FIRST,
	LOCAL = EVENT_FIRST + 1,
	PUSHED_ID = 1001, /* of the kernel, one of several */
	OTHER_ID = 1003,
	LOCAL_ID = 1002,
	BATCH = 256,
	START = 1000000,
	STEP = 100, /* ns between samples */
	FINISHED_ROUND = 68,
	COMPRESSED = 81
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
	bool stopped;
};

static struct error err;
static char dir[] = "/tmp/push_test.XXXXXX";
static char path[64], address[80];

static struct formats *made_formats(struct source *src, struct error *e)
{
	(void)e;
	return ((struct made *)src)->formats;
}

static uint64_t made_sample_type(struct source *src, const struct event_request *req)
{
	(void)src;
	(void)req;
	return 0;
}

static bool made_has_records(struct source *src, uint32_t kind)
{
	(void)src;
	(void)kind;
	return false;
}

static int made_add_event(struct source *src, const struct event_request *req, struct error *e)
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

static int made_open(struct source *src, const struct source_target *target, struct error *e)
{
	(void)target;
	return decoder_check(src->decoder, e);
}

static int made_start(struct source *src, struct error *e)
{
	(void)e;
	src->start = START + STEP; /* sample 0 is too early */
	return 0;
}

static uint64_t time_of(uint32_t number)
{
	return START + (uint64_t)number * STEP;
}

static uint64_t id_of(uint32_t number)
{
	return number % 3 == 2 ? LOCAL_ID : number % 3 ? PUSHED_ID : OTHER_ID;
}

static int made_next(struct source *src, struct slot *out, int max, uint64_t until, struct error *e)
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
				      .lost = 7,
				      .time = time_of(m->next),
				      .identifier = PUSHED_ID};
		out[0] = (struct slot){.time = m->loss.time, .rec = &m->loss};
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

static int made_wait(struct source *src, int64_t timeout)
{
	struct pollfd poll_fd = {.fd = src->wake_fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout / 1000000) < 0 ? -errno : 0;
}

static void made_stop(struct source *src)
{
	((struct made *)src)->stopped = true;
}

static uint64_t made_now(struct source *src)
{
	(void)src;
	return clock_monotonic();
}

static void made_free(struct source *src)
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

static struct run open_run(const char *const *addresses, const char *secret_file)
{
	const struct source_target target = {0};
	struct made *m = calloc(1, sizeof(*m));
	struct run run = {.made = m};
	struct event_request pushed = {.name = "pushed", .class = PUSHED, .attr.config = 1};
	struct event_request local = {.name = "local", .class = LOCAL, .attr.config = 2};

	m->source.ops = &made_ops;
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
	assert_int_equal(run.source->ops->start(run.source, &err), 0);
	return run;
}

static void note(struct run *run, const struct slot *slot)
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
static int step(struct run *run)
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
static void produce(struct run *run, uint32_t n)
{
	run->made->n = n;
	while (run->made->next < n)
		assert_true(step(run) >= 0);
}

static void steps(struct run *run, int n)
{
	while (n--)
		assert_true(step(run) >= 0);
}

static int end_run(struct run *run)
{
	int ret;

	run->source->ops->stop(run->source);
	while ((ret = step(run)) >= 0)
		;
	return ret;
}

static uint32_t pushed_below(uint32_t n)
{
	uint32_t pushed = 0;

	for (uint32_t i = 1; i < n; i++) /* sample 0 is too early */
		pushed += id_of(i) != LOCAL_ID;
	return pushed;
}

/* What a recording of a pushed stream contains. */
struct content {
	uint32_t samples, losses, lost;
};

static struct content read_recording(const char *file)
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
			}
			if (rec->type != PERF_RECORD_SAMPLE)
				continue;
			assert_int_equal(decoder_decode(src->decoder, rec, &ev, 1), 1);
			memcpy(&value, ev.raw, sizeof(value));
			if (id_of(expected) == LOCAL_ID)
				expected++;
			assert_int_equal(value, expected++);
			assert_int_equal(slots[i].time, time_of(value));
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

/* A file is compressed, and a recording; the other class and losses reach the session. */
static void file(void **state)
{
	enum { N = 30000 };
	struct run run = open_run((const char *[]){path, NULL}, NULL);
	struct push_totals totals;
	struct content content;

	(void)state;
	run.made->loss_after = 5000;
	produce(&run, N);
	assert_int_equal(end_run(&run), -ENODATA);
	push_read_totals(run.push, 0, &totals);
	assert_int_equal(totals.events, pushed_below(N));
	assert_int_equal(totals.sent, pushed_below(N));
	assert_int_equal(totals.dropped, 0);
	assert_int_equal(run.local, N / 3);
	assert_int_equal(run.losses, 1);
	run.source->ops->free(run.source);
	content = read_recording(path);
	assert_int_equal(content.samples, pushed_below(N));
	assert_int_equal(content.losses, 1);
	assert_int_equal(content.lost, 7);
}

static void limit(void **state)
{
	struct run run = open_run((const char *[]){path, NULL}, NULL);

	(void)state;
	push_limit(run.push, 1000);
	run.made->n = 10000;
	while (step(&run) >= 0)
		;
	run.source->ops->free(run.source);
	assert_int_equal(read_recording(path).samples, 1000);
}

static int connect_here(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, strlen(path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* Starts a process that connects and saves all that is sent. It stops before it reads, if asked. */
static pid_t start_reader(const char *to, bool stops)
{
	pid_t pid = fork();
	char buf[65536];
	int fd, out;
	ssize_t n;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	fd = connect_here();
	out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (stops)
		raise(SIGSTOP);
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		if (write(out, buf, n) != n)
			_exit(1);
	_exit(n < 0);
}

/* Lets the run go on until so many receivers are there. */
static void await(struct run *run, uint32_t receivers)
{
	struct push_totals totals;

	do {
		steps(run, 1);
		push_read_totals(run->push, 0, &totals);
	} while (totals.receivers != receivers);
	steps(run, 5);
}

/* Ends the run and its readers, and returns the totals. */
static struct push_totals finish(struct run *run, const pid_t *readers, int n)
{
	struct push_totals totals;
	int status;

	assert_int_equal(end_run(run), -ENODATA);
	push_read_totals(run->push, 0, &totals);
	run->source->ops->free(run->source);
	for (int i = 0; i < n; i++) {
		assert_int_equal(waitpid(readers[i], &status, 0), readers[i]);
		assert_int_equal(status, 0);
	}
	return totals;
}

/* What the own records of a saved stream say. */
struct groups {
	uint32_t hellos, groups, rounds, pairs, byes;
	uint64_t events, gaps; /* events in groups, and before groups but in none */
	uint64_t lost;
	uint64_t epoch;
};

/* Reads a stream that is not compressed. first: the events before its first group. */
static struct groups read_groups(const char *file, uint64_t *first)
{
	struct groups g = {0};
	static uint8_t bytes[64 << 20];
	int fd = open(file, O_RDONLY);
	ssize_t size = read(fd, bytes, sizeof(bytes)), at = 16;
	uint64_t expected = 0, seq = 0, floor = 0, last = 0, samples = 0, in_group = 0;

	close(fd);
	assert_true(size > 16 && (size_t)size < sizeof(bytes));
	assert_memory_equal(bytes, "PERFILE2", 8);
	while (at < size) {
		const struct perf_event_header *rec = (void *)(bytes + at);
		const struct wire_head *head = (void *)rec;
		const struct wire_group *group = (void *)rec;

		assert_true(rec->size >= 8 && rec->size % 8 == 0 && at + rec->size <= size);
		at += rec->size;
		if (rec->type == 66)
			at += *(const uint32_t *)(rec + 1);
		if (rec->type == PERF_RECORD_SAMPLE) {
			assert_in_range(((const struct sample *)rec)->time, floor, last);
			samples++;
		}
		if (rec->type == FINISHED_ROUND) {
			assert_int_equal(samples, in_group);
			samples = 0;
			g.rounds++;
		}
		if (rec->type != WIRE_RECORD)
			continue;
		if (!memcmp(head->tag, WIRE_HELLO, WIRE_TAG)) {
			const struct wire_hello *hello = (void *)rec;

			assert_int_equal(rec->size, sizeof(*hello));
			assert_int_equal(hello->version, WIRE_VERSION);
			assert_int_equal(hello->clockid, CLOCK_MONOTONIC);
			assert_true(hello->flags & WIRE_ORDERED);
			g.epoch = hello->epoch;
			g.hellos++;
		}
		g.pairs += !memcmp(head->tag, WIRE_PAIR, WIRE_TAG);
		g.byes += !memcmp(head->tag, WIRE_BYE, WIRE_TAG);
		if (memcmp(head->tag, WIRE_GROUP, WIRE_TAG))
			continue;
		if (g.groups++) {
			assert_true(group->seq > seq);
			/* Either no group is missing, or the gap says how many events were. */
			if (group->seq == seq + 1)
				assert_int_equal(group->events_before, expected);
			g.gaps += group->events_before - expected;
		} else if (first) {
			*first = group->events_before;
		}
		assert_true(group->first_time >= last);
		seq = group->seq;
		in_group = group->events;
		expected = group->events_before + group->events;
		floor = last;
		last = group->last_time;
		g.events += group->events;
		g.lost = group->lost_before;
	}
	assert_int_equal(at, size);
	assert_int_equal(g.rounds, g.groups);
	return g;
}

static void two_receivers(void **state)
{
	enum { FIRST = 3000, N = 9000 };
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	char one[80], two[80];
	struct groups a, b;
	uint64_t before = 0;
	pid_t readers[2];

	(void)state;
	snprintf(one, sizeof(one), "%s.one", path);
	snprintf(two, sizeof(two), "%s.two", path);
	readers[0] = start_reader(one, false);
	await(&run, 1);
	produce(&run, FIRST);
	readers[1] = start_reader(two, false);
	await(&run, 2);
	run.made->loss_after = FIRST + 1000;
	produce(&run, N);
	finish(&run, readers, 2);
	a = read_groups(one, NULL);
	b = read_groups(two, &before);
	assert_int_equal(a.events, pushed_below(N));
	/* Its first group may have begun before it came. */
	assert_in_range(before, 1, pushed_below(FIRST));
	assert_int_equal(b.events, pushed_below(N) - before);
	assert_int_equal(a.gaps + b.gaps, 0);
	assert_int_equal(a.hellos + b.hellos, 2);
	assert_int_equal(a.epoch, b.epoch);
	assert_int_equal(a.byes + b.byes, 2);
	assert_true(a.pairs && b.pairs);
	assert_int_equal(read_recording(one).lost, 7);
	unlink(one);
	unlink(two);
}

/* A receiver that reads nothing for a while: whole groups are dropped, and both ends agree on how
 * many events they had. */
static void slow_receiver(void **state)
{
	enum { N = 400000 }; /* more than twice what the queue holds */
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct push_totals totals;
	char saved[80];
	struct groups g;
	pid_t reader;

	(void)state;
	snprintf(saved, sizeof(saved), "%s.saved", path);
	reader = start_reader(saved, true);
	await(&run, 1);
	produce(&run, N);
	push_read_totals(run.push, 0, &totals);
	assert_true(totals.dropped > N / 10);
	assert_int_equal(totals.receivers, 1);
	kill(reader, SIGCONT);
	steps(&run, 20);
	produce(&run, N + 3000);
	totals = finish(&run, &reader, 1);
	g = read_groups(saved, NULL);
	assert_int_equal(totals.events, pushed_below(N + 3000));
	assert_int_equal(totals.sent + totals.dropped, totals.events);
	assert_int_equal(g.events, totals.sent);
	assert_int_equal(g.gaps, totals.dropped);
	assert_int_equal(g.byes, 1);
	unlink(saved);
}

/* One that is gone does not disturb, and another one can come. */
static void hung_up(void **state)
{
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct push_totals totals;
	char saved[80];
	int fd = connect_here();
	pid_t reader;

	(void)state;
	snprintf(saved, sizeof(saved), "%s.saved", path);
	await(&run, 1);
	produce(&run, 3000);
	assert_non_null(strstr(push_take_messages(run.push), "Accept client unix:"));
	close(fd);
	await(&run, 0);
	produce(&run, 6000);
	assert_non_null(strstr(push_take_messages(run.push), "Client hangs up unix:"));
	assert_string_equal(push_take_messages(run.push), "");
	push_read_totals(run.push, 0, &totals);
	assert_int_equal(totals.events, pushed_below(6000));
	reader = start_reader(saved, false);
	await(&run, 1);
	produce(&run, 9000);
	finish(&run, &reader, 1);
	assert_int_equal(read_groups(saved, NULL).events, pushed_below(9000) - pushed_below(6000));
	unlink(saved);
}

static void pings(void **state)
{
	struct run run = open_run((const char *[]){address, NULL}, NULL);
	struct wire_ping ping = {.seq = 5, .tsc = 77};
	static uint8_t bytes[1 << 20];
	const struct wire_pong *pong = NULL;
	ssize_t size = 0, n;
	int fd = connect_here();
	uint64_t before = clock_monotonic();

	(void)state;
	steps(&run, 20);
	memcpy(ping.tag, WIRE_PING, WIRE_TAG);
	assert_int_equal(write(fd, &ping, sizeof(ping)), sizeof(ping));
	steps(&run, 20);
	while ((n = recv(fd, bytes + size, sizeof(bytes) - size, MSG_DONTWAIT)) > 0)
		size += n;
	for (ssize_t i = 0; i + (ssize_t)sizeof(*pong) <= size && !pong; i += 8)
		if (!memcmp(bytes + i + 8, WIRE_PONG, WIRE_TAG))
			pong = (void *)(bytes + i);
	assert_non_null(pong);
	assert_int_equal(pong->seq, 5);
	assert_int_equal(pong->asked_tsc, 77);
	assert_true(pong->received_mono >= before && pong->sent_mono >= pong->received_mono);
	assert_true(pong->sent_tsc >= pong->received_tsc);
	run.source->ops->free(run.source);
	close(fd);
}

/* Sends the receiver's line and returns whether the stream follows. */
static bool prove(struct run *run, const char *text)
{
	struct secret s = {.size = strlen(text)};
	char line[SECRET_LINE_MAX] = "", nonce[SECRET_NONCE], own[SECRET_NONCE];
	char proof[SECRET_PROOF], answer[SECRET_LINE_MAX + 8] = "";
	int fd = connect_here();
	bool right;

	memcpy(s.text, text, s.size);
	steps(run, 3);
	assert_true(recv(fd, line, sizeof(line) - 1, MSG_DONTWAIT) > 0);
	assert_int_equal(sscanf(line, SECRET_HELLO "%32[0-9a-f]\n", nonce), 1);
	secret_nonce(own);
	secret_prove(&s, "receiver", nonce, own, proof);
	snprintf(line, sizeof(line), "%s %s\n", own, proof);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	steps(run, 10);
	right = recv(fd, answer, SECRET_PROOF + 8, MSG_DONTWAIT) == SECRET_PROOF + 8 &&
		!memcmp(answer + SECRET_PROOF, "PERFILE2", 8);
	if (right) {
		answer[SECRET_PROOF - 1] = 0;
		assert_true(secret_check(&s, "sender", nonce, own, answer));
	}
	close(fd);
	steps(run, 3);
	return right;
}

static void secrets(void **state)
{
	char file[80];
	int fd, secret;
	struct run run;
	char byte;

	(void)state;
	snprintf(file, sizeof(file), "%s/secret", dir);
	secret = open(file, O_WRONLY | O_CREAT, 0600);
	assert_int_equal(write(secret, "word\n", 5), 5);
	close(secret);
	run = open_run((const char *[]){address, NULL}, file);
	assert_true(prove(&run, "word"));
	push_take_messages(run.push);
	assert_false(prove(&run, "sword"));
	assert_non_null(strstr(push_take_messages(run.push), "it does not know the secret"));
	fd = connect_here(); /* one that says nothing gets nothing but the question */
	produce(&run, 3000);
	steps(&run, 10);
	assert_int_equal(recv(fd, (char[SECRET_LINE_MAX]){0}, SECRET_LINE_MAX, MSG_DONTWAIT),
			 strlen(SECRET_HELLO) + SECRET_NONCE);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	close(fd);
	run.source->ops->free(run.source);
	unlink(file);
}

/* Records that do not compress need two records of their group. */
static void incompressible(void **state)
{
	struct group_pool pool = {0};
	struct group *g = group_new(&pool);
	ZSTD_CCtx *c = ZSTD_createCCtx();
	ZSTD_DCtx *d = ZSTD_createDCtx();
	struct perf_event_header rec;
	static uint8_t out[2 * GROUP_ROOM], packed[2 * GROUP_ROOM];
	size_t size, at = 0, n = 0;
	const uint8_t *bytes;

	(void)state;
	for (int i = 0; i < GROUP_ROOM; i++)
		g->data[i] = random() >> 8;
	g->size = GROUP_ROOM;
	g->skip = offsetof(struct group_front, group);
	g = group_end(g);
	assert_true(group_pack(g, c));
	bytes = group_bytes(g, true, &size);
	assert_true(size > GROUP_ROOM);
	for (at = sizeof(struct wire_group); at < size; at += rec.size) {
		memcpy(&rec, bytes + at, sizeof(rec));
		assert_int_equal(rec.type, COMPRESSED);
		memcpy(packed + n, bytes + at + sizeof(rec), rec.size - sizeof(rec));
		n += rec.size - sizeof(rec);
	}
	assert_int_equal(at, size);
	assert_int_equal(ZSTD_decompressDCtx(d, out, sizeof(out), packed, n), GROUP_ROOM + 8);
	assert_memory_equal(out, g->data, GROUP_ROOM + 8);
	group_free(g);
	group_pool_clear(&pool);
	ZSTD_freeCCtx(c);
	ZSTD_freeDCtx(d);
}

static void full_disk(void **state)
{
	struct run run = open_run((const char *[]){"/dev/full", NULL}, NULL);

	(void)state;
	/* A device: what it does not take is dropped. */
	produce(&run, 30000);
	assert_int_equal(end_run(&run), -ENODATA);
	run.source->ops->free(run.source);
}

static int make_dir(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/out", dir);
	snprintf(address, sizeof(address), "unix:%s", path);
	return 0;
}

static int clean(void **state)
{
	(void)state;
	unlink(path);
	return 0;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(file, clean),
		cmocka_unit_test_teardown(limit, clean),
		cmocka_unit_test_teardown(two_receivers, clean),
		cmocka_unit_test_teardown(slow_receiver, clean),
		cmocka_unit_test_teardown(hung_up, clean),
		cmocka_unit_test_teardown(pings, clean),
		cmocka_unit_test_teardown(secrets, clean),
		cmocka_unit_test(incompressible),
		cmocka_unit_test(full_disk),
	};

	return cmocka_run_group_tests_name("push", tests, make_dir, remove_dir);
}
