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

static uint64_t nr_cpus(const struct evlist *list, const struct cpus *of)
{
	struct cpus cpus = list->cpus;
	uint64_t n = 0;

	cpus_and(&cpus, of);
	for (int cpu = -1; (cpu = cpus_next(&cpus, cpu)) >= 0;)
		n++;
	return n;
}

/* Returns the number of file descriptors that all events need. */
static uint64_t nr_files(const struct evlist *list)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < list->nr_evsels; i++) {
		const struct evsel *sel = &list->evsels[i];
		uint64_t targets = list->targets[sel->group].n;

		n += targets * (list->per_thread ? 1 : nr_cpus(list, &sel->cpus));
	}
	n += (uint64_t)list->nr_counted * list->targets[GROUP_EVENTS].n *
	     (list->counts_threads ? 1 : nr_cpus(list, &list->cpus));
	return n;
}

int evlist_open_error(const struct evlist *list, const struct live_event *ev, int code,
		      struct error *err)
{
	const char *name = ev ? ev->name : "task";
	char paranoid[16] = "?";
	struct rlimit limit = {0};
	FILE *f;

	switch (code) {
	case -EACCES:
	case -EPERM:
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
			"%llu file descriptors are needed, but only %llu are allowed: raise "
			"'ulimit -n', or use fewer events, CPUs or threads%s",
			(unsigned long long)nr_files(list), (unsigned long long)limit.rlim_cur,
			list->config.inherit ? ", or --no-inherit" : "");
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		return error_set(err, code, "this kernel or machine has no %s event", name);
	case -ENOSPC:
		return error_set(err, code, "the CPU has no free breakpoint for %s", name);
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

/* Finds out what perf_event_open() of this kernel supports: older ones have neither clocks nor loss
 * counters. */
static void probe_kernel(struct evlist *list)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .disabled = 1};

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	list->has_clock = accepts(&attr);
	attr.use_clockid = 0;
	attr.read_format = PERF_FORMAT_LOST;
	list->has_lost = accepts(&attr);
	attr.read_format = 0;
	attr.ksymbol = 1;
	list->has_ksymbol = accepts(&attr);
}

static void fill_attr(const struct evlist *list, struct perf_event_attr *attr, uint32_t pages,
		      uint32_t watermark)
{
	uint64_t bytes = (uint64_t)pages * sysconf(_SC_PAGESIZE) * watermark / 100;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	attr->sample_type |= SAMPLE_TYPE;
	attr->read_format = PERF_FORMAT_ID | (list->has_lost ? PERF_FORMAT_LOST : 0);
	attr->sample_id_all = 1;
	/* A wakeup per event would cost the traced task more than the event itself. */
	if (!attr->wakeup_events) {
		attr->watermark = 1;
		attr->wakeup_watermark = bytes ? bytes : 1;
	}
	if (list->has_clock) {
		attr->use_clockid = 1;
		attr->clockid = CLOCK_MONOTONIC;
	}
}

/* Returns whether one occurrence may count for more than 1. Among the kernel's tracepoints only
 * these do. */
static bool counts_things(const struct live_event *ev)
{
	const char *those = "sched:sched_stat_";

	return ev->type != PERF_TYPE_TRACEPOINT || !strncmp(ev->name, those, strlen(those));
}

/* A tracepoint may count more than one unit at once (sched_stat_runtime: nanoseconds). Without
 * PERIOD it is sampled once per unit; with PERIOD once, whatever period is asked for. */
static uint64_t period_bit(uint64_t freq, uint64_t period)
{
	return freq || period <= 1 ? PERF_SAMPLE_PERIOD : 0;
}

uint64_t live_sample_type(uint64_t sample, uint64_t freq, uint64_t period)
{
	return SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | sample | period_bit(freq, period);
}

/* The part of the attribute that samples and counts have in common. */
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

static struct perf_event_attr counted_attr(const struct evlist *list, const struct live_event *ev)
{
	struct perf_event_attr attr = bare_attr(ev);

