/* SPDX-License-Identifier: GPL-2.0-only */
/* Set-up and end of a session: its source, events, target and priority. */
#include "session/session_state.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "clocks/clock_axis.h"
#include "clocks/vm.h"
#include "os/clock.h"
#include "os/closer.h"
#include "os/priority.h"
#include "probes/probe.h"
#include "push/excerpt.h"
#include "push/push.h"
#include "decode/records.h"
#include "formats/formats.h"
#include "pull/join.h"
#include "pull/remote.h"
#include "stacks/resolve.h"
#include "process/signals.h"
#include "session/family.h"
#include "session/groups.h"
#include "session/tasks.h"
#include "session/vcpus.h"
#include "os/threads.h"
#include "os/workload.h"
#include "wire/own_records.h"

enum {
	MARK = 1, /* of target threads */
	MARK_AT_EXEC = 2,
	MAX_EXITED_TASKS = 65536,
	MANY_TRACEPOINTS = 16 /* to close them takes the better part of a second */
};

/* Returns whether there was memory. */
static bool add_machine(struct session *s, struct source *source)
{
	struct machine *grown = reallocarray(s->machines, s->nr_machines + 1, sizeof(*grown));

	if (!grown)
		return false;
	s->machines = grown;
	grown[s->nr_machines] = (struct machine){
		.source = source, .tasks = tasks_new(MAX_EXITED_TASKS), .groups = groups_new()};
	s->nr_machines++;
	return grown[s->nr_machines - 1].tasks && grown[s->nr_machines - 1].groups;
}

struct session *session_new(struct source *source)
{
	struct session *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);

	if (s) {
		memset(s, 0, sizeof(*s));
		s->source = source;
		s->end_at = UINT64_MAX;
		if (add_machine(s, source))
			return s;
		free(s->machines);
	}
	free(s);
	source->ops->free(source);
	return NULL;
}

int session_add_machine(struct session *s, struct source *remote, struct error *err)
{
	int index;

	if (s->nr_machines == 1) {
		struct source *join = join_new(s->source);

		if (!join) {
			remote->ops->free(remote);
			return error_set(err, -ENOMEM, "out of memory");
		}
		s->source = join;
	}
	index = join_add(s->source, remote, err);
	if (index > 0 && !add_machine(s, remote))
		return error_set(err, -ENOMEM, "out of memory");
	if (index > 0 && remote_vm(remote)) {
		s->machines[index].vcpus = vcpus_new(remote_vm(remote));
		if (!s->machines[index].vcpus)
			return error_set(err, -ENOMEM, "out of memory");
	}
	return index;
}

void session_follow_vms(struct session *s)
{
	for (uint32_t i = 1; i < s->nr_machines; i++) {
		struct machine *m = &s->machines[i];
		const struct vm *vm = remote_vm(m->source);
		struct vcpus *vcpus;

		if (!m->vcpus || vcpus_pid(m->vcpus) == vm->pid)
			continue;
		vcpus = vcpus_new(vm);
		if (!vcpus)
			continue;
		vcpus_free(m->vcpus);
		m->vcpus = vcpus;
		tasks_scan(s->machines[0].tasks);
	}
}

void session_set_slack(struct session *s, uint64_t ns)
{
	if (s->nr_machines > 1)
		join_set_slack(s->source, ns);
}

uint32_t session_machines(const struct session *s)
{
	return s->nr_machines;
}

void session_tell_axis(struct session *s, struct clock_axis *axis)
{
	for (uint32_t i = 1; i < s->nr_machines; i++) {
		const struct vm *vm = remote_vm(s->machines[i].source);
		struct wire_pair pair;

		if (vm && vm->pid == clock_axis_vm(axis) &&
		    remote_take_pair(s->machines[i].source, &pair))
			clock_axis_add_guest_pair(axis, pair.tsc, pair.clock, pair.read_error_ns);
	}
}

double session_clock_error(const struct session *s, uint32_t member, const char **method)
{
	return member ? remote_clock_error(s->machines[member].source, method) : 0;
}

const char *session_host(const struct session *s, uint32_t member)
{
	return s->machines[member].source->info.host;
}

/* Frees the source. Probes can be removed only when their events are closed. */
static void free_source(struct session *s)
{
	bool is_slow = !s->source->info.is_recorded && s->nr_tracepoints >= MANY_TRACEPOINTS;
	struct closer *closer = is_slow && !s->probes ? closer_start() : NULL;

	s->source->ops->free(s->source);
	closer_release(closer);
	probes_free(s->probes);
}

void session_free(struct session *s)
{
	if (!s)
		return;
	workload_free(s->workload);
	family_free(s->family);
	free_source(s);
	for (uint32_t i = 0; i < s->nr_machines; i++) {
		tasks_free(s->machines[i].tasks);
		groups_free(s->machines[i].groups);
		vcpus_free(s->machines[i].vcpus);
		resolve_free(s->machines[i].resolve);
	}
	free(s->machines);
	records_free(s->records);
	free(s->tids);
	free(s->marked);
	free(s);
}

