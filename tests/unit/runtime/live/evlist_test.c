/* SPDX-License-Identifier: GPL-2.0-only */
/* The plan of what is opened: on which CPUs, with whose rings, as which samples, in which groups.
 * Nothing is opened, so no permission is needed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include "decode/decoder.h"
#include "error.h"
#include "live/evlist.h"
#include "stacks/unwind.h"
#include "stacks/stacks.h"

enum { MANY = 8 };

static const int32_t threads[] = {1, 2, 3};
static struct error err;
static struct decoder *decoder;

static int set_up(void **state)
{
	(void)state;
	err = (struct error){0};
	decoder = decoder_new();
	return decoder ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	decoder_free(decoder);
	return 0;
}

static struct event_request software(const char *name, uint16_t class)
{
	return (struct event_request){
		.name = name,
		.attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_PAGE_FAULTS},
		.perf_event = 1,
		.class = class};
}

static struct event_request tracepoint(const char *name)
{
	return (struct event_request){.name = name,
				      .attr = {.type = PERF_TYPE_TRACEPOINT, .config = 300},
				      .class = EVENT_FIRST};
}

static struct source_target all_cpus(void)
{
	return (struct source_target){.pages = 64, .watermark = 50};
}

static struct source_target some_threads(void)
{
	return (struct source_target){.pages = 64, .watermark = 50, .tids = threads, .nr_tids = 3};
}

static struct evlist *plan(const struct event_request *requests, uint32_t n,
			   const struct source_target *target)
{
	struct evlist *p = evlist_new(requests, n, target, decoder, &err);

	if (!p)
		fail_msg("%s", err.text);
	return p;
}

static void refuse(const struct event_request *request, const struct source_target *target,
		   const char *begin, bool unavailable)
{
	err = (struct error){0};
	assert_null(evlist_new(request, 1, target, decoder, &err));
	if (strncmp(err.text, begin, strlen(begin)) != 0)
		fail_msg("'%s' does not begin with '%s'", err.text, begin);
	assert_int_equal(err.unavailable, unavailable);
}

static void cpus_of_the_target_and_of_an_event(void **state)
{
	struct event_request list[] = {software("everywhere", 8), software("on 0", 9)};
	struct source_target target = all_cpus();
	struct evlist *p;

	(void)state;
	list[1].cpus = "0";
	p = plan(list, 2, &target);
	assert_int_equal(p->nr_evsels, 3);
	assert_true(evlist_is_for(p, &p->evsels[0], 0));
	assert_true(evlist_is_for(p, &p->evsels[0], 4000)); /* it may come online */
	assert_true(evlist_is_for(p, &p->evsels[1], 0));
	assert_false(evlist_is_for(p, &p->evsels[1], 4000));
	evlist_free(p);

	target.cpus = "0";
	p = plan(list, 1, &target);
	assert_true(evlist_is_for(p, &p->evsels[0], 0));
	assert_false(evlist_is_for(p, &p->evsels[0], 4000));
	assert_true(evlist_is_for(p, &p->evsels[1], 4000)); /* names are needed for all tasks */
	evlist_free(p);
}

static void cpus_that_are_not_there(void **state)
{
	struct event_request request = software("page-faults", 8);
	struct source_target target = all_cpus();

	(void)state;
	target.cpus = "0,4000";
	refuse(&request, &target, "CPU 4000 is not online (online: 0", true);
	target.cpus = "x";
	refuse(&request, &target, "", false);
	target.cpus = NULL;
	request.cpus = "4000-4001";
	refuse(&request, &target, "page-faults: CPU 4000-4001 is not online (online: ", true);
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		return;
	target.cpus = "0";
	request.cpus = "1";
	refuse(&request, &target, "page-faults: cpus=1 contains none of the CPUs 0", false);
}

/* Rings belong to threads only if nothing needs those of CPUs. */
static void whose_rings(void **state)
{
	struct event_request list[] = {software("a", 8), software("b", 9)};
	struct source_target target = some_threads();
	struct evlist *p = plan(list, 2, &target);

	(void)state;
	assert_true(p->per_thread);
	assert_int_equal(p->evsels[0].group, GROUP_EVENTS);
	assert_int_equal(p->evsels[2].group, GROUP_EVENTS); /* these threads report themselves */
	assert_ptr_equal(p->targets[GROUP_EVENTS].list, threads);
	assert_int_equal(evlist_nr_files(p), 3 * 3);
	evlist_free(p);

	target.inherit = true;
	p = plan(list, 2, &target);
	assert_false(p->per_thread);
	assert_true(p->evsels[0].attr.inherit);
	evlist_free(p);

	target = some_threads();
	target.cpus = "0";
	p = plan(list, 2, &target);
	assert_false(p->per_thread);
	evlist_free(p);

	target = some_threads();
	list[1].cpus = "0";
	p = plan(list, 2, &target);
	assert_false(p->per_thread);
	evlist_free(p);

	list[1].cpus = NULL;
	list[1].everywhere = 1;
	target.inherit = target.enable_on_exec = true;
	p = plan(list, 2, &target);
	assert_false(p->per_thread);
	assert_int_equal(p->evsels[0].group, GROUP_EVENTS);
	assert_int_equal(p->evsels[1].group, GROUP_EVERYWHERE);
	assert_int_equal(p->evsels[2].group, GROUP_TASKS);
	assert_int_equal(p->targets[GROUP_EVERYWHERE].n, 1);
	assert_int_equal(p->targets[GROUP_EVERYWHERE].list[0], -1);
	/* Events of all threads do not belong to the program that is started. */
	assert_true(p->evsels[0].attr.enable_on_exec && p->evsels[0].attr.inherit);
	assert_false(p->evsels[1].attr.enable_on_exec || p->evsels[1].attr.inherit);
	evlist_free(p);
}

