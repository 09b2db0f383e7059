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
	SAMPLE_TYPE = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU,
	MIN_TASK_PAGES = 16,
	MAX_TASK_PAGES = 1024
};

static const int32_t any_task = -1;

int evlist_open_event(const struct perf_event_attr *attr, int target, int cpu, int group,
		      unsigned long flags)
{
	int fd = syscall(SYS_perf_event_open, attr, target, cpu, group,
			 flags | PERF_FLAG_FD_CLOEXEC);

	return fd >= 0 ? fd : -errno;
}

/* Returns whether this user may sample kernel events on all CPUs. If so, a refusal is not about the
 * user's permissions. */
static bool may_sample_kernel(void)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_CPU_CLOCK,
				       .sample_period = 1000000,
				       .sample_type = PERF_SAMPLE_RAW,
				       .disabled = 1};
	int fd = evlist_open_event(&attr, -1, 0, -1, 0);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int evlist_open_error(const struct evlist *evlist, const struct event_request *ev, int code,
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
		if (!(ev && ev->config1_text) && may_sample_kernel())
			return error_set(err, code, "the kernel allows nobody to sample %s (%s)",
					 name, strerror(-code));
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
		return error_set(err, code,
				 "%llu file descriptors needed, but only %llu allowed: "
				 "raise 'ulimit -n' or use fewer events, CPUs or threads%s",
				 (unsigned long long)evlist_nr_files(evlist),
				 (unsigned long long)limit.rlim_cur,
				 evlist->target.inherit ? ", or --no-inherit" : "");
	case -ENOENT:
	case -ENODEV:
	case -EOPNOTSUPP:
		error_unavailable(err);
		return error_set(err, code, "this kernel or machine has no %s event", name);
	case -ENOSPC:
		return error_set(err, code, "no free hardware breakpoint for %s", name);
	case -EILSEQ:
		return error_set(err, code, "no instruction starts at %s", name);
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

/* Probes for features of perf_event_open() that older kernels lack. */
static void probe_kernel(struct evlist *evlist)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_SW_DUMMY,
				       .exclude_kernel = 1,
				       .disabled = 1};

	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	evlist->has_clock = accepts(&attr);
	attr.use_clockid = 0;
	attr.read_format = PERF_FORMAT_LOST;
	evlist->has_lost = accepts(&attr);
	attr.read_format = 0;
	attr.ksymbol = 1;
	evlist->has_ksymbol = accepts(&attr);
	attr.ksymbol = 0;
	attr.build_id = 1;
	evlist->has_build_id = accepts(&attr);
	attr.build_id = 0;
	attr.cgroup = 1;
	evlist->has_cgroup = evlist->target.groups && accepts(&attr);
}

static void fill_attr(const struct evlist *evlist, struct perf_event_attr *attr, uint32_t pages,
		      uint32_t watermark)
{
	uint64_t bytes = (uint64_t)pages * sysconf(_SC_PAGESIZE) * watermark / 100;

	attr->size = sizeof(*attr);
	attr->disabled = 1;
	attr->sample_type |= SAMPLE_TYPE;
	attr->read_format = PERF_FORMAT_ID | (evlist->has_lost ? PERF_FORMAT_LOST : 0);
	attr->sample_id_all = 1;
	/* A wakeup per event would cost the traced task more than the event. */
	if (!attr->wakeup_events) {
		attr->watermark = 1;
		attr->wakeup_watermark = bytes ? bytes : 1;
	}
	if (evlist->has_clock) {
		attr->use_clockid = 1;
		attr->clockid = CLOCK_MONOTONIC;
	}
}

/* Whether one event may count as more than 1 (__perf_count() in the kernel). These are the only
 * such tracepoints. */
static bool has_perf_count(const struct event_request *ev)
{
	const char *prefix = "sched:sched_stat_";

	return ev->attr.type != PERF_TYPE_TRACEPOINT || !strncmp(ev->name, prefix, strlen(prefix));
}