	attr.size = sizeof(attr);
	attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.inherit = list->config.inherit;
	if (list->has_clock) { /* the clock of the event whose samples may hold the counts */
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	return attr;
}

static struct perf_event_attr event_attr(const struct evlist *list, const struct live_event *ev)
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
	/* Without PERIOD there is less to write and to read. */
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
	if (ev->through) { /* the record has the same layout */
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	}
	records_ask(&attr, ev->record);
	attr.write_backward = list->config.overwrite;
	fill_attr(list, &attr, list->config.pages, list->config.watermark);
	if (ev->reads == READS_ITSELF)
		attr.sample_type |= PERF_SAMPLE_READ;
	if (ev->reads == READS_COUNTED) {
		attr.sample_type = (attr.sample_type & ~PERF_SAMPLE_RAW) | PERF_SAMPLE_READ;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	}
	return attr;
}

/* An event that counts nothing but makes the kernel report names, forks and exits of tasks. */
static struct perf_event_attr task_attr(const struct evlist *list)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .task = 1,
				       .comm = 1,
				       .comm_exec = 1};

	for (uint32_t i = 0; i < list->config.nr_events; i++)
		if (list->config.events[i].callchain || list->config.events[i].resolve)
			attr.mmap = attr.mmap2 = 1;    /* to resolve addresses of user space */
	attr.ksymbol = attr.mmap && list->has_ksymbol; /* and some of the kernel */
	fill_attr(list, &attr, TASK_PAGES, 50);
	return attr;
}

/* Narrows the set to a list of the user's. All CPUs of the list must be online. */
static int narrow(struct cpus *set, const char *list, const struct cpus *online, const char *what,
		  struct error *err)
{
	struct cpus wanted, missing;
	char some[256], have[256];

	if (cpus_parse(&wanted, list, err))
		return -EINVAL;
	missing = wanted;
	cpus_subtract(&missing, online);
	if (cpus_next(&missing, -1) >= 0)
		return error_set(err, -EINVAL, "%sCPU %s is not online (online: %s)", what,
				 cpus_text(&missing, some, sizeof(some)),
				 cpus_text(online, have, sizeof(have)));
	cpus_text(set, have, sizeof(have));
	cpus_and(set, &wanted);
	if (cpus_next(set, -1) < 0)
		return error_set(err, -EINVAL, "%scpus=%s has none of the CPUs %s", what, list,
				 have);
	return 0;
}

static int add_evsel(struct evlist *list, struct decoder *decoder,
		     const struct perf_event_attr *attr, const struct live_event *ev,
		     const struct cpus *cpus, enum evlist_group group, struct error *err)
{
	struct evsel *sel = &list->evsels[list->nr_evsels++];

	sel->attr = *attr;
	sel->event = ev;
	sel->cpus = *cpus;
	sel->group = group;
	if (group == GROUP_EVENTS) {
		sel->attr.enable_on_exec = list->config.enable_on_exec;
		sel->attr.inherit = list->config.inherit;
	}
	sel->index = decoder_add_attr(decoder, &sel->attr, err);
	return sel->index < 0 ? sel->index : 0;
}

static int add_records(struct decoder *decoder, int index, const struct live_event *ev)
{
	const uint32_t *types = records_types(ev->record);
	int ret = 0;

	for (int i = 0; types[i] && !ret; i++)
		ret = decoder_add_record(decoder, index, types[i], ev->class);
	return ret;
}

static int add_event(struct evlist *list, struct decoder *decoder, const struct live_event *ev,
		     const struct cpus *cpus, struct error *err)
{
	struct perf_event_attr attr = event_attr(list, ev);
	struct evsel *sel = &list->evsels[list->nr_evsels];
	bool everywhere = ev->everywhere && list->config.tids;
	int ret = add_evsel(list, decoder, &attr, ev, cpus,
			    everywhere ? GROUP_EVERYWHERE : GROUP_EVENTS, err);
	char what[256];

	if (ret)
		return ret;
	if (ev->perf_event)
		decoder_set_payload(decoder, sel->index, sample_payload(ev->sample));
	ret = ev->record ? add_records(decoder, sel->index, ev)
			 : decoder_add_class(decoder, sel->index, ev->class, ev->payload);
	if (ret || !ev->cpus)
		return ret;
	snprintf(what, sizeof(what), "%s: ", ev->name);
	list->per_thread = false;
	return narrow(&sel->cpus, ev->cpus, &list->cpus, what, err);
}

