/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The session on a made-up source: records from memory on two rings, with a clock that only the
 * test turns, losses, a record format that only the source can decode, counters, and CPUs that come
 * online. It knows only source.h.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "live/count_sums.h"
#include "process/signals.h"
#include "session/session.h"
#include "source.h"

enum {
	CLASS = EVENT_FIRST,
	OWN_CLASS = EVENT_FIRST + 1,
	MAX = 64,
	RINGS = 2,
	MS = 1000000,
	START = 1000 * MS, /* of the source's clock, ns */
};

struct sample {
	struct perf_event_header header;
	uint64_t id;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint32_t raw_size;
	uint32_t value;
};

struct loss {
	struct perf_event_header header;
	uint64_t id, lost;
	uint32_t pid, tid;
	uint64_t time;
	uint32_t cpu, unused;
	uint64_t identifier;
};

struct memory {
	struct source source;
	struct slot slots[MAX]; /* by time */
	int n, next;
	uint64_t clock, holds; /* ns */
	int attr, cpus, asked_cpus;
	bool opened, started, stopped, ended;
	bool *freed;
	uint16_t closed;
	char name[32];
	struct source_target target;
	struct count count;
	int32_t count_id;
};

static struct formats *memory_formats(struct source *src, struct error *err)
{
	(void)src;
	error_set(err, -ENOENT, "memory has no tracepoints");
	return NULL;
}

static uint64_t memory_sample_type(struct source *src, const struct event_request *req)
{
	(void)src;
	return PERF_SAMPLE_RAW | req->sample;
}

static bool memory_has_records(struct source *src, uint32_t kind)
{
	(void)src;
	return kind == 3;
}

static int memory_add_event(struct source *src, const struct event_request *req, struct error *err)
{
	struct memory *m = (struct memory *)src;

	if (req->attr.type == PERF_TYPE_HARDWARE)
		return error_set(err, -EOPNOTSUPP, "memory has no %s", req->name);
	snprintf(m->name, sizeof(m->name), "%s", req->name);
	return req->is_output || req->counted
		       ? 0
		       : decoder_add_class(src->decoder, m->attr, req->class, req->payload);
}

static int memory_open(struct source *src, const struct source_target *target, struct error *err)
{
	struct memory *m = (struct memory *)src;

	assert_false(m->opened);
	m->opened = true;
	m->target = *target;
	return decoder_check(src->decoder, err);
}

static int memory_start(struct source *src, struct error *err)
{
	struct memory *m = (struct memory *)src;

	(void)err;
	assert_true(m->opened);
	m->started = true;
	src->start = START;
	return 0;
}

static int memory_next(struct source *src, struct slot *out, int max, uint64_t until,
		       struct error *err)
{
	struct memory *m = (struct memory *)src;
	int n = 0;

	(void)err;
	assert_true(m->started);
	while (n < max && m->next < m->n && m->slots[m->next].time <= until &&
	       m->slots[m->next].time <= m->clock - m->holds)
		out[n++] = m->slots[m->next++];
	src->horizon = m->clock - m->holds;
	return n || !(m->stopped || m->ended) || m->next < m->n ? n : -ENODATA;
}

static int memory_wait(struct source *src, int64_t timeout)
{
	struct memory *m = (struct memory *)src;

	assert_true(timeout > 0);
	m->clock += timeout;
	return 0;
}

static void memory_stop(struct source *src)
{
	((struct memory *)src)->stopped = true;
	((struct memory *)src)->holds = 0;
}

static void memory_close_class(struct source *src, uint16_t class)
{
	((struct memory *)src)->closed = class;
}

static uint64_t memory_now(struct source *src)
{
	return ((struct memory *)src)->clock;
}

static uint64_t memory_hold(struct source *src)
{
	return ((struct memory *)src)->holds;
}

static void memory_read_counts(struct source *src, struct counts *out)
{
	struct memory *m = (struct memory *)src;

	*out = (struct counts){
		.nr_rows = 1, .nr_events = 1, .ids = &m->count_id, .values = &m->count};
}

/* The kernel has counted two events more than there are records. */
static bool memory_account(struct source *src, uint16_t class, struct source_account *out)
{
	struct memory *m = (struct memory *)src;

	out->fired = m->n + 2;
	out->lost = 1;
	out->counters = RINGS;
	out->is_exact = true;
	return class == CLASS;
}

