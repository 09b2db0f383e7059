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
#include "live/live.h"
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

int evlist_open_error(const struct evlist *p, const struct live_event *ev, int code,
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
			p->config.inherit ? ", or for --no-inherit" : "");
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

int evlist_filter_error(const struct live_event *ev, int code, struct error *err)
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
static bool counts_things(const struct live_event *ev)
{
	const char *those = "sched:sched_stat_";

	return ev->type != PERF_TYPE_TRACEPOINT || !strncmp(ev->name, those, strlen(those));
}

/* A tracepoint may count more than one thing (sched_stat_runtime: nanoseconds). Without PERIOD it
 * is sampled once for each; with it once, whatever the period asked for. */
static uint64_t period_bit(uint64_t freq, uint64_t period)
{
	return freq || period <= 1 ? PERF_SAMPLE_PERIOD : 0;
}

uint64_t live_sample_type(uint64_t sample, uint64_t freq, uint64_t period)
{
	return SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | sample | period_bit(freq, period);
}

/* What is sampled or counted. */
static struct perf_event_attr bare_attr(const struct live_event *ev)
{
	return (struct perf_event_attr){
		.type = ev->type,
		.config = ev->config,
		.config1 = ev->config1_text ? (uintptr_t)ev->config1_text : ev->config1,
		.config2 = ev->config2,
		.bp_type = ev->bp_type,
		.exclude_user = ev->exclude_user,
		.exclude_kernel = ev->exclude_kernel,
		.exclude_host = ev->exclude_host,
		.exclude_guest = ev->exclude_guest,
		.exclude_idle = ev->exclude_idle,
	};
}

static struct perf_event_attr counted_attr(const struct evlist *p, const struct live_event *ev)
{
	struct perf_event_attr attr = bare_attr(ev);

	attr.size = sizeof(attr);
	attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.inherit = p->config.inherit;
	if (p->has_clock) { /* that of the event whose samples may hold the counts */
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	return attr;
}

static struct perf_event_attr event_attr(const struct evlist *p, const struct live_event *ev)
{
	struct perf_event_attr attr = bare_attr(ev);

	attr.precise_ip = ev->precise;
	attr.sample_regs_user = ev->regs_user;
	attr.sample_regs_intr = ev->regs_intr;
	attr.wakeup_events = ev->wakeup;
	attr.sample_type = PERF_SAMPLE_RAW;
	attr.sample_period = ev->period ? ev->period : 1;
	if (ev->freq) {
		attr.freq = 1;
		attr.sample_freq = ev->freq;
	}
	/* Without it there is less to write and to read. */
	if (ev->freq || counts_things(ev))
		attr.sample_type |= period_bit(ev->freq, ev->period);
	if (ev->perf_event)
		attr.sample_type = live_sample_type(ev->sample, ev->freq, ev->period);
	if (ev->callchain) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.sample_max_stack = ev->max_stack;
		attr.exclude_callchain_user = !(ev->callchain & STACK_USER);
		attr.exclude_callchain_kernel = !(ev->callchain & STACK_KERNEL);
	}
	if (ev->stack_dump) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user |= unwind_registers();
		attr.sample_stack_user = ev->stack_dump;
		attr.exclude_callchain_user = 1;
	}
	if (ev->through) { /* the record is the same */
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	}
	records_ask(&attr, ev->record);
	attr.write_backward = p->config.overwrite;
	fill_attr(p, &attr, p->config.pages, p->config.watermark);
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

	for (uint32_t i = 0; i < p->config.nr_events; i++)
		if (p->config.events[i].callchain || p->config.events[i].resolve)
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
		     const struct live_event *ev, const struct cpus *cpus, enum evlist_group group,
		     struct error *err)
{
	struct evsel *b = &p->evsels[p->nr_evsels++];

	b->attr = *attr;
	b->event = ev;
	b->cpus = *cpus;
	b->group = group;
	if (group == GROUP_EVENTS) {
		b->attr.enable_on_exec = p->config.enable_on_exec;
		b->attr.inherit = p->config.inherit;
	}
	b->index = decoder_add_attr(decoder, &b->attr, err);
	return b->index < 0 ? b->index : 0;
}

static int add_records(struct decoder *decoder, int index, const struct live_event *ev)
{
	const uint32_t *types = records_types(ev->record);
	int ret = 0;

	for (int i = 0; types[i] && !ret; i++)
		ret = decoder_add_record(decoder, index, types[i], ev->class);
	return ret;
}

static int add_event(struct evlist *p, struct decoder *decoder, const struct live_event *ev,
		     const struct cpus *cpus, struct error *err)
{
	struct perf_event_attr attr = event_attr(p, ev);
	struct evsel *b = &p->evsels[p->nr_evsels];
	bool everywhere = ev->everywhere && p->config.tids;
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

static int add_counted(struct evlist *p, const struct live_event *ev, const struct cpus *cpus,
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
	const struct live_config *config = &p->config;
	struct perf_event_attr attr = task_attr(p);
	struct cpus all, cpus;
	bool everywhere = false;
	int ret;

	/* Without a list also those that come online later. */
	memset(&all, 0xff, sizeof(all));
	cpus = all;
	ret = cpus_online(&p->cpus, err);
	if (!ret && config->cpus)
		ret = narrow(&cpus, config->cpus, &p->cpus, "", err);
	if (ret)
		return ret;
	p->evsels = calloc(config->nr_events + 1, sizeof(*p->evsels));
	p->counted = calloc(config->nr_events + 1, sizeof(*p->counted));
	if (!p->evsels || !p->counted)
		return error_set(err, -ENOMEM, "out of memory");
	p->per_thread = config->tids && !config->inherit && !config->cpus;
	p->counts_threads = config->tids && !config->cpus;
	p->sampler = -1;
	for (uint32_t i = 0; i < config->nr_events && !ret; i++) {
		const struct live_event *ev = &config->events[i];

		if (ev->counted) {
			ret = add_counted(p, ev, &cpus, err);
			continue;
		}
		if (ev->reads == READS_COUNTED)
			p->sampler = p->nr_evsels;
		everywhere = everywhere || (ev->everywhere && config->tids);
		ret = add_event(p, decoder, ev, &cpus, err);
	}
	if (everywhere)
		p->per_thread = false;
	/* Tasks have rings of their own, for all of a cpu, unless just some threads matter. */
	return ret ? ret
		   : add_evsel(p, decoder, &attr, NULL, &all,
			       config->tids && !everywhere ? GROUP_EVENTS : GROUP_TASKS, err);
}

static int plan_targets(struct evlist *p, struct error *err)
{
	const struct live_config *config = &p->config;

	for (int i = 0; i < NR_GROUPS; i++)
		p->targets[i] = (struct targets){.list = &anything, .n = 1};
	if (config->tids)
		p->targets[GROUP_EVENTS] =
			(struct targets){.list = config->tids, .n = config->nr_tids};
	if (!config->cgroups)
		return 0;
	p->nr_cgroup_fds = cgroups_open(config->cgroups, &p->cgroup_fds, err);
	if (p->nr_cgroup_fds < 0)
		return p->nr_cgroup_fds;
	p->targets[GROUP_EVENTS] = (struct targets){
		.list = p->cgroup_fds, .n = p->nr_cgroup_fds, .flags = PERF_FLAG_PID_CGROUP};
	return 0;
}

struct evlist *evlist_new(const struct live_config *config, struct decoder *decoder,
			  struct error *err)
{
	struct evlist *p = calloc(1, sizeof(*p));

	if (!p) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	p->config = *config;
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