/* A tracepoint may count as more than one event (sched_stat_runtime: nanoseconds). Without PERIOD
 * the kernel takes a sample for each of them; with PERIOD one sample, whatever the period is. */
static uint64_t period_bit(const struct perf_event_attr *attr)
{
	return attr->freq || attr->sample_period <= 1 ? PERF_SAMPLE_PERIOD : 0;
}

uint64_t evlist_sample_type(const struct event_request *ev)
{
	return SAMPLE_TYPE | PERF_SAMPLE_IP | PERF_SAMPLE_ADDR | ev->sample | period_bit(&ev->attr);
}

static struct perf_event_attr requested_attr(const struct event_request *ev)
{
	struct perf_event_attr attr = ev->attr;

	if (ev->config1_text)
		attr.config1 = (uintptr_t)ev->config1_text;
	return attr;
}

static struct perf_event_attr counted_attr(const struct evlist *evlist,
					   const struct event_request *ev)
{
	struct perf_event_attr attr = requested_attr(ev);

	attr.size = sizeof(attr);
	attr.freq = 0;
	attr.sample_period = 0;
	attr.read_format =
		PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	attr.inherit = evlist->target.inherit;
	if (evlist->has_clock) { /* the group's leader may be a sampled event with this clock */
		attr.use_clockid = 1;
		attr.clockid = CLOCK_MONOTONIC;
	}
	return attr;
}

/* Whether the event needs a counter of the hardware. There may be more events than counters. */
static bool is_multiplexed(const struct event_request *ev)
{
	return !ev->config1_text && ev->attr.type != PERF_TYPE_SOFTWARE &&
	       ev->attr.type != PERF_TYPE_TRACEPOINT && ev->attr.type != PERF_TYPE_BREAKPOINT;
}

/* Whether the event is also one of the task that is woken up (__perf_task() in the kernel). If that
 * is a target, the event counts for it, but there may be no sample: its events do not run yet. */
static bool counts_twice(const struct evlist *evlist, const struct event_request *ev)
{
	static const char *const names[] = {"sched:sched_wakeup", "sched:sched_wakeup_new",
					    "sched:sched_waking"};

	for (int i = 0; i < 3; i++)
		if (!strcmp(ev->name, names[i]))
			return evlist->target.tids && !ev->everywhere;
	return false;
}

static bool is_by_time(const struct event_request *ev)
{
	return ev->attr.type == PERF_TYPE_SOFTWARE && (ev->attr.config == PERF_COUNT_SW_CPU_CLOCK ||
						       ev->attr.config == PERF_COUNT_SW_TASK_CLOCK);
}

uint32_t evlist_per_sample(const struct event_request *ev)
{
	bool counts_more = ev->attr.type == PERF_TYPE_TRACEPOINT && has_perf_count(ev);

	if (counts_more || ev->record || ev->program || ev->bpf_array ||
	    ev->reads == READS_COUNTED || ev->attr.sample_period > UINT32_MAX)
		return 0;
	/* A branch trace has samples without counts. It is what a period of 1 asks for. */
	if (is_multiplexed(ev))
		return ev->attr.freq || ev->attr.sample_period > 1;
	if (is_by_time(ev) || ev->attr.freq || !ev->attr.sample_period)
		return 1;
	return ev->attr.sample_period;
}

bool evlist_is_exact(const struct evlist *evlist, const struct event_request *ev)
{
	/* Each child has begun a period of its own, and nobody knows how many there were. */
	bool has_children = evlist->target.tids && evlist->target.inherit;

	return evlist->has_lost && evlist_per_sample(ev) && !is_multiplexed(ev) &&
	       !is_by_time(ev) && !ev->attr.freq && !counts_twice(evlist, ev) &&
	       (ev->attr.sample_period <= 1 || !has_children);
}