static int memory_next_cpu(struct source *src)
{
	struct memory *m = (struct memory *)src;

	return m->asked_cpus < m->cpus ? m->asked_cpus++ : -1;
}

/* Its own record format is a number. */
static int memory_decode(struct source *src, const struct slot *slot, struct event *ev)
{
	(void)src;
	if (*(const uint32_t *)slot->rec == 0)
		return -EBADMSG;
	*ev = (struct event){.raw = slot->rec,
			     .raw_size = sizeof(uint32_t),
			     .pid = -1,
			     .tid = -1,
			     .cpu = -1,
			     .class = OWN_CLASS,
			     .period = 1};
	return 1;
}

static int memory_decode_run(struct source *src, const struct slot *slots, int n, uint64_t base,
			     uint64_t from, struct event *ev)
{
	int i;

	for (i = 0; i < n; i++) {
		if (slots[i].flags != 1u << SLOT_OWN_SHIFT || slots[i].time < from ||
		    memory_decode(src, &slots[i], &ev[i]) != 1)
			break;
		ev[i].time = (double)(slots[i].time - base);
		ev[i].ring = slots[i].ring;
	}
	return i;
}

static void memory_free(struct source *src)
{
	struct memory *m = (struct memory *)src;

	*m->freed = true;
	for (int i = 0; i < m->n; i++)
		free((void *)m->slots[i].rec);
	decoder_free(src->decoder);
	free(m);
}

static const struct source_ops memory_ops = {
	.formats = memory_formats,
	.sample_type = memory_sample_type,
	.has_records = memory_has_records,
	.add_event = memory_add_event,
	.open = memory_open,
	.start = memory_start,
	.next = memory_next,
	.wait = memory_wait,
	.stop = memory_stop,
	.close_class = memory_close_class,
	.now = memory_now,
	.hold = memory_hold,
	.read_counts = memory_read_counts,
	.account = memory_account,
	.next_cpu = memory_next_cpu,
	.decode = memory_decode,
	.decode_run = memory_decode_run,
	.free = memory_free,
};

static struct memory *memory_new(bool *freed)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
						      PERF_SAMPLE_RAW,
				       .sample_period = 1,
				       .sample_id_all = 1};
	struct memory *m = calloc(1, sizeof(*m));
	struct error err;

	m->source.ops = &memory_ops;
	m->source.decoder = decoder_new();
	m->source.start = UINT64_MAX;
	m->source.nr_rings = RINGS;
	m->source.info.wall_sec = NAN;
	m->attr = decoder_add_attr(m->source.decoder, &attr, &err);
	assert_true(m->attr >= 0);
	assert_int_equal(decoder_add_id(m->source.decoder, 7, m->attr), 0);
	m->clock = START;
	m->freed = freed;
	*freed = false;
	return m;
}

/* Keeps the slots sorted by time. */
static struct slot *add_slot(struct memory *m, uint64_t time, const void *rec, uint32_t ring)
{
	int at = m->n++;

	assert_true(at < MAX);
	for (; at > m->next && m->slots[at - 1].time > time; at--)
		m->slots[at] = m->slots[at - 1];
	m->slots[at] = (struct slot){.time = time, .rec = rec, .ring = ring};
	return &m->slots[at];
}

static void add_sample(struct memory *m, uint64_t time, uint32_t ring, uint32_t value)
{
	struct sample *s = calloc(1, sizeof(*s));

	*s = (struct sample){
		.header = {.type = PERF_RECORD_SAMPLE, .size = sizeof(*s)},
		.id = 7,
		.pid = 10,
		.tid = 11,
		.time = time,
		.cpu = ring,
		.raw_size = sizeof(s->value),
		.value = value,
	};
	add_slot(m, time, s, ring);
}

static void add_loss(struct memory *m, uint64_t time, uint64_t end, uint32_t ring, uint64_t lost)
{
	struct loss *l = calloc(1, sizeof(*l));

	*l = (struct loss){
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(*l)},
		.id = 7,
		.lost = lost,
		.time = end,
		.cpu = ring,
		.identifier = 7,
	};
	add_slot(m, time, l, ring);
}

static void add_own(struct memory *m, uint64_t time, uint32_t ring, uint32_t value)
{
	uint32_t *number = calloc(1, sizeof(*number));

	*number = value;
	add_slot(m, time, number, ring)->flags = 1u << SLOT_OWN_SHIFT;
}