/* Each case: the request, and bits that its samples have or lack. */
static void what_samples_hold(void **state)
{
	struct event_request plain = tracepoint("sched:sched_switch"), dump, stack, other;
	struct source_target target = all_cpus();
	struct perf_event_attr *attr;
	struct evlist *p;

	(void)state;
	p = plan(&plain, 1, &target);
	attr = &p->evsels[0].attr;
	assert_true(attr->sample_type & PERF_SAMPLE_RAW);
	assert_false(attr->sample_type & (PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN));
	assert_int_equal(attr->sample_period, 1);
	assert_true(attr->disabled && attr->sample_id_all && attr->watermark);
	assert_int_equal(attr->wakeup_watermark, 64 * sysconf(_SC_PAGESIZE) / 2);
	assert_false(p->evsels[1].attr.mmap);
	assert_true(p->evsels[1].attr.comm && p->evsels[1].attr.task);
	evlist_free(p);

	/* It counts nanoseconds: without the period there would be one sample per nanosecond. */
	other = tracepoint("sched:sched_stat_runtime");
	p = plan(&other, 1, &target);
	assert_true(p->evsels[0].attr.sample_type & PERF_SAMPLE_PERIOD);
	evlist_free(p);

	stack = plain;
	stack.callchain = STACK_KERNEL;
	stack.attr.wakeup_events = 3;
	p = plan(&stack, 1, &target);
	attr = &p->evsels[0].attr;
	assert_true(attr->sample_type & PERF_SAMPLE_CALLCHAIN);
	assert_true(attr->exclude_callchain_user && !attr->exclude_callchain_kernel);
	assert_false(attr->watermark);
	assert_int_equal(attr->wakeup_events, 3);
	assert_false(p->evsels[1].attr.mmap);
	evlist_free(p);
	target.mappings = true;
	p = plan(&stack, 1, &target);
	assert_true(p->evsels[1].attr.mmap && p->evsels[1].attr.mmap2);
	evlist_free(p);
	target.mappings = false;

	stack.attr.exclude_callchain_user = 1; /* some events have no user stacks */
	stack.callchain = STACK_KERNEL | STACK_USER;
	p = plan(&stack, 1, &target);
	assert_true(p->evsels[0].attr.exclude_callchain_user);
	evlist_free(p);

	dump = plain;
	dump.callchain = STACK_KERNEL | STACK_USER;
	dump.attr.sample_stack_user = 8192;
	target.overwrite = true;
	p = plan(&dump, 1, &target);
	attr = &p->evsels[0].attr;
	assert_true(attr->sample_type & PERF_SAMPLE_STACK_USER);
	assert_true(attr->sample_regs_user == unwind_registers());
	assert_false(attr->exclude_callchain_user || attr->exclude_callchain_kernel);
	assert_true(attr->write_backward && !p->evsels[1].attr.write_backward);
	evlist_free(p);

	/* With a frequency each sample has its own period. */
	other = software("cpu-clock", 8);
	other.attr.freq = 1;
	other.attr.sample_freq = 99;
	assert_true(evlist_sample_type(&other) & PERF_SAMPLE_PERIOD);
	other.attr.freq = 0;
	other.attr.sample_period = 1000;
	assert_false(evlist_sample_type(&other) & PERF_SAMPLE_PERIOD);
}