bool session_is_recorded(const struct session *s)
{
	return s->source->info.is_recorded;
}

struct formats *session_formats(struct session *s, uint32_t member, struct error *err)
{
	struct source *source = s->machines[member].source;

	return source->ops->formats(source, err);
}

const struct recorded_event *session_recorded_events(const struct session *s, uint32_t member,
						     uint32_t *n)
{
	const struct source_info *info = &s->machines[member].source->info;

	*n = info->nr_events;
	return info->events;
}

uint64_t session_sample_type(const struct session *s, const struct event_request *request)
{
	return s->source->ops->sample_type(s->source, request);
}

bool session_has_records(const struct session *s, uint32_t member, uint32_t kind)
{
	struct source *source = s->machines[member].source;

	return source->ops->has_records(source, kind);
}

struct push *session_push(struct session *s, struct error *err)
{
	struct machine *here = &s->machines[0];

	if (s->push)
		return s->push;
	s->push = push_new(here->source, err);
	if (!s->push)
		return NULL;
	here->source = push_source(s->push);
	if (s->nr_machines > 1)
		join_replace_local(s->source, here->source);
	else
		s->source = here->source;
	return s->push;
}

struct excerpt *session_excerpt(struct session *s, const char *path,
				const struct event_request *const *events, uint32_t n,
				struct error *err)
{
	return excerpt_new(s->machines[0].source, path, events, n, err);
}

int session_add_event(struct session *s, const struct event_request *request, struct error *err)
{
	if (request->record && !s->records) {
		s->records = records_new();
		if (!s->records)
			return error_set(err, -ENOMEM, "out of memory");
	}
	s->stack_parts |= request->callchain;
	s->resolves |= request->callchain || request->resolve;
	s->resolves_data |= request->resolve == 2;
	s->nr_sampled += !request->counted;
	s->nr_tracepoints += request->attr.type == PERF_TYPE_TRACEPOINT;
	return s->source->ops->add_event(s->source, request, err);
}

void session_want(struct session *s, uint16_t class)
{
	s->wanted |= 1u << class;
}

void session_want_stacks(struct session *s, uint32_t parts)
{
	s->stack_parts |= parts;
	s->resolves = true;
}

void session_set_interval(struct session *s, uint64_t interval)
{
	s->interval = interval;
}

void session_set_duration(struct session *s, uint64_t duration)
{
	s->duration = duration;
}

void session_set_window(struct session *s, uint64_t from, uint64_t until)
{
	s->first_time = from;
	s->end_at = until;
}

/* Finds the target threads and returns their number; 0: the target is CPUs or cgroups. */
static int find_threads(struct session *s, const struct session_target *target, struct error *err)
{
	if (s->is_target) {
		s->tids = malloc(sizeof(*s->tids));
		if (!s->tids)
			return error_set(err, -ENOMEM, "out of memory");
		s->tids[0] = workload_pid(s->workload);
		return 1;
	}
	if (!target->nr_pids && !target->nr_tids)
		return 0;
	return threads_list(target->pids, target->nr_pids, target->tids, target->nr_tids, &s->tids,
			    err);
}

/* Marks the threads. Returns whether one of them had no mark before. */
static bool mark(const struct session_target *target, const int32_t *tids, int n, uint8_t value)
{
	bool any = false;

	for (int i = 0; i < n; i++) {
		if ((uint32_t)tids[i] >= target->nr_marks || target->marks[tids[i]])
			continue;
		target->marks[tids[i]] = value;
		any = true;
	}
	return any;
}

/* Finds and marks the target threads. The BPF program marks new threads of marked ones. A process
 * may have created threads before it was marked, so the search is repeated until it finds no more.
 */
static int find_and_mark(struct session *s, const struct session_target *target, struct error *err)
{
	int n = find_threads(s, target, err);
	uint8_t value = s->is_target && !target->everywhere ? MARK_AT_EXEC : MARK;

	while (n > 0 && target->marks && mark(target, s->tids, n, value) && target->nr_pids) {
		free(s->tids);
		s->tids = NULL;
		n = find_threads(s, target, err);
	}
	return n;
}

/* Lists the marked threads. Events report threads that start later. */
static int list_marked(struct session *s, const struct session_target *target, struct error *err)
{
	const uint8_t *end = target->marks + target->nr_marks, *at = target->marks;
	uint32_t room = 0;

	while ((at = memchr(at, 1, end - at))) {
		if (s->nr_marked == room) {
			int32_t *grown;

			room = room ? room * 2 : 64;
			grown = reallocarray(s->marked, room, sizeof(*grown));
			if (!grown)
				return error_set(err, -ENOMEM, "out of memory");
			s->marked = grown;
		}
		s->marked[s->nr_marked++] = at++ - target->marks;
	}
	return 0;
}