static int add_counted(struct evlist *list, const struct live_event *ev, const struct cpus *cpus,
		       struct error *err)
{
	uint32_t number = list->nr_counted++, leader = 0;
	struct evsel *sel = &list->counted[number];
	char what[256];

	while (list->counted[leader].event && list->counted[leader].event->group != ev->group)
		leader++;
	*sel = (struct evsel){.event = ev,
			      .attr = counted_attr(list, ev),
			      .cpus = *cpus,
			      .index = -1,
			      .leader = leader};
	if (!ev->cpus)
		return 0;
	snprintf(what, sizeof(what), "%s: ", ev->name);
	list->counts_threads = false;
	return narrow(&sel->cpus, ev->cpus, &list->cpus, what, err);
}

static int add_events(struct evlist *list, struct decoder *decoder, struct error *err)
{
	const struct live_config *config = &list->config;
	struct perf_event_attr attr = task_attr(list);
	struct cpus all, cpus;
	bool everywhere = false;
	int ret;

	/* Without a list, CPUs that come online later belong to it too. */
	memset(&all, 0xff, sizeof(all));
	cpus = all;
	ret = cpus_online(&list->cpus, err);
	if (!ret && config->cpus)
		ret = narrow(&cpus, config->cpus, &list->cpus, "", err);
	if (ret)
		return ret;
	list->evsels = calloc(config->nr_events + 1, sizeof(*list->evsels));
	list->counted = calloc(config->nr_events + 1, sizeof(*list->counted));
	if (!list->evsels || !list->counted)
		return error_set(err, -ENOMEM, "out of memory");
	list->per_thread = config->tids && !config->inherit && !config->cpus;
	list->counts_threads = config->tids && !config->cpus;
	list->sampler = -1;
	for (uint32_t i = 0; i < config->nr_events && !ret; i++) {
		const struct live_event *ev = &config->events[i];

		if (ev->counted) {
			ret = add_counted(list, ev, &cpus, err);
			continue;
		}
		if (ev->reads == READS_COUNTED)
			list->sampler = list->nr_evsels;
		everywhere = everywhere || (ev->everywhere && config->tids);
		ret = add_event(list, decoder, ev, &cpus, err);
	}
	if (everywhere)
		list->per_thread = false;
	/* Tasks have rings of their own for all of a CPU, unless only some threads matter. */
	return ret ? ret
		   : add_evsel(list, decoder, &attr, NULL, &all,
			       config->tids && !everywhere ? GROUP_EVENTS : GROUP_TASKS, err);
}

static int set_targets(struct evlist *list, struct error *err)
{
	const struct live_config *config = &list->config;

	for (int i = 0; i < NR_GROUPS; i++)
		list->targets[i] = (struct targets){.list = &anything, .n = 1};
	if (config->tids)
		list->targets[GROUP_EVENTS] =
			(struct targets){.list = config->tids, .n = config->nr_tids};
	if (!config->cgroups)
		return 0;
	list->nr_cgroup_fds = cgroups_open(config->cgroups, &list->cgroup_fds, err);
	if (list->nr_cgroup_fds < 0)
		return list->nr_cgroup_fds;
	list->targets[GROUP_EVENTS] = (struct targets){
		.list = list->cgroup_fds, .n = list->nr_cgroup_fds, .flags = PERF_FLAG_PID_CGROUP};
	return 0;
}

struct evlist *evlist_new(const struct live_config *config, struct decoder *decoder,
			  struct error *err)
{
	struct evlist *list = calloc(1, sizeof(*list));

	if (!list) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	list->config = *config;
	probe_kernel(list);
	if (add_events(list, decoder, err) || set_targets(list, err)) {
		evlist_free(list);
		return NULL;
	}
	return list;
}

void evlist_free(struct evlist *list)
{
	if (!list)
		return;
	for (int i = 0; i < list->nr_cgroup_fds; i++)
		close(list->cgroup_fds[i]);
	free(list->cgroup_fds);
	free(list->evsels);
	free(list->counted);
	free(list);
}

bool evlist_is_for(const struct evlist *list, const struct evsel *sel, int cpu)
{
	return list->per_thread || cpus_has(&sel->cpus, cpu);
}