static struct session *start(struct memory *m)
{
	struct event_request own = {.name = "own", .class = OWN_CLASS, .is_output = 1};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	struct session_target target = {.cpus = "0", .pages = 8, .watermark = 50};
	struct session *s = session_new(&m->source);
	struct error err;

	req.attr.type = own.attr.type = PERF_TYPE_SOFTWARE;
	assert_non_null(s);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	assert_string_equal(m->name, "value");
	assert_int_equal(session_add_event(s, &own, &err), 0);
	assert_false(m->opened);
	if (session_start(s, &target, &err))
		fail_msg("%s", err.text);
	assert_true(m->started);
	assert_string_equal(m->target.cpus, "0");
	return s;
}

/* Drains the session into text, one word per item: "@MS" events with their value, "L" losses, "T"
 * ends of intervals, "E" the end. */
static const char *drain(struct session *s)
{
	static char text[1024];
	struct batch batch = {0};
	struct error err;

	text[0] = 0;
	while (!(batch.flags & BATCH_END)) {
		if (session_next(s, &batch, &err))
			fail_msg("%s", err.text);
		for (int i = 0; i < batch.n; i++) {
			const struct event *ev = &batch.events[i];
			char word[64];

			if (ev->class == EVENT_LOST)
				snprintf(word, sizeof(word), "@%g..%g L%lu/%d ", ev->time / MS,
					 (double)ev->key / MS, (unsigned long)ev->period, ev->cpu);
			else
				snprintf(word, sizeof(word), "@%g %s%u/%u ", ev->time / MS,
					 ev->class == OWN_CLASS ? "own" : "",
					 *(const uint32_t *)ev->raw, ev->ring);
			strcat(text, word);
		}
		if (batch.flags & BATCH_TICK)
			sprintf(text + strlen(text), "T%g ", batch.tick_time / MS);
	}
	strcat(text, "E");
	return text;
}

static void test_events(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session_stats stats;
	struct session_clock clock;
	struct session *s;

	(void)state;
	add_sample(m, START - 1, 0, 99); /* before all of its rings count */
	add_sample(m, START + 3 * MS, 1, 3);
	add_sample(m, START + 1 * MS, 0, 1);
	add_own(m, START + 2 * MS, 1, 2);
	add_loss(m, START + 4 * MS, START + 6 * MS, 1, 5);
	add_own(m, START + 5 * MS, 0, 0); /* damaged */
	add_sample(m, START + 7 * MS, 0, 7);
	m->ended = true;
	s = start(m);
	assert_string_equal(drain(s), "@1 1/0 @2 own2/1 @3 3/1 @4..6 L5/1 @7 7/0 E");
	session_read_stats(s, &stats);
	assert_int_equal(stats.events, 4);
	assert_int_equal(stats.lost, 5);
	assert_int_equal(stats.bad, 1);
	assert_true(stats.to == 7.0 * MS);
	session_read_clock(s, &clock);
	assert_true(clock.base == START && isnan(clock.wall_sec));
	session_free(s);
	assert_true(freed);
}

/* A run that ends early: its samples are delivered, dropped or left in the rings. */
static void test_account(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session_account account;
	struct batch batch = {0};
	struct session *s;
	struct error err;

	(void)state;
	add_sample(m, START - 1, 0, 99);
	for (int i = 1; i <= 5; i++)
		add_sample(m, START + i * MS, i % RINGS, i);
	add_own(m, START + 6 * MS, 0, 6);
	m->clock = START + 2 * MS;
	s = start(m);
	for (int n = 0; n < 2; n += batch.n)
		assert_int_equal(session_next(s, &batch, &err), 0);
	assert_false(session_count_rest(s)); /* events happen */
	m->clock = START + 10 * MS;
	session_stop(s);
	assert_true(session_count_rest(s));
	session_read_account(s, CLASS, &account);
	assert_int_equal(account.read, 2);
	assert_int_equal(account.early, 1);
	assert_int_equal(account.rest, 3);
	assert_true(account.has_kernel && account.is_exact);
	assert_int_equal(account.fired, 9);
	assert_int_equal(account.lost, 1);
	assert_int_equal(account.counters, RINGS);
	session_read_account(s, OWN_CLASS, &account);
	assert_false(account.has_kernel);
	assert_int_equal(account.read, 0);
	session_free(s);
	assert_true(freed);
}