static struct perf_event_attr event_attr(const struct evlist *evlist,
					 const struct event_request *ev)
{
	struct perf_event_attr attr = requested_attr(ev);

	attr.sample_type = PERF_SAMPLE_RAW;
	if (!attr.sample_period)
		attr.sample_period = 1;
	/* Without PERIOD, samples are smaller. */
	if (attr.freq || has_perf_count(ev))
		attr.sample_type |= period_bit(&ev->attr);
	attr.sample_type |= ev->sample & PERF_SAMPLE_CGROUP;
	if (ev->perf_event)
		attr.sample_type = evlist_sample_type(ev);
	if (ev->callchain) {
		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		attr.exclude_callchain_user |= !(ev->callchain & STACK_USER);
		attr.exclude_callchain_kernel = !(ev->callchain & STACK_KERNEL);
	}
	if (attr.sample_stack_user) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user |= unwind_registers();
	}
	if (ev->bpf_array) { /* the records have the same layout */
		attr.type = PERF_TYPE_SOFTWARE;
		attr.config = PERF_COUNT_SW_BPF_OUTPUT;
	}
	records_ask(&attr, ev->record);
	attr.write_backward = evlist->target.overwrite;
	fill_attr(evlist, &attr, evlist->target.pages, evlist->target.watermark);
	/* The times would be in its samples, too. */
	if (ev->reads == READS_ITSELF)
		attr.sample_type |= PERF_SAMPLE_READ;
	else if (is_multiplexed(ev))
		attr.read_format |= PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (ev->reads == READS_COUNTED) {
		attr.sample_type = (attr.sample_type & ~PERF_SAMPLE_RAW) | PERF_SAMPLE_READ;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
	}
	return attr;
}

/* Mappings are many: a new program has dozens. The rings for them grow with those of the events. */
static uint32_t task_pages(const struct evlist *evlist, bool has_mappings)
{
	uint32_t pages = has_mappings ? evlist->target.pages / 4 : 0;

	if (pages > MAX_TASK_PAGES)
		return MAX_TASK_PAGES;
	return pages > MIN_TASK_PAGES ? pages : MIN_TASK_PAGES;
}

/* Returns the attributes of a dummy event that makes the kernel report COMM, FORK and EXIT. */
static struct perf_event_attr task_attr(struct evlist *evlist)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .exclude_kernel = 1, /* any user may open it then */
				       .task = 1,
				       .comm = 1,
				       .comm_exec = 1,
				       .mmap = evlist->target.mappings,
				       .mmap2 = evlist->target.mappings};
	bool sends = false;

	for (uint32_t i = 0; i < evlist->nr_requests; i++) {
		attr.mmap_data |= evlist->requests[i].resolve == 2;
		sends |= evlist->requests[i].push != 0;
	}
	/* Elsewhere, a file's inode says nothing. */
	attr.build_id = attr.mmap && sends && evlist->has_build_id;
	attr.ksymbol = attr.mmap && evlist->has_ksymbol; /* and BPF programs in the kernel */
	attr.cgroup = evlist->has_cgroup;
	evlist->task_pages = task_pages(evlist, attr.mmap);
	fill_attr(evlist, &attr, evlist->task_pages, 50);
	return attr;
}

/* Restricts the set to a list given by the user, whose CPUs must all be online. */
static int restrict_cpus(struct cpus *set, const char *list, const struct cpus *online,
			 const char *what, struct error *err)
{
	struct cpus wanted, missing;
	char some[256], have[256];

	if (cpus_parse(&wanted, list, err))
		return -EINVAL;
	missing = wanted;
	cpus_subtract(&missing, online);
	if (cpus_next(&missing, -1) >= 0) {
		error_unavailable(err);
		return error_set(err, -EINVAL, "%sCPU %s is not online (online: %s)", what,
				 cpus_text(&missing, some, sizeof(some)),
				 cpus_text(online, have, sizeof(have)));
	}
	cpus_text(set, have, sizeof(have));
	cpus_and(set, &wanted);
	if (cpus_next(set, -1) < 0)
		return error_set(err, -EINVAL, "%scpus=%s contains none of the CPUs %s", what, list,
				 have);
	return 0;
}

