/* SPDX-License-Identifier: GPL-2.0-only */
/* What a session tells about itself and its events, besides its batches. */
#include "session/session_state.h"
#include "session/groups.h"
#include <math.h>
#include "decode/decoder.h"
#include "decode/sample.h"
#include "os/cpus.h"
#include "push/excerpt.h"
#include "stacks/resolve.h"
#include "os/workload.h"

void session_read_counts(struct session *s, struct counts *out)
{
	s->source->ops->read_counts(s->source, out);
}

struct tasks *session_tasks(struct session *s, uint32_t member)
{
	return s->machines[member].tasks;
}

struct stacks *session_stacks(struct session *s, uint32_t member)
{
	struct resolve *resolve = member < s->nr_machines ? s->machines[member].resolve : NULL;

	return resolve ? resolve_stacks(resolve) : NULL;
}

struct srclines *session_srclines(struct session *s, uint32_t member)
{
	return s->machines[member].resolve ? resolve_srclines(s->machines[member].resolve) : NULL;
}

/* Makes the stacks of all machines different numbers. */
static uint32_t stack_of(const struct event *ev, uint32_t id)
{
	return id | (uint32_t)(ev->flags >> EVENT_MEMBER_SHIFT) << STACK_MEMBER_SHIFT;
}

uint32_t session_stack(struct session *s, const struct event *ev)
{
	struct resolve *resolve = session_machine(s, ev)->resolve;

	return resolve ? stack_of(ev, resolve_stack(resolve, ev)) : 0;
}

uint32_t session_address(struct session *s, const struct event *ev, uint64_t address)
{
	struct resolve *resolve = session_machine(s, ev)->resolve;

	return resolve ? stack_of(ev, resolve_address(resolve, ev, address)) : 0;
}

const uint64_t *session_sample_part(const struct session *s, const struct event *ev, uint64_t bit,
				    uint32_t *size)
{
	const struct perf_event_attr *attr =
		decoder_attr_of_class(session_machine(s, ev)->source->decoder, ev->class);

	if (attr && bit == PERF_SAMPLE_CGROUP && attr->sample_type & PERF_SAMPLE_RAW) {
		if (!sample_has_cgroup_after_raw(attr->sample_type) ||
		    ev->raw_size < sizeof(uint64_t))
			return NULL;
		*size = 1;
		return (const uint64_t *)(ev->raw + ev->raw_size - sizeof(uint64_t));
	}
	return attr && (attr->sample_type & bit)
		       ? sample_part(attr, (const uint64_t *)ev->raw, ev->raw_size / 8, bit, size)
		       : NULL;
}

uint64_t session_own_count(const struct session *s, const struct event *ev)
{
	const struct perf_event_attr *attr =
		decoder_attr_of_class(session_machine(s, ev)->source->decoder, ev->class);

	if (!attr || !(attr->sample_type & PERF_SAMPLE_READ))
		return 0;
	if (!(attr->sample_type & PERF_SAMPLE_RAW)) /* its payload is the words before the count */
		return *(const uint64_t *)(ev->raw + ev->raw_size);
	return *sample_read_before(attr, ev->chain ? (const void *)ev->chain
						   : ev->raw - sizeof(uint32_t));
}

uint64_t session_sample_registers(const struct session *s, uint16_t class, uint64_t bit)
{
	const struct perf_event_attr *attr = NULL;

	for (uint32_t i = 0; i < s->nr_machines && !attr; i++)
		attr = decoder_attr_of_class(s->machines[i].source->decoder, class);
	if (!attr)
		return 0;
	return bit == PERF_SAMPLE_REGS_USER ? attr->sample_regs_user : attr->sample_regs_intr;
}

bool session_read_resolve_stats(const struct session *s, struct resolve_stats *out)
{
	if (s->machines[0].resolve)
		resolve_read_stats(s->machines[0].resolve, out);
	return s->machines[0].resolve;
}

void session_read_stats(const struct session *s, struct session_stats *out)
{
	*out = s->stats;
	if (s->workload)
		out->workload_ns = workload_ns(s->workload);
	if (s->source->ops->position)
		out->read = s->source->ops->position(s->source, &out->size);
	out->end_time = s->source->info.is_recorded || !s->stopped || s->stop_time == UINT64_MAX
				? out->to
				: (double)(int64_t)(s->stop_time - s->base);
}