/* Sets the scheduling of this process, so that it reads its rings in time. */
static int set_priority(const struct session_target *target, struct error *err)
{
	if (target->realtime)
		return priority_realtime(target->realtime, err);
	priority_hurry();
	return 0;
}

/* Starts the workload, which waits until all is open. */
static int prepare_workload(struct session *s, const struct session_target *target,
			    struct error *err)
{
	if (!target->argv)
		return 0;
	s->workload = workload_new(target->argv, err);
	s->is_target = !target->nr_pids && !target->nr_tids;
	s->follows = s->is_target && target->follow;
	return s->workload ? 0 : -EINVAL;
}

static int open_source(struct session *s, const struct session_target *target, struct error *err)
{
	int n = find_and_mark(s, target, err);
	bool on_threads = n > 0 && !target->everywhere;
	struct source_target source_target = {
		.cpus = target->cpus,
		.tids = on_threads ? s->tids : NULL,
		.nr_tids = on_threads ? n : 0,
		.cgroups = target->cgroups,
		.inherit = on_threads && target->inherit,
		.enable_on_exec = on_threads && s->is_target,
		.pages = target->pages,
		.watermark = target->watermark,
		.overwrite = target->overwrite,
		.mappings = s->resolves,
		.groups = target->groups,
	};

	if (n < 0)
		return n;
	s->nr_tids = n;
	s->per_thread = on_threads;
	s->keeps_newest = target->overwrite;
	if (n && target->follow && !on_threads) {
		s->family = family_new(s->tids, n);
		if (!s->family)
			return error_set(err, -ENOMEM, "out of memory");
	}
	return s->source->ops->open(s->source, &source_target, err);
}

/* Returns the kernel symbols of a recording or of another machine; NULL: they are our kernel's. */
static struct addresses *symbols_of(struct source *source)
{
	return source->info.build_ids ? formats_symbols(source->ops->formats(source, NULL)) : NULL;
}

static int start_resolving(struct session *s, struct error *err)
{
	for (uint32_t i = 0; i < s->nr_machines && s->resolves; i++) {
		struct machine *m = &s->machines[i];
		const struct source_info *info = &m->source->info;

		m->resolve = resolve_new(info->build_ids, info->own_kernel, symbols_of(m->source),
					 s->stack_parts);
		if (!m->resolve)
			return error_set(err, -ENOMEM, "out of memory for stacks");
		if (s->resolves_data)
			resolve_want_data(m->resolve);
	}
	return 0;
}

/* Reads tasks and mappings from /proc. From here on, records report changes. The tasks of another
 * process on this kernel are the same. */
static void scan_tasks(struct session *s)
{
	bool needs_own = s->source->info.is_local;

	for (uint32_t i = 0; i < s->nr_machines; i++)
		needs_own |= !!s->machines[i].vcpus;
	for (uint32_t i = 0; i < s->nr_machines; i++) {
		struct machine *m = &s->machines[i];

		if (i ? remote_is_own_kernel(m->source) : needs_own)
			tasks_scan(m->tasks);
	}
	if (s->machines[0].resolve && s->source->info.is_local)
		resolve_seed(s->machines[0].resolve);
}

static int start_source(struct session *s, const struct session_target *target, struct error *err)
{
	int ret = 0;

	if (s->source->ops->start)
		ret = s->source->ops->start(s->source, err);
	if (!ret && target->marks && !s->per_thread)
		ret = list_marked(s, target, err);
	if (!ret && target->begun)
		__atomic_store_n(target->begun, s->source->start, __ATOMIC_RELEASE);
	if (!ret && s->workload)
		ret = workload_start(s->workload, err);
	if (ret)
		return ret;
	if (s->source->start == UINT64_MAX) {
		uint64_t now = s->source->ops->now(s->source);

		/* The first event of another machine may never come. */
		if (s->duration && now != UINT64_MAX)
			s->end_at = now + s->duration;
		else if (s->duration && (s->source->info.host || s->nr_machines > 1))
			s->give_up_at = clock_monotonic() + s->duration;
		return 0;
	}
	session_set_base(s, s->source->start);
	if (!s->source->info.is_recorded)
		s->first_time = s->base;
	return 0;
}

int session_start(struct session *s, const struct session_target *target, struct error *err)
{
	int ret = start_resolving(s, err);

	if (!ret)
		ret = prepare_workload(s, target, err);
	if (!ret)
		ret = open_source(s, target, err);
	if (!ret && !s->source->info.is_recorded)
		ret = set_priority(target, err);
	if (!ret)
		scan_tasks(s);
	if (!ret)
		ret = start_source(s, target, err);
	if (!ret)
		signals_install();
	return ret;
}

struct probes *session_probes(struct session *s, struct error *err)
{
	if (!s->probes)
		s->probes = probes_new(NULL, err);
	return s->probes;
}