/* Whether the kernel counts the event where it happens, for all its readers at once. */
static bool is_shared(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && attr->config != PERF_COUNT_SW_CPU_CLOCK &&
	       attr->config != PERF_COUNT_SW_TASK_CLOCK && attr->config != PERF_COUNT_SW_DUMMY &&
	       attr->config != PERF_COUNT_SW_BPF_OUTPUT;
}

static int add_evsel(struct evlist *evlist, struct decoder *decoder,
		     const struct perf_event_attr *attr, const struct event_request *ev,
		     const struct cpus *cpus, enum evlist_group group, struct error *err)
{
	struct evsel *sel = &evlist->evsels[evlist->nr_evsels++];
	struct perf_event_attr samples;

	sel->attr = *attr;
	sel->event = ev;
	sel->cpus = *cpus;
	sel->group = group;
	if (group == GROUP_EVENTS) {
		sel->attr.enable_on_exec = evlist->target.enable_on_exec;
		sel->attr.inherit = evlist->target.inherit;
	}
	samples = sel->attr;
	if (ev && ev->bpf_array) /* a BPF program writes those of another event */
		samples.type = ev->attr.type;
	sel->index = decoder_add_attr(decoder, &samples, err);
	if (sel->index >= 0 && is_shared(&sel->attr))
		decoder_note_shared(decoder, sel->index);
	return sel->index < 0 ? sel->index : 0;
}

static int add_records(struct decoder *decoder, int index, const struct event_request *ev)
{
	const uint32_t *types = records_types(ev->record);
	int ret = 0;

	for (int i = 0; types[i] && !ret; i++)
		ret = decoder_add_record(decoder, index, types[i], ev->class);
	return ret;
}

