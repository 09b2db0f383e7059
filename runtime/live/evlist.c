/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/evlist.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include "os/cgroups.h"
#include "decode/decoder.h"
#include "error.h"
#include "source.h"
#include "decode/records.h"
#include "decode/sample.h"
#include "stacks/stacks.h"
#include "stacks/unwind.h"

enum {
	SAMPLE_TYPE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU
};

static const int32_t anything = -1;

int evlist_open_event(const struct perf_event_attr *attr, int target, int cpu, int group,
		      unsigned long flags)
{
	int fd = syscall(SYS_perf_event_open, attr, target, cpu, group,
			 flags | PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

int evlist_open_error(const struct evlist *p, const struct event_request *ev, int code,
		      struct error *err)
{
	const char *name = ev ? ev->name : "task";
	char paranoid[16] = "?";
	struct rlimit limit = {0};
	FILE *f;

	switch (code) {
	case -EACCES:
	case -EPERM:
		error_unavailable(err);
		f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
		if (f) {
			if (fgets(paranoid, sizeof(paranoid), f))
				paranoid[strcspn(paranoid, "\n")] = 0;
			fclose(f);
		}
		return error_set(err, code,
				 "no permission to open %s: run as root or with %s "
				 "(kernel.perf_event_paranoid is %s)",
				 name, ev && ev->config1_text ? "CAP_SYS_ADMIN" : "CAP_PERFMON",
				 paranoid);
	case -EMFILE:
	case -ENFILE:
		getrlimit(RLIMIT_NOFILE, &limit);
		return error_set(
			err, code,
			"%llu file descriptors are needed but only %llu are allowed in "
			"all: raise 'ulimit -n' or ask for fewer events, cpus or threads%s",
			(unsigned long long)evlist_nr_files(p), (unsigned long long)limit.rlim_cur,
			p->target.inherit ? ", or for --no-inherit" : "");
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		error_unavailable(err);
		return error_set(err, code, "this kernel or machine has no %s event", name);
	case -ENOSPC:
		return error_set(err, code, "this CPU has no breakpoint left for %s", name);
	case -EILSEQ:
		return error_set(err, code, "no instruction begins at %s", name);
	default:
		return error_set(err, code, "cannot open %s: %s", name, strerror(-code));
	}
}

int evlist_filter_error(const struct event_request *ev, int code, struct error *err)
{
	return error_set(err, code, "the kernel rejects the filter '%s' of %s: %s", ev->filter,
			 ev->name, strerror(-code));
}

static bool accepts(const struct perf_event_attr *attr)
{
	int fd = evlist_open_event(attr, 0, -1, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* What perf_event_open() of this kernel takes: older ones know neither clock nor loss counters. */
static void probe_kernel(struct evlist *p)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .disabled = 1};

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	p->has_clock = accepts(&attr);
	attr.use_clockid = 0;
	attr.read_format = PERF_FORMAT_LOST;
	p->has_lost = accepts(&attr);
	attr.read_format = 0;
	attr.ksymbol = 1;
	p->has_ksymbol = accepts(&attr);
}

static void fill_attr(const struct evlist *p, struct perf_event_attr *attr, uint32_t pages,
		      uint32_t watermark)
{
	uint64_t bytes = (uint64_t)pages * sysconf(_SC_PAGESIZE) * watermark / 100;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	attr->sample_type |= SAMPLE_TYPE;
	attr->read_format = PERF_FORMAT_ID | (p->has_lost ? PERF_FORMAT_LOST : 0);
	attr->sample_id_all = 1;
	/* A wake-up per event would cost the traced task more than the event. */
	if (!attr->wakeup_events) {
		attr->watermark = 1;
		attr->wakeup_watermark = bytes ? bytes : 1;
	}
	if (p->has_clock) {
		attr->use_clockid = 1;
		attr->clockid = CLOCK_MONOTONIC;
	}
}

/* Whether one occurrence may count for more than 1: of the kernel's tracepoints only these do. */
static bool counts_things(const struct event_request *ev)
{
	const char *those = "sched:sched_stat_";

	return ev->attr.type != PERF_TYPE_TRACEPOINT || !strncmp(ev->name, those, strlen(those));
}

/* A tracepoint may count more than one thing (sched_stat_runtime: nanoseconds). Without PERIOD it
 * is sampled once for each; with it once, whatever the period asked for. */
static uint64_t period_bit(const struct perf_attr *attr)
{
	return attr->freq || attr->sample_period <= 1 ? PERF_SAMPLE_PERIOD : 0;
}

uint64_t evlist_sample_type(const struct event_request *ev)
{
	return SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | ev->sample | period_bit(&ev->attr);
}

/* What the request asks to open. */
static struct perf_event_attr requested_attr(const struct event_request *ev)
{
	struct perf_event_attr attr = {0};

	memcpy(&attr, &ev->attr, sizeof(ev->attr));
	if (ev->config1_text)
		attr.config1 = (uintptr_t)ev->config1_text;
	return attr;
}

static struct perf_event_attr counted_attr(const struct evlist *p, const struct event_request *ev)
{
	struct perf_event_attr attr = requested_attr(ev);

	attr.size = sizeof(attr);
	attr.freq = 0;
	attr.sample_period = 0;
	attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.inherit = p->target.inherit;
	if (p->has_clock) { /* that of the event whose samples may hold the counts */
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	return attr;
}

static struct perf_event_attr event_attr(const struct evlist *p, const struct event_request *ev)
{
	struct perf_event_attr attr = requested_attr(ev);

	attr.sample_type = PERF_SAMPLE_RAW;
	if (!attr.sample_period)
		attr.sample_period = 1;
	/* Without PERIOD there is less to write and to read. */
	if (attr.freq || counts_things(ev))
		attr.sample_type |= period_bit(&ev->attr);
	if (ev->perf_event)
		attr.sample_type = evlist_sample_type(ev);
	if (ev->callchain) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_user = !(ev->callchain & STACK_USER);
		attr.exclude_callchain_kernel = !(ev->callchain & STACK_KERNEL);
	}
	if (attr.sample_stack_user) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user |= unwind_registers();
		attr.exclude_callchain_user = 1;
	}
	if (ev->through) { /* the record is the same */
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	}
	records_ask(&attr, ev->record);
	attr.write_backward = p->target.overwrite;
	fill_attr(p, &attr, p->target.pages, p->target.watermark);
	if (ev->reads == READS_ITSELF)
		attr.sample_type |= PERF_SAMPLE_READ;
	if (ev->reads == READS_COUNTED) {
		attr.sample_type = (attr.sample_type & ~PERF_SAMPLE_RAW) | PERF_SAMPLE_READ;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	}
	return attr;
}

/* An event that counts nothing but makes the kernel report names, forks and ends of tasks. */
static struct perf_event_attr task_attr(const struct evlist *p)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .task = 1,
				       .comm = 1,
				       .comm_exec = 1};

	for (uint32_t i = 0; i < p->nr_requests; i++)
		if (p->requests[i].callchain || p->requests[i].resolve)
			attr.mmap = attr.mmap2 = 1; /* what addresses of user space mean */
	attr.ksymbol = attr.mmap && p->has_ksymbol; /* and some of the kernel's */
	fill_attr(p, &attr, TASK_PAGES, 50);
	return attr;
}