void session_read_clock(const struct session *s, struct session_clock *out)
{
	out->base = s->base;
	out->wall_sec = s->source->info.wall_sec + floor(s->base / 1e9);
	out->wall_nsec = s->source->info.wall_nsec + s->base % 1000000000;
}

void session_share_wall(struct session *s, const struct session *with)
{
	s->source->info.wall_sec = with->source->info.wall_sec;
	s->source->info.wall_nsec = with->source->info.wall_nsec;
}

uint64_t session_exact_time(const struct session *s, double time)
{
	return s->base + (uint64_t)(int64_t)time;
}

const struct source_clock *session_source_clock(const struct session *s)
{
	return &s->source->info.clock;
}

const char *session_arch(const struct session *s, uint32_t member)
{
	const char *arch = s->machines[member].source->info.arch;

	return arch ? arch : "";
}

int session_cache_sharer(const struct session *s, int level, int cpu)
{
	const uint16_t *first = level >= 1 && level <= CACHE_LEVELS
					? s->source->info.first_sharers[level - 1]
					: NULL;

	return first && cpu >= 0 && cpu < CPUS_MAX ? first[cpu] - 1 : -1;
}

const char *session_group(const struct session *s, uint32_t member, uint64_t id)
{
	return groups_path(s->machines[member].groups, id);
}

uint64_t session_group_id(const struct session *s, uint32_t i)
{
	return groups_id(s->machines[0].groups, i);
}

int session_cpu_node(const struct session *s, uint32_t member, int cpu)
{
	const uint16_t *nodes = s->machines[member].source->info.nodes;

	return nodes && cpu >= 0 && cpu < CPUS_MAX ? nodes[cpu] - 1 : -1;
}

const char *session_warning(const struct session *s)
{
	return s->source->warning.text[0] ? s->source->warning.text : NULL;
}

const char *session_take_notice(struct session *s, uint32_t *urgent)
{
	s->notice = s->source->notice;
	*urgent = s->source->is_urgent;
	s->source->is_urgent = false;
	s->source->notice.text[0] = 0;
	return s->notice.text;
}

int session_take_cpu(struct session *s)
{
	return s->source->ops->next_cpu ? s->source->ops->next_cpu(s->source) : -1;
}

const int32_t *session_threads(const struct session *s, uint32_t *n)
{
	*n = s->marked ? s->nr_marked : s->nr_tids;
	return s->marked ? s->marked : s->tids;
}

int32_t session_per_thread(const struct session *s)
{
	return s->per_thread;
}

int32_t session_loss_is_local(const struct session *s)
{
	return !s->per_thread || s->source->ring_tid;
}

/* Whether a record is that of an event. */
static bool is_of(const struct slot *slot, const struct event *ev)
{
	const struct perf_event_header *rec = slot->rec;
	const uint8_t *end = (const uint8_t *)rec + rec->size;

	return ev->raw >= (const uint8_t *)rec && ev->raw < end;
}

/* Whether a record is about all events that come: of a task, or of a loss since the dump's start.
 */
static bool is_about_all(const struct session *s, const struct slot *slot)
{
	const struct perf_event_header *rec = slot->rec;

	if (rec->type == PERF_RECORD_LOST || rec->type == PERF_RECORD_LOST_SAMPLES)
		return slot->time >= s->source->dump_from;
	return rec->type != PERF_RECORD_SAMPLE;
}

int session_copy(struct session *s, struct excerpt *x, const struct event *ev, const char *name,
		 struct error *err)
{
	int ret = 0;

	while (s->next_copied < s->next_slot && !ret) {
		const struct slot *slot = &s->slots[s->next_copied++];
		const struct perf_event_header *rec = slot->rec;
		bool found = ev && rec->type == PERF_RECORD_SAMPLE && is_of(slot, ev);

		if (found && name)
			ret = excerpt_name(x, ev->pid, ev->tid, name, slot->time, err);
		if (!ret && (found || is_about_all(s, slot)))
			ret = excerpt_add(x, slot, err);
		if (found)
			break;
	}
	return ret;
}
