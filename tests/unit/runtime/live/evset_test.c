/* SPDX-License-Identifier: GPL-2.0-only */
/* Events of this program on the real kernel: which rings and descriptors exist, when samples
 * arrive, and what is lost. */
#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>
#include "decode/decoder.h"
#include "error.h"
#include "live/evlist.h"
#include "live/evset.h"
#include "tests/unit/runtime/live/faults.h"

struct opened {
	struct decoder *decoder;
	struct evlist *list;
	struct evset *set;
	int code;
	struct error err;
};

static struct opened open_for(const struct event_request *requests, uint32_t n,
			      const struct source_target *target, int cpu)
{
	struct opened o = {.decoder = decoder_new()};

	o.list = evlist_new(requests, n, target, o.decoder, &o.err);
	if (!o.list)
		fail_msg("%s", o.err.text);
	o.set = evset_open(o.list, o.decoder, cpu, &o.code, &o.err);
	if (o.set)
		assert_int_equal(decoder_check(o.decoder, &o.err), 0);
	return o;
}

static void close_all(struct opened *o)
{
	evset_close(o->set);
	evlist_free(o->list);
	decoder_free(o->decoder);
}

static void must_open(const struct opened *o)
{
	if (!o->set)
		fail_msg("%s", o->err.text);
}