/* Narrows the set to a list of the user's. All of the list must be online. */
static int narrow(struct cpus *set, const char *list, const struct cpus *online, const char *what,
		  struct error *err)
{
	struct cpus wanted, missing;
	char some[256], have[256];

	if (cpus_parse(&wanted, list, err))
		return -EINVAL;
	missing = wanted;
	cpus_subtract(&missing, online);
	if (cpus_next(&missing, -1) >= 0) {
		error_unavailable(err);
		return error_set(err, -EINVAL, "%sCPU %s is not online; those that are: %s", what,
				 cpus_text(&missing, some, sizeof(some)),
				 cpus_text(online, have, sizeof(have)));
	}
	cpus_text(set, have, sizeof(have));
	cpus_and(set, &wanted);
	if (cpus_next(set, -1) < 0)
		return error_set(err, -EINVAL, "%scpus=%s leaves nothing of the CPUs %s", what,
				 list, have);
	return 0;
}

static int add_evsel(struct evlist *p, struct decoder *decoder, const struct perf_event_attr *attr,
		     const struct event_request *ev, const struct cpus *cpus,
		     enum evlist_group group, struct error *err)
{
	struct evsel *b = &p->evsels[p->nr_evsels++];

	b->attr = *attr;
	b->event = ev;
	b->cpus = *cpus;
	b->group = group;
	if (group == GROUP_EVENTS) {
		b->attr.enable_on_exec = p->target.enable_on_exec;
		b->attr.inherit = p->target.inherit;
	}
	b->index = decoder_add_attr(decoder, &b->attr, err);
	return b->index < 0 ? b->index : 0;
}

static int add_records(struct decoder *decoder, int index, const struct event_request *ev)
{
	const uint32_t *types = records_types(ev->record);
	int ret = 0;

	for (int i = 0; types[i] && !ret; i++)
		ret = decoder_add_record(decoder, index, types[i], ev->class);
	return ret;
}

static int add_event(struct evlist *p, struct decoder *decoder, const struct event_request *ev,
		     const struct cpus *cpus, struct error *err)
{
	struct perf_event_attr attr = event_attr(p, ev);
	struct evsel *b = &p->evsels[p->nr_evsels];
	bool everywhere = ev->everywhere && p->target.tids;
	int ret = add_evsel(p, decoder, &attr, ev, cpus,
			    everywhere ? GROUP_EVERYWHERE : GROUP_EVENTS, err);
	char what[256];

	if (ret)
		return ret;
	if (ev->perf_event)
		decoder_set_payload(decoder, b->index, sample_payload(ev->sample));
	ret = ev->record ? add_records(decoder, b->index, ev)
			 : decoder_add_class(decoder, b->index, ev->class, ev->payload);
	if (ret || !ev->cpus)
		return ret;
	snprintf(what, sizeof(what), "%s: ", ev->name);
	p->per_thread = false;
	return narrow(&b->cpus, ev->cpus, &p->cpus, what, err);
}

