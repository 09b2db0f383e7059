/* SPDX-License-Identifier: GPL-2.0-only */
/* A session until it starts: its recording or its events, what they are attached to, its end. */
#include "session/session_state.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include "live/bpf_ring.h"
#include "stacks/buildids.h"
#include "decode/decoder.h"
#include "live/live.h"
#include "os/priority.h"
#include "probes/probe.h"
#include "recording/recording.h"
#include "decode/records.h"
#include "stacks/resolve.h"
#include "os/signals.h"
#include "session/tasks.h"
#include "os/threads.h"
#include "formats/formats.h"
#include "stacks/unwind.h"
#include "os/clock.h"
#include "os/workload.h"

enum { MAX_EXITED_TASKS = 65536 };

struct session *session_new(void)
{
	struct session *s = aligned_alloc(64, (sizeof(*s) + 63) / 64 * 64);

	if (!s)
		return NULL;
	memset(s, 0, sizeof(*s));
	s->wall_sec = NAN;
	s->end_at = UINT64_MAX;
	s->tasks = tasks_new(MAX_EXITED_TASKS);
	if (!s->tasks) {
		free(s);
		return NULL;
	}
	return s;
}

void session_free(struct session *s)
{
	if (!s)
		return;
	workload_free(s->workload);
	if (s->recording)
		recording_close(s->recording);
	else if (s->source)
		s->source->ops->free(s->source);
	probes_free(s->probes); /* which no event may use then */
	formats_free(s->formats);
	tasks_free(s->tasks);
	resolve_free(s->resolve);
	records_free(s->records);
	for (uint32_t i = 0; i < s->nr_events; i++) {
		free((char *)s->events[i].name);
		free((char *)s->events[i].config1_text);
		free((char *)s->events[i].filter);
		free((char *)s->events[i].cpus);
	}
	free(s->events);
	free(s->outputs);
	free(s->tids);
	free(s->marked);
	free(s);
}

int session_open_recording(struct session *s, const char *path, struct error *err)
{
	s->recording = recording_open(path, err);
	if (!s->recording)
		return -EINVAL;
	s->source = recording_source(s->recording);
	return 0;
}

struct formats *session_formats(struct session *s, struct error *err)
{
	if (s->recording)
		return recording_formats(s->recording);
	if (!s->formats)
		s->formats = formats_open_tracefs(err);
	return s->formats;
}

int session_recorded_event(const struct session *s, uint32_t index, struct session_event *out)
{
	const struct perf_event_attr *attr;

	if (!s->recording || index >= (uint32_t)decoder_nr_attrs(s->source->decoder))
		return -ENOENT;
	attr = decoder_attr(s->source->decoder, index);
	memset(out, 0, sizeof(*out));
	out->name = recording_event_name(s->recording, index);
	out->type = attr->type;
	out->config = attr->config;
	out->sample = attr->sample_type;
	return 0;
}

/* Records that are no samples have an attribute only in common. */
static int add_recorded_records(struct session *s, const struct session_event *event,
				struct error *err)
{
	const uint32_t *types = records_types(event->record);