static int add_event(struct evlist *evlist, struct decoder *decoder, const struct event_request *ev,
		     const struct cpus *cpus, struct error *err)
{
	struct perf_event_attr attr = event_attr(evlist, ev);
	struct evsel *sel = &evlist->evsels[evlist->nr_evsels];
	bool everywhere = ev->everywhere && evlist->target.tids;
	int ret = add_evsel(evlist, decoder, &attr, ev, cpus,
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
	evlist->per_thread = false;
	return restrict_cpus(&sel->cpus, ev->cpus, &evlist->cpus, what, err);
}

static int add_counted(struct evlist *evlist, const struct event_request *ev,
		       const struct cpus *cpus, struct error *err)
{
	uint32_t number = evlist->nr_counted++, leader = 0;
	struct evsel *sel = &evlist->counted[number];
	char what[256];

	while (evlist->counted[leader].event && evlist->counted[leader].event->group != ev->group)
		leader++;
	*sel = (struct evsel){.event = ev,
			      .attr = counted_attr(evlist, ev),
			      .cpus = *cpus,
			      .index = -1,
			      .leader = leader};
	if (!ev->cpus)
		return 0;
	snprintf(what, sizeof(what), "%s: ", ev->name);
	evlist->counts_threads = false;
	return restrict_cpus(&sel->cpus, ev->cpus, &evlist->cpus, what, err);
}

static int init_events(struct evlist *evlist, struct decoder *decoder, struct error *err)
{
	const struct source_target *target = &evlist->target;
	struct perf_event_attr attr = task_attr(evlist);
	struct cpus all, cpus;
	bool everywhere = false;
	int ret;

	/* Without a list, include CPUs that come online later. */
	memset(&all, 0xff, sizeof(all));
	cpus = all;
	ret = cpus_online(&evlist->cpus, err);
	if (!ret && target->cpus)
		ret = restrict_cpus(&cpus, target->cpus, &evlist->cpus, "", err);
	if (ret)
		return ret;
	evlist->evsels = calloc(evlist->nr_requests + 1, sizeof(*evlist->evsels));
	evlist->counted = calloc(evlist->nr_requests + 1, sizeof(*evlist->counted));
	if (!evlist->evsels || !evlist->counted)
		return error_set(err, -ENOMEM, "out of memory");
	evlist->per_thread = target->tids && !target->inherit && !target->cpus;
	evlist->counts_threads = target->tids && !target->cpus;
	evlist->sampler = -1;
	for (uint32_t i = 0; i < evlist->nr_requests && !ret; i++) {
		const struct event_request *ev = &evlist->requests[i];

		if (ev->is_output || ev->captured.rings)
			continue;
		if (ev->counted) {
			ret = add_counted(evlist, ev, &cpus, err);
			continue;
		}
		if (ev->reads == READS_COUNTED)
			evlist->sampler = evlist->nr_evsels;
		everywhere = everywhere || (ev->everywhere && target->tids);
		ret = add_event(evlist, decoder, ev, &cpus, err);
	}
	if (everywhere)
		evlist->per_thread = false;
	/* Task records have their own rings, one per CPU, unless the target is threads. */
	return ret ? ret
		   : add_evsel(evlist, decoder, &attr, NULL, &all,
			       target->tids && !everywhere ? GROUP_EVENTS : GROUP_TASKS, err);
}

static int init_targets(struct evlist *evlist, struct error *err)
{
	const struct source_target *target = &evlist->target;

	for (int i = 0; i < NR_GROUPS; i++)
		evlist->targets[i] = (struct targets){.list = &any_task, .n = 1};
	if (target->tids)
		evlist->targets[GROUP_EVENTS] =
			(struct targets){.list = target->tids, .n = target->nr_tids};
	if (!target->cgroups)
		return 0;
	evlist->nr_cgroup_fds = cgroups_open(target->cgroups, &evlist->cgroup_fds, err);
	if (evlist->nr_cgroup_fds < 0)
		return evlist->nr_cgroup_fds;
	evlist->targets[GROUP_EVENTS] = (struct targets){.list = evlist->cgroup_fds,
							 .n = evlist->nr_cgroup_fds,
							 .flags = PERF_FLAG_PID_CGROUP};
	return 0;
}

struct evlist *evlist_new(const struct event_request *requests, uint32_t n,
			  const struct source_target *target, struct decoder *decoder,
			  struct error *err)
{
	struct evlist *evlist = calloc(1, sizeof(*evlist));

	if (!evlist) {
		error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	evlist->requests = requests;
	evlist->nr_requests = n;
	evlist->target = *target;
	probe_kernel(evlist);
	if (init_events(evlist, decoder, err) || init_targets(evlist, err)) {
		evlist_free(evlist);
		return NULL;
	}
	return evlist;
}

void evlist_free(struct evlist *evlist)
{
	if (!evlist)
		return;
	for (int i = 0; i < evlist->nr_cgroup_fds; i++)
		close(evlist->cgroup_fds[i]);
	free(evlist->cgroup_fds);
	free(evlist->evsels);
	free(evlist->counted);
	free(evlist);
}

bool evlist_is_for(const struct evlist *evlist, const struct evsel *sel, int cpu)
{
	return evlist->per_thread || cpus_has(&sel->cpus, cpu);
}

static uint64_t nr_cpus(const struct evlist *evlist, const struct cpus *of)
{
	struct cpus cpus = evlist->cpus;
	uint64_t n = 0;

	cpus_and(&cpus, of);
	for (int cpu = -1; (cpu = cpus_next(&cpus, cpu)) >= 0;)
		n++;
	return n;
}

uint64_t evlist_nr_files(const struct evlist *evlist)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < evlist->nr_evsels; i++) {
		const struct evsel *sel = &evlist->evsels[i];
		uint64_t targets = evlist->targets[sel->group].n;

		n += targets * (evlist->per_thread ? 1 : nr_cpus(evlist, &sel->cpus));
	}
	n += (uint64_t)evlist->nr_counted * evlist->targets[GROUP_EVENTS].n *
	     (evlist->counts_threads ? 1 : nr_cpus(evlist, &evlist->cpus));
	return n;
}