static int add_counted(struct evlist *p, const struct event_request *ev, const struct cpus *cpus,
		       struct error *err)
{
	uint32_t number = p->nr_counted++, leader = 0;
	struct evsel *b = &p->counted[number];
	char what[256];

	while (p->counted[leader].event && p->counted[leader].event->group != ev->group)
		leader++;
	*b = (struct evsel){.event = ev,
			    .attr = counted_attr(p, ev),
			    .cpus = *cpus,
			    .index = -1,
			    .leader = leader};
	if (!ev->cpus)
		return 0;
	snprintf(what, sizeof(what), "%s: ", ev->name);
	p->counts_threads = false;
	return narrow(&b->cpus, ev->cpus, &p->cpus, what, err);
}

static int plan_events(struct evlist *p, struct decoder *decoder, struct error *err)
{
	const struct source_target *target = &p->target;
	struct perf_event_attr attr = task_attr(p);
	struct cpus all, cpus;
	bool everywhere = false;
	int ret;

	/* Without a list also those that come online later. */
	memset(&all, 0xff, sizeof(all));
	cpus = all;
	ret = cpus_online(&p->cpus, err);
	if (!ret && target->cpus)
		ret = narrow(&cpus, target->cpus, &p->cpus, "", err);
	if (ret)
		return ret;
	p->evsels = calloc(p->nr_requests + 1, sizeof(*p->evsels));
	p->counted = calloc(p->nr_requests + 1, sizeof(*p->counted));
	if (!p->evsels || !p->counted)
		return error_set(err, -ENOMEM, "out of memory");
	p->per_thread = target->tids && !target->inherit && !target->cpus;
	p->counts_threads = target->tids && !target->cpus;
	p->sampler = -1;
	for (uint32_t i = 0; i < p->nr_requests && !ret; i++) {
		const struct event_request *ev = &p->requests[i];

		if (ev->is_output)
			continue;
		if (ev->counted) {
			ret = add_counted(p, ev, &cpus, err);
			continue;
		}
		if (ev->reads == READS_COUNTED)
			p->sampler = p->nr_evsels;
		everywhere = everywhere || (ev->everywhere && target->tids);
		ret = add_event(p, decoder, ev, &cpus, err);
	}
	if (everywhere)
		p->per_thread = false;
	/* Tasks have rings of their own, for all of a cpu, unless just some threads matter. */
	return ret ? ret
		   : add_evsel(p, decoder, &attr, NULL, &all,
			       target->tids && !everywhere ? GROUP_EVENTS : GROUP_TASKS, err);
}

static int plan_targets(struct evlist *p, struct error *err)
{
	const struct source_target *target = &p->target;

	for (int i = 0; i < NR_GROUPS; i++)
		p->targets[i] = (struct targets){.list = &anything, .n = 1};
	if (target->tids)
		p->targets[GROUP_EVENTS] =
			(struct targets){.list = target->tids, .n = target->nr_tids};
	if (!target->cgroups)
		return 0;
	p->nr_cgroup_fds = cgroups_open(target->cgroups, &p->cgroup_fds, err);
	if (p->nr_cgroup_fds < 0)
		return p->nr_cgroup_fds;
	p->targets[GROUP_EVENTS] = (struct targets){
		.list = p->cgroup_fds, .n = p->nr_cgroup_fds, .flags = PERF_FLAG_PID_CGROUP};
	return 0;
}

struct evlist *evlist_new(const struct event_request *requests, uint32_t n,
			  const struct source_target *target, struct decoder *decoder,
			  struct error *err)
{
	struct evlist *p = calloc(1, sizeof(*p));

	if (!p) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	p->requests = requests;
	p->nr_requests = n;
	p->target = *target;
	probe_kernel(p);
	if (plan_events(p, decoder, err) || plan_targets(p, err)) {
		evlist_free(p);
		return NULL;
	}
	return p;
}

void evlist_free(struct evlist *p)
{
	if (!p)
		return;
	for (int i = 0; i < p->nr_cgroup_fds; i++)
		close(p->cgroup_fds[i]);
	free(p->cgroup_fds);
	free(p->evsels);
	free(p->counted);
	free(p);
}

bool evlist_is_for(const struct evlist *p, const struct evsel *b, int cpu)
{
	return p->per_thread || cpus_has(&b->cpus, cpu);
}

static uint64_t nr_cpus(const struct evlist *p, const struct cpus *of)
{
	struct cpus cpus = p->cpus;
	uint64_t n = 0;

	cpus_and(&cpus, of);
	for (int cpu = -1; (cpu = cpus_next(&cpus, cpu)) >= 0;)
		n++;
	return n;
}

uint64_t evlist_nr_files(const struct evlist *p)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < p->nr_evsels; i++) {
		const struct evsel *b = &p->evsels[i];
		uint64_t targets = p->targets[b->group].n;

		n += targets * (p->per_thread ? 1 : nr_cpus(p, &b->cpus));
	}
	n += (uint64_t)p->nr_counted * p->targets[GROUP_EVENTS].n *
	     (p->counts_threads ? 1 : nr_cpus(p, &p->cpus));
	return n;
}