static void counted_events_have_leaders(void **state)
{
	static const uint16_t groups[] = {5, 7, 5, 7, 9};
	static const uint32_t leaders[] = {0, 1, 0, 1, 4};
	struct source_target target = some_threads();
	struct event_request list[MANY];
	struct evlist *p;

	(void)state;
	for (int i = 0; i < 5; i++) {
		list[i] = software("counted", EVENT_FIRST + i);
		list[i].counted = 1;
		list[i].group = groups[i];
		list[i].attr.sample_period = 1000;
	}
	list[5] = software("sampler", EVENT_FIRST + 5);
	list[5].reads = READS_COUNTED;
	p = plan(list, 6, &target);
	assert_int_equal(p->nr_counted, 5);
	assert_int_equal(p->nr_evsels, 2);
	assert_int_equal(p->sampler, 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(p->counted[i].leader, leaders[i]);
		assert_int_equal(p->counted[i].attr.sample_period, 0);
	}
	assert_true(p->counts_threads);
	assert_int_equal(evlist_nr_files(p), 3 * (2 + 5));
	evlist_free(p);

	list[3].cpus = "0"; /* then all are counted on CPUs, to be read at the same time */
	p = plan(list, 6, &target);
	assert_false(p->counts_threads);
	evlist_free(p);
}

/* What samples stand for, so that they can be compared with the kernel's counter. */
static void what_counters_say_about_samples(void **state)
{
	struct source_target all = all_cpus(), some = some_threads();
	struct event_request faults = software("page-faults", 8), clock = faults, cycles = faults,
			     waits = tracepoint("sched:sched_stat_wait"),
			     wakeup = tracepoint("sched:sched_wakeup");
	struct evlist *p = plan(&faults, 1, &all), *q = plan(&faults, 1, &some);
	bool knows_lost = p->has_lost;

	(void)state;
	assert_int_equal(evlist_per_sample(&faults), 1);
	assert_int_equal(evlist_is_exact(p, &faults), knows_lost);
	assert_int_equal(evlist_is_exact(q, &faults), knows_lost);
	faults.attr.sample_period = 7;
	assert_int_equal(evlist_per_sample(&faults), 7);
	assert_int_equal(evlist_is_exact(q, &faults), knows_lost);
	q->target.inherit = true; /* each child begins a period */
	assert_false(evlist_is_exact(q, &faults));
	faults.attr.freq = 1;
	assert_int_equal(evlist_per_sample(&faults), 1);
	assert_false(evlist_is_exact(p, &faults));
	clock.attr.config = PERF_COUNT_SW_CPU_CLOCK;
	clock.attr.sample_period = 1000000;
	assert_int_equal(evlist_per_sample(&clock), 1);
	assert_false(evlist_is_exact(p, &clock));
	cycles.attr = (struct perf_event_attr){.type = PERF_TYPE_HARDWARE, .sample_period = 1000};
	assert_int_equal(evlist_per_sample(&cycles), 1);
	assert_false(evlist_is_exact(p, &cycles));
	cycles.attr.sample_period = 1; /* maybe a branch trace */
	assert_int_equal(evlist_per_sample(&cycles), 0);
	assert_int_equal(evlist_per_sample(&waits), 0); /* it counts ns */
	assert_int_equal(evlist_per_sample(&wakeup), 1);
	assert_int_equal(evlist_is_exact(p, &wakeup), knows_lost);
	assert_false(evlist_is_exact(q, &wakeup)); /* it also counts for who is woken up */
	evlist_free(q);
	evlist_free(p);
}

/* It depends on what else this user may do. */
static const char *why_not_permitted(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .disabled = 1};
	int fd = evlist_open_event(&attr, -1, 0, -1, 0);

	if (fd < 0)
		return "no permission to open cycles: run as root or with CAP_PERFMON";
	close(fd);
	return "the kernel allows nobody to sample cycles";
}

static void why_an_event_is_refused(void **state)
{
	const struct {
		int code;
		const char *says;
		int unavailable;
	} list[] = {
		{-EPERM, why_not_permitted(), 1},
		{-EACCES, why_not_permitted(), 1},
		{-ENOENT, "this kernel or machine has no cycles event", 1},
		{-EOPNOTSUPP, "this kernel or machine has no cycles event", 1},
		{-EMFILE, "6 file descriptors needed, but only ", 0},
		{-ENOSPC, "no free hardware breakpoint for cycles", 0},
		{-EINVAL, "cannot open cycles: Invalid argument", 0},
	};
	struct event_request request = software("cycles", 8);
	struct source_target target = some_threads();
	struct evlist *p = plan(&request, 1, &target);

	(void)state;
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		err = (struct error){0};
		assert_int_equal(evlist_open_error(p, &request, list[i].code, &err), list[i].code);
		if (strncmp(err.text, list[i].says, strlen(list[i].says)) != 0)
			fail_msg("'%s' does not begin with '%s'", err.text, list[i].says);
		assert_int_equal(err.unavailable, list[i].unavailable);
	}
	evlist_free(p);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(cpus_of_the_target_and_of_an_event),
		TEST(cpus_that_are_not_there),
		TEST(whose_rings),
		TEST(what_samples_hold),
		TEST(counted_events_have_leaders),
		TEST(what_counters_say_about_samples),
		TEST(why_an_event_is_refused),
	};

	return cmocka_run_group_tests_name("evlist", tests, NULL, NULL);
}