/* A ring of a thread loses the events of that thread. */
static void test_thread_rings(void **state)
{
	static const int32_t tids[RINGS] = {100, 200};
	bool freed;
	struct memory *m = memory_new(&freed);
	struct batch batch;
	struct session *s;
	struct error err;

	(void)state;
	m->source.ring_tid = tids;
	add_loss(m, START + 1, START + 2, 1, 5);
	m->ended = true;
	m->clock = START + MS;
	s = start(m);
	assert_int_equal(session_loss_is_local(s), 1);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(batch.n, 1);
	assert_true(batch.flags & BATCH_LOST);
	assert_int_equal(batch.events[0].tid, 200);
	assert_int_equal(batch.events[0].cpu, -1);
	session_free(s);
}

/* Intervals end by the source's clock, once all events held back until then have arrived. */
static void test_intervals(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s;
	struct error err;
	uint64_t begun = 0;
	struct session_target target = {.pages = 8, .begun = &begun};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};

	(void)state;
	m->holds = 4 * MS;
	req.attr.type = PERF_TYPE_SOFTWARE;
	add_sample(m, START + 9 * MS, 0, 9);
	add_sample(m, START + 10 * MS, 1, 10);
	add_sample(m, START + 31 * MS, 0, 31);
	s = session_new(&m->source);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	session_set_interval(s, 10 * MS);
	session_set_duration(s, 35 * MS);
	assert_int_equal(session_start(s, &target, &err), 0);
	assert_int_equal(begun, START);
	assert_string_equal(drain(s), "@9 9/0 T10 @10 10/1 T20 T30 @31 31/0 E");
	assert_true(m->stopped);
	session_free(s);
}

/* A recording does not wait for empty intervals, and has no clock. */
static void test_recorded(void **state)
{
	static const struct recorded_event events[] = {
		{.name = "value", .type = PERF_TYPE_SOFTWARE}};
	static const uint16_t sharers[8192] = {1, 1, 3};
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s;
	struct session_target target = {0};
	struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
	struct error err;
	uint32_t n;

	(void)state;
	req.attr.type = PERF_TYPE_SOFTWARE;
	m->source.info = (struct source_info){.is_recorded = true,
					      .arch = "vax",
					      .wall_sec = 100,
					      .events = events,
					      .nr_events = 1,
					      .first_sharers = {NULL, sharers}};
	m->clock = UINT64_MAX;
	add_sample(m, START + 1 * MS, 0, 1);
	add_sample(m, START + 95 * MS, 0, 95);
	m->ended = true;
	error_set(&m->source.warning, 0, "it is damaged");
	s = session_new(&m->source);
	assert_true(session_is_recorded(s));
	assert_string_equal(session_recorded_events(s, 0, &n)->name, "value");
	assert_int_equal(n, 1);
	assert_string_equal(session_arch(s, 0), "vax");
	assert_string_equal(session_warning(s), "it is damaged");
	assert_int_equal(session_cache_sharer(s, 2, 1), 0);
	assert_int_equal(session_cache_sharer(s, 2, 2), 2);
	assert_int_equal(session_cache_sharer(s, 2, 3), -1);
	assert_int_equal(session_cache_sharer(s, 1, 0), -1);
	assert_int_equal(session_cache_sharer(s, 0, 0), -1);
	assert_int_equal(session_cache_sharer(s, 1 << 30, 0), -1);
	assert_int_equal(session_cache_sharer(s, 2, 8192), -1);
	assert_int_equal(session_cache_sharer(s, 2, -1), -1);
	assert_int_equal(session_add_event(s, &req, &err), 0);
	session_set_interval(s, 10 * MS);
	assert_int_equal(session_start(s, &target, &err), 0);
	assert_string_equal(drain(s), "@1 1/0 T10 @95 95/0 E");
	assert_int_equal(session_take_cpu(s), -1);
	session_free(s);
}

static void test_counts_cpus_notices(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = start(m);
	struct batch batch;
	struct counts counts;
	uint32_t urgent;
	struct error err;

	(void)state;
	m->count.value = 42;
	m->count_id = 1;
	session_read_counts(s, &counts);
	assert_int_equal(counts.ids[0], 1);
	assert_true(counts.values[0].value == 42);
	m->cpus = 2;
	assert_int_equal(session_take_cpu(s), 0);
	assert_int_equal(session_take_cpu(s), 1);
	assert_int_equal(session_take_cpu(s), -1);
	error_set(&m->source.notice, 0, "CPU #1 went offline");
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_true(batch.flags & BATCH_NOTICE);
	assert_string_equal(session_take_notice(s, &urgent), "CPU #1 went offline");
	assert_string_equal(session_take_notice(s, &urgent), "");
	session_close_class(s, CLASS);
	assert_int_equal(m->closed, CLASS);
	session_stop(s);
	assert_string_equal(drain(s), "E");
	session_free(s);
}