	if (!session_has_records(s, event->record))
		return error_set(err, -ENOENT, "the recording was not told of %s", event->name);
	for (int i = 0; types[i]; i++)
		if (decoder_add_record(s->source->decoder, -1, types[i], event->class))
			return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

static int add_recorded(struct session *s, const struct session_event *event, struct error *err)
{
	struct decoder *d = s->source->decoder;
	int found = 0;

	if (event->record)
		return add_recorded_records(s, event, err);

	for (int i = 0; i < decoder_nr_attrs(d); i++) {
		const struct perf_event_attr *attr = decoder_attr(d, i);

		if (attr->type != event->type || attr->config != event->config)
			continue;
		if (event->stack_dump && !unwind_is_for(attr))
			return error_set(err, -ENODATA,
					 "the recording of %s has no copies of stacks to unwind: "
					 "perf record --call-graph dwarf makes them",
					 event->name);
		if (event->perf_event)
			decoder_set_payload(d, i, sample_payload(event->sample));
		if (decoder_add_class(d, i, event->class, event->payload))
			return error_set(err, -E2BIG, "%s is asked for too many times",
					 event->name);
		found++;
	}
	if (!found)
		return error_set(err, -ENOENT, "the recording has no samples of %s; it has %s",
				 event->name, recording_event_names(s->recording));
	return 0;
}

bool session_has_records(const struct session *s, uint32_t kind)
{
	struct decoder *d = s->recording ? s->source->decoder : NULL;

	for (int i = 0; d && i < decoder_nr_attrs(d); i++)
		if (records_are_asked(decoder_attr(d, i), kind))
			return true;
	return !d && !records_support(kind);
}

int session_add_event(struct session *s, const struct session_event *event, struct error *err)
{
	struct live_event *grown;

	if (event->record && !s->records) {
		s->records = records_new();
		if (!s->records)
			return error_set(err, -ENOMEM, "out of memory");
	}
	s->stack_parts |= event->callchain;
	s->resolves |= event->callchain || event->resolve;
	if (s->recording)
		return add_recorded(s, event, err);
	grown = realloc(s->events, (s->nr_events + 1) * sizeof(*grown));
	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	s->events = grown;
	grown[s->nr_events++] = (struct live_event){
		.name = strdup(event->name),
		.type = event->type,
		.config = event->config,
		.config1 = event->config1,
		.config2 = event->config2,
		.bp_type = event->bp_type,
		.config1_text = event->config1_text ? strdup(event->config1_text) : NULL,
		.period = event->period,
		.freq = event->freq,
		.filter = event->filter ? strdup(event->filter) : NULL,
		.class = event->class,
		.cpus = event->cpus ? strdup(event->cpus) : NULL,
		.everywhere = event->everywhere,
		.callchain = event->callchain,
		.max_stack = event->max_stack,
		.stack_dump = event->stack_dump,
		.exclude_user = event->exclude_user,
		.exclude_kernel = event->exclude_kernel,
		.exclude_host = event->exclude_host,
		.exclude_guest = event->exclude_guest,
		.exclude_idle = event->exclude_idle,
		.perf_event = event->perf_event,
		.resolve = event->resolve,
		.precise = event->precise,
		.wakeup = event->wakeup,
		.sample = event->sample,
		.regs_user = event->regs_user,
		.regs_intr = event->regs_intr,
		.program = event->program,
		.through = event->through,
		.payload = event->payload,
		.counted = event->counted,
		.reads = event->reads,
		.record = event->record,
		.group = event->group,
	};
	s->nr_sampled += !event->counted;
	return 0;
}

int session_add_output(struct session *s, const struct bpf_output *output, struct error *err)
{
	struct bpf_output *grown = reallocarray(s->outputs, s->nr_outputs + 1, sizeof(*grown));

	if (!grown)
		return error_set(err, -ENOMEM, "out of memory");
	s->outputs = grown;
	grown[s->nr_outputs++] = *output;
	return 0;
}

void session_want(struct session *s, uint16_t class)
{
	s->wanted |= 1u << class;
}

void session_set_interval(struct session *s, uint64_t interval)
{
	s->interval = interval;
}

void session_set_duration(struct session *s, uint64_t duration)
{
	s->duration = duration;
}

/* The threads of the target; none: it is cpus or cgroups. */
static int find_threads(struct session *s, const struct session_target *target, struct error *err)
{
	if (target->argv) {
		s->workload = workload_new(target->argv, err);
		s->tids = s->workload ? malloc(sizeof(*s->tids)) : NULL;
		if (!s->tids)
			return s->workload ? error_set(err, -ENOMEM, "out of memory") : -EINVAL;
		s->tids[0] = workload_pid(s->workload);
		return 1;
	}
	if (!target->nr_pids && !target->nr_tids)
		return 0;
	return threads_list(target->pids, target->nr_pids, target->tids, target->nr_tids, &s->tids,
			    err);
}

/* Whether one of the threads had no mark. */
static bool mark(const struct session_target *target, const int32_t *tids, int n)
{
	bool any = false;

	for (int i = 0; i < n; i++) {
		if ((uint32_t)tids[i] >= target->nr_marks || target->marks[tids[i]])
			continue;
		target->marks[tids[i]] = 1;
		any = true;
	}
	return any;
}

/* What a thread with a mark starts gets one by the BPF program: only threads that were started
 * before are still to be found. */
static int find_and_mark(struct session *s, const struct session_target *target, struct error *err)
{
	int n = find_threads(s, target, err);

	while (n > 0 && target->marks && mark(target, s->tids, n) && target->nr_pids) {
		free(s->tids);
		s->tids = NULL;
		n = find_threads(s, target, err);
	}
	return n;
}

/* Threads that begin from here on are told by events. */
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

static int open_live(struct session *s, const struct session_target *target, struct error *err)
{
	int n = find_and_mark(s, target, err);
	bool on_threads = n > 0 && !target->everywhere;
	struct live_config config = {
		.events = s->events,
		.nr_events = s->nr_events,
		.outputs = s->outputs,
		.nr_outputs = s->nr_outputs,
		.cpus = target->cpus,
		.tids = on_threads ? s->tids : NULL,
		.nr_tids = on_threads ? n : 0,
		.cgroups = target->cgroups,
		.inherit = on_threads && target->inherit,
		.enable_on_exec = on_threads && target->argv,
		.pages = target->pages,
		.watermark = target->watermark,
		.overwrite = target->overwrite,
	};

	if (n < 0)
		return n;
	s->nr_tids = n;
	s->per_thread = on_threads;
	s->source = live_open(&config, err);
	if (!s->source)
		return -EINVAL;
	if (target->realtime)
		return priority_realtime(target->realtime, err);
	priority_hurry();
	return 0;
}

/* Whether the recording is of the kernel that runs here: by its build id, or at least its release.
 */
static bool is_own_kernel(const struct recording *r)
{
	uint8_t theirs[BUILD_ID_MAX], ours[BUILD_ID_MAX];
	uint32_t size = buildids_find(recording_build_ids(r), BUILDIDS_KERNEL, theirs);
	uint32_t our_size = buildids_own_kernel(ours);
	struct utsname here;

	if (size && our_size)
		return size == our_size && memcmp(theirs, ours, size) == 0;
	return !uname(&here) && strcmp(here.release, recording_release(r)) == 0;
}

static int start_resolving(struct session *s, struct error *err)
{
	const struct buildids *ids = s->recording ? recording_build_ids(s->recording) : NULL;

	if (!s->resolves)
		return 0;
	s->resolve = resolve_new(ids, !ids || is_own_kernel(s->recording), s->stack_parts);
	return s->resolve ? 0 : error_set(err, -ENOMEM, "out of memory for stacks");
}

int session_start(struct session *s, const struct session_target *target, struct error *err)
{
	int ret = start_resolving(s, err);

	if (ret)
		return ret;
	if (s->recording) {
		ret = decoder_check(s->source->decoder, err);
		if (ret)
			return ret;
		if (is_own_kernel(s->recording) &&
		    formats_use_own_symbols(recording_formats(s->recording)))
			return error_set(err, -ENOMEM, "out of memory for symbols");
		recording_wall_zero(s->recording, &s->wall_sec, &s->wall_nsec);
		/* A little late, should another cpu have had the first sample. */
		if (s->source->start != UINT64_MAX) {
			session_set_base(s, s->source->start);
			s->first_time = s->base;
		}
	} else {
		ret = open_live(s, target, err);
		if (ret)
			return ret;
		ret = live_watch_tasks(s->source, err);
		if (ret)
			return ret;
		tasks_scan(s->tasks);
		if (s->resolve)
			resolve_seed(s->resolve);
		clock_wall_zero(&s->wall_sec, &s->wall_nsec);
		ret = live_enable(s->source, err);
		if (!ret && target->marks)
			ret = list_marked(s, target, err);
		if (!ret && s->workload)
			ret = workload_start(s->workload, err);
		if (ret)
			return ret;
		if (s->source->start != UINT64_MAX) {
			session_set_base(s, s->source->start);
			s->first_time = s->base;
		}
	}
	signals_install();
	return 0;
}

struct probes *session_probes(struct session *s, struct error *err)
{
	if (!s->probes)
		s->probes = probes_new(NULL, err);
	return s->probes;
}