/* Bytes that the kernel has written to a ring. */
static uint64_t head(const struct opened *o, uint32_t ring)
{
	struct perf_event_mmap_page *page = evset_ring(o->set, ring)->base;

	return __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

/* Samples in a ring that has not been read and has not wrapped: those of a class caused by
 * cause_faults(); 0: all. */
static int samples(const struct opened *o, uint32_t ring, uint16_t class)
{
	struct perf_event_mmap_page *page = evset_ring(o->set, ring)->base;
	const uint8_t *data = (const uint8_t *)page + page->data_offset;
	struct event ev;
	int n = 0;

	for (uint64_t at = 0, end = head(o, ring); at < end;) {
		const struct perf_event_header *rec = (const void *)(data + at);

		assert_true(at + rec->size <= page->data_size);
		at += rec->size;
		if (rec->type != PERF_RECORD_SAMPLE)
			continue;
		assert_int_equal(decoder_decode(o->decoder, rec, &ev, 1), 1);
		n += !class || (ev.class == class && was_caused(o->decoder, &ev));
	}
	return n;
}

static int nr_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

static void a_cpu_has_a_ring_for_events_and_one_for_tasks(void **state)
{
	struct source_target target = {.pages = 4, .watermark = 50, .cpus = "0"};
	const struct evset_ring *events, *tasks;
	struct opened o;

	(void)state;
	needs_perf(0);
	o = open_for(&faults, 1, &target, 0);
	must_open(&o);
	assert_int_equal(evset_nr_rings(o.set), 2);
	events = evset_ring(o.set, 0);
	tasks = evset_ring(o.set, 1);
	assert_true(events->has_events && !tasks->has_events);
	assert_int_equal(events->pages, 4);
	assert_int_equal(tasks->pages, 16);
	assert_int_equal(((struct perf_event_mmap_page *)events->base)->data_size, 4 * PAGE);
	assert_int_equal(events->tid, -1);
	assert_true(evset_has_events(o.set));
	assert_true(evset_ring_fd(o.set, 0, 0) >= 0);
	assert_int_equal(evset_ring_fd(o.set, 0, 1), -1);
	assert_int_equal(evset_event_fd(o.set, 0, 0), evset_ring_fd(o.set, 0, 0));
	close_all(&o);

	/* Another CPU only reports tasks. */
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	o = open_for(&faults, 1, &target, 1);
	must_open(&o);
	assert_int_equal(evset_nr_rings(o.set), 1);
	assert_false(evset_has_events(o.set));
	close_all(&o);
}

static void files_are_opened_as_planned_and_closed(void **state)
{
	struct event_request list[] = {faults, faults, faults};
	int32_t self = gettid();
	struct source_target target = {.pages = 4, .watermark = 50, .tids = &self, .nr_tids = 1};
	int before = nr_files();
	struct opened o;

	(void)state;
	needs_perf(-1);
	list[1].class = FAULTS + 1;
	list[2].class = FAULTS + 2;
	o = open_for(list, 3, &target, -1);
	must_open(&o);
	assert_int_equal(nr_files() - before, evlist_nr_files(o.list));
	assert_int_equal(evset_nr_rings(o.set), 1);
	close_all(&o);
	assert_int_equal(nr_files(), before);
}

/* A thread that ends on request. */
struct thread {
	pthread_t thread;
	int32_t tid;
	int pipe[2];
};

static void *live_on(void *arg)
{
	struct thread *t = arg;
	char c;

	__atomic_store_n(&t->tid, gettid(), __ATOMIC_RELEASE);
	while (read(t->pipe[0], &c, 1) < 0)
		;
	return NULL;
}

static void thread_start(struct thread *t)
{
	t->tid = 0;
	assert_int_equal(pipe(t->pipe), 0);
	assert_int_equal(pthread_create(&t->thread, NULL, live_on, t), 0);
	while (!__atomic_load_n(&t->tid, __ATOMIC_ACQUIRE))
		usleep(100);
}

/* The kernel releases a thread a little later than pthread_join(). */
static void thread_end(struct thread *t)
{
	char path[64];

	close(t->pipe[1]);
	pthread_join(t->thread, NULL);
	close(t->pipe[0]);
	snprintf(path, sizeof(path), "/proc/self/task/%d", t->tid);
	while (!access(path, F_OK))
		usleep(100);
}

static void ended_threads_are_left_out(void **state)
{
	struct thread a, b;
	int32_t tids[2];
	struct source_target target = {.pages = 4, .watermark = 50, .tids = tids, .nr_tids = 2};
	struct opened o;

	(void)state;
	needs_perf(-1);
	thread_start(&a);
	thread_start(&b);
	tids[0] = a.tid;
	tids[1] = b.tid;
	o = open_for(&faults, 1, &target, -1);
	must_open(&o);
	assert_int_equal(evset_nr_rings(o.set), 2);
	assert_int_equal(evset_ring(o.set, 0)->tid, a.tid);
	assert_int_equal(evset_ring(o.set, 1)->tid, b.tid);
	assert_int_not_equal(evset_ring_fd(o.set, 0, 0), evset_ring_fd(o.set, 1, 0));
	close_all(&o);

	thread_end(&a);
	o = open_for(&faults, 1, &target, -1);
	must_open(&o);
	assert_int_equal(evset_nr_rings(o.set), 1);
	assert_int_equal(evset_ring(o.set, 0)->tid, b.tid);
	close_all(&o);

	thread_end(&b);
	o = open_for(&faults, 1, &target, -1);
	assert_null(o.set);
	assert_int_equal(o.code, -ESRCH);
	assert_string_equal(o.err.text, "all target threads have exited");
	close_all(&o);
}

static void samples_arrive_while_it_is_enabled(void **state)
{
	int32_t self = gettid();
	struct source_target target = {.pages = 64, .watermark = 50, .tids = &self, .nr_tids = 1};
	struct opened o;

	(void)state;
	needs_perf(-1);
	o = open_for(&faults, 1, &target, -1);
	must_open(&o);
	cause_faults(10);
	assert_int_equal(samples(&o, 0, FAULTS), 0);
	assert_int_equal(evset_enable(o.set, &o.err), 0);
	cause_faults(100);
	evset_disable(o.set);
	assert_int_equal(samples(&o, 0, FAULTS), 100);
	cause_faults(10);
	assert_int_equal(samples(&o, 0, FAULTS), 100);
	assert_int_equal(evset_lost(o.set), 0);
	close_all(&o);
}

static void one_class_is_stopped(void **state)
{
	struct event_request list[] = {faults, faults};
	int32_t self = gettid();
	struct source_target target = {.pages = 64, .watermark = 50, .tids = &self, .nr_tids = 1};
	struct opened o;

	(void)state;
	needs_perf(-1);
	/* Each fault is both. (If two events are equal, the kernel gives both samples the id of
	 * one.) */
	list[1].attr.config = PERF_COUNT_SW_PAGE_FAULTS_MIN;
	list[1].class = FAULTS + 1;
	o = open_for(list, 2, &target, -1);
	must_open(&o);
	assert_int_equal(evset_enable(o.set, &o.err), 0);
	cause_faults(20);
	evset_disable_class(o.set, FAULTS);
	cause_faults(30);
	assert_int_equal(samples(&o, 0, FAULTS), 20);
	assert_int_equal(samples(&o, 0, FAULTS + 1), 50);
	close_all(&o);
}

/* The kernel counts all faults, and all are in the ring or lost. */
static void losses_of_a_small_ring_are_counted(void **state)
{
	int32_t self = gettid();
	struct source_target target = {.pages = 1, .watermark = 50, .tids = &self, .nr_tids = 1};
	uint64_t value[3], lost;
	struct opened o;

	(void)state;
	needs_perf(-1);
	o = open_for(&faults, 1, &target, -1);
	must_open(&o);
	if (!o.list->has_lost) {
		close_all(&o);
		puts("# this kernel does not count what it loses (before 6.0)");
		skip();
	}
	assert_int_equal(evset_enable(o.set, &o.err), 0);
	cause_faults(1000);
	evset_disable(o.set);
	lost = evset_lost(o.set);
	assert_true(lost > 500);
	assert_int_equal(read(evset_event_fd(o.set, 0, 0), value, sizeof(value)), sizeof(value));
	assert_int_equal(samples(&o, 0, 0) + lost, value[0]);
	close_all(&o);
}

static void an_overwritten_ring_rests_while_paused(void **state)
{
	int32_t self = gettid();
	struct source_target target = {
		.pages = 1, .watermark = 50, .tids = &self, .nr_tids = 1, .overwrite = true};
	struct opened o;
	uint64_t end;
	uint32_t ring = 0;

	(void)state;
	needs_perf(-1);
	o = open_for(&faults, 1, &target, -1);
	must_open(&o);
	while (ring < evset_nr_rings(o.set) && !evset_ring(o.set, ring)->is_backward)
		ring++;
	assert_true(ring < evset_nr_rings(o.set));
	assert_int_equal(evset_enable(o.set, &o.err), 0);
	cause_faults(1000);
	end = head(&o, ring);
	assert_true(0 - end > PAGE); /* it goes down, around the ring and on */
	evset_pause(o.set, true);
	end = head(&o, ring);
	cause_faults(100);
	assert_int_equal(head(&o, ring), end);
	evset_pause(o.set, false);
	cause_faults(100);
	assert_true(head(&o, ring) < end);
	close_all(&o);
}

static void a_filter_that_the_kernel_rejects(void **state)
{
	struct event_request list[] = {faults};
	int32_t self = gettid();
	struct source_target target = {.pages = 4, .watermark = 50, .tids = &self, .nr_tids = 1};
	struct opened o;

	(void)state;
	needs_perf(-1);
	list[0].filter = "nonsense == 1";
	o = open_for(list, 1, &target, -1);
	assert_null(o.set);
	assert_true(o.code < 0);
	assert_non_null(strstr(o.err.text, "rejects the filter 'nonsense == 1' of page-faults: "));
	close_all(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cpu_has_a_ring_for_events_and_one_for_tasks),
		cmocka_unit_test(files_are_opened_as_planned_and_closed),
		cmocka_unit_test(ended_threads_are_left_out),
		cmocka_unit_test(samples_arrive_while_it_is_enabled),
		cmocka_unit_test(one_class_is_stopped),
		cmocka_unit_test(losses_of_a_small_ring_are_counted),
		cmocka_unit_test(an_overwritten_ring_rests_while_paused),
		cmocka_unit_test(a_filter_that_the_kernel_rejects),
	};

	return cmocka_run_group_tests_name("evset", tests, map_pages, NULL);
}