/* Of several limits of a wait, the shortest counts, and once. */
static void test_wake_after(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = start(m);
	struct batch batch;
	struct error err;
	uint64_t before;

	(void)state;
	session_wake_after(s, 5 * MS);
	session_wake_after(s, 2 * MS);
	session_wake_after(s, 9 * MS);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(m->clock, START + 2 * MS);
	before = m->clock;
	session_wake_after(s, 3 * MS);
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_int_equal(m->clock, before + 3 * MS);
	before = m->clock;
	assert_int_equal(session_next(s, &batch, &err), 0);
	assert_true(m->clock > before + 9 * MS);
	session_free(s);
}

static void test_refusals(void **state)
{
	bool freed;
	struct memory *m = memory_new(&freed);
	struct session *s = session_new(&m->source);
	struct event_request req = {.name = "cycles", .class = CLASS};
	struct error err = {0};

	(void)state;
	assert_int_equal(session_add_event(s, &req, &err), -EOPNOTSUPP);
	assert_string_equal(err.text, "memory has no cycles");
	assert_null(session_formats(s, 0, &err));
	assert_string_equal(err.text, "memory has no tracepoints");
	assert_true(session_has_records(s, 0, 3));
	assert_false(session_has_records(s, 0, 2));
	req.sample = PERF_SAMPLE_ADDR;
	assert_int_equal(session_sample_type(s, &req), PERF_SAMPLE_RAW | PERF_SAMPLE_ADDR);
	session_free(s);
	assert_true(freed);
}

/* A machine for which there are no resources leaves the session as it is. */
static void test_machine_refused(void **state)
{
	struct rlimit limit, none;
	bool freed, remote_freed;
	struct memory *m = memory_new(&freed), *remote = memory_new(&remote_freed);
	struct session *s = start(m);
	struct error err = {0};

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(session_add_machine(s, &remote->source, &err), -ENOMEM);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(remote_freed);
	assert_false(freed);
	assert_int_equal(session_machines(s), 1);
	session_free(s);
	assert_true(freed);
}

/* A second after the request to end, nothing more is read from rings, but from those that are
 * overwritten, of which the rest is the result. The request is never withdrawn, so no test may
 * follow. */
static void test_leaves_rest(void **state)
{
	(void)state;
	signals_install();
	raise(SIGINT);
	while (!signals_overdue())
		usleep(10000);
	for (int overwrites = 0; overwrites < 2; overwrites++) {
		struct session_target target = {.overwrite = overwrites};
		struct event_request req = {.name = "value", .class = CLASS, .payload = 4};
		bool freed;
		struct memory *m = memory_new(&freed);
		struct session *s = session_new(&m->source);
		struct session_account account;
		struct session_stats stats;
		struct error err;

		req.attr.type = PERF_TYPE_SOFTWARE;
		for (int i = 1; i <= 2; i++)
			add_sample(m, START + i * MS, 0, i);
		m->clock = START + 10 * MS;
		assert_int_equal(session_add_event(s, &req, &err), 0);
		assert_int_equal(session_start(s, &target, &err), 0);
		assert_string_equal(drain(s), overwrites ? "@1 1/0 @2 2/0 E" : "E");
		session_read_stats(s, &stats);
		assert_int_equal(stats.leaves_rest, !overwrites);
		assert_true(session_count_rest(s));
		session_read_account(s, CLASS, &account);
		assert_int_equal(account.rest, overwrites ? 0 : 2);
		session_free(s);
		assert_true(freed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_events),		cmocka_unit_test(test_account),
		cmocka_unit_test(test_thread_rings),	cmocka_unit_test(test_intervals),
		cmocka_unit_test(test_recorded),	cmocka_unit_test(test_counts_cpus_notices),
		cmocka_unit_test(test_wake_after),	cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_machine_refused), cmocka_unit_test(test_leaves_rest),
	};

	return cmocka_run_group_tests_name("session", tests, NULL, NULL);
}
