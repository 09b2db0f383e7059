/* SPDX-License-Identifier: GPL-2.0-only */
/* What a live source is attached to: cpus, which come and go, or threads; their rings and counters.
 */
#include "live/live_state.h"
#include <errno.h>
#include <stdlib.h>
#include "live/hotplug.h"
#include "live/ring.h"
#include "run/wall.h"

enum { HOTPLUG_PERIOD = 100000000 /* ns */ };

/* array: address of the pointer to the array. */
static int grow(void *array, uint32_t n, size_t size)
{
	void *grown = reallocarray(*(void **)array, n, size);

	if (!grown)
		return -ENOMEM;
	*(void **)array = grown;
	return 0;
}

static int grow_for(struct live *live, uint32_t rings)
{
	return grow(&live->poll, rings, sizeof(*live->poll)) ||
			       grow(&live->origins, rings, sizeof(*live->origins)) ||
			       grow(&live->ring_tid, rings, sizeof(*live->ring_tid))
		       ? -ENOMEM
		       : 0;
}

static int add_ring(struct live *live, struct unit *unit, uint32_t number)
{
	const struct unit_ring *from = unit_ring(unit, number);
	uint32_t at = merge_nr_rings(live->merge);
	struct ring *ring;

	if (grow_for(live, at + 1))
		return -ENOMEM;
	ring = (from->is_backward ? ring_new_backward : ring_new)(from->base, from->pages,
								  live->source.decoder);
	if (!ring || merge_add(live->merge, ring)) {
		ring_free(ring);
		return -ENOMEM;
	}
	live->poll[at] = (struct pollfd){.fd = unit_ring_fd(unit, number, 0), .events = POLLIN};
	live->origins[at] = (struct origin){.unit = unit, .ring = number};
	live->ring_tid[at] = from->tid;
	live->nr_lasting += from->group != GROUP_EVENTS;
	return 0;
}

/* Makes the rings of a unit readable. The decoder must know the ids by now. */
static int add_rings(struct live *live, struct unit *unit, struct error *err)
{
	for (uint32_t i = 0; i < unit_nr_rings(unit); i++)
		if (add_ring(live, unit, i))
			return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

/* Makes the rings that BPF programs write to readable. */
static int add_bpf_rings(struct live *live, struct error *err)
{
	uint32_t at = merge_nr_rings(live->merge);

	if (bpf_rings_add(live->bpf, live->merge, live->source.decoder) ||
	    grow_for(live, merge_nr_rings(live->merge)))
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < bpf_rings_nr(live->bpf); i++) {
		live->poll[at + i] =
			(struct pollfd){.fd = bpf_rings_fd(live->bpf, i), .events = POLLIN};
		live->origins[at + i] =
			(struct origin){.is_level = bpf_rings_is_level(live->bpf, i)};
		live->ring_tid[at + i] = -1;
	}
	live->nr_lasting += bpf_rings_nr(live->bpf);
	return 0;
}

uint64_t live_untold(const struct live *live, const struct unit *unit)
{
	uint64_t lost = unit_lost(unit), told = 0;

	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		const struct origin *o = &live->origins[i];

		if (o->unit == unit && unit_ring(unit, o->ring)->has_events)
			told += ring_lost(merge_ring(live->merge, i));
	}
	return lost > told ? lost - told : 0;
}

/* Opens what is counted on a cpu, -1: of the threads. A negative errno with a message. */
static int count(struct live *live, const struct unit *unit, int cpu, struct error *err)
{
	uint32_t n = live->nr_counters;
	int code = 0;

	if (grow(&live->counters, n + 1, sizeof(*live->counters)))
		return error_set(err, -ENOMEM, "out of memory");
	live->counters[n] = counters_open(live->plan, unit, cpu, live->tally, &code, err);
	live->nr_counters += !code;
	return code;
}

/* Whether any of what is counted is for the cpu. */
static bool is_counted_on(const struct plan *p, int cpu)
{
	for (uint32_t i = 0; i < p->nr_counted; i++)
		if (!p->counts_threads && cpus_has(&p->counted[i].cpus, cpu))
			return true;
	return false;
}

/* Opens the unit of a cpu, -1: of the threads. NULL with a message. */
static struct attached *attach(struct live *live, int cpu, int *code, struct error *err)
{
	struct attached *a = calloc(1, sizeof(*a));

	if (!a || grow(&live->attached, live->nr_attached + 1, sizeof(*live->attached))) {
		free(a);
		*code = error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	a->cpu = cpu;
	a->unit = unit_open(live->plan, live->source.decoder, cpu, code, err);
	if (!a->unit) {
		free(a);
		return NULL;
	}
	if (cpu >= 0 && is_counted_on(live->plan, cpu)) {
		*code = count(live, a->unit, cpu, err);
		if (*code) {
			unit_close(a->unit);
			free(a);
			return NULL;
		}
	}
	live->attached[live->nr_attached++] = a;
	return a;
}

static void detach(struct live *live, uint32_t index)
{
	struct attached *a = live->attached[index];

	live->untold += live_untold(live, a->unit);
	for (uint32_t i = merge_nr_rings(live->merge); i-- > 0;) {
		uint32_t last = merge_nr_rings(live->merge) - 1;

		if (live->origins[i].unit != a->unit)
			continue;
		merge_remove(live->merge, i);
		live->poll[i] = live->poll[last];
		live->origins[i] = live->origins[last];
		live->ring_tid[i] = live->ring_tid[last];
	}
	unit_close(a->unit);
	free(a);
	live->attached[index] = live->attached[--live->nr_attached];
}

static void note(struct live *live, int cpu, const char *what)
{
	struct error *notice = &live->source.notice;

	error_set(notice, 0, "%s%sCPU #%d %s", notice->text, notice->text[0] ? "; " : "", cpu,
		  what);
}

/* The last counts of a cpu go to the tally. */
static void uncount(struct live *live, int cpu)
{
	for (uint32_t i = live->nr_counters; i-- > 0;) {
		if (counters_cpu(live->counters[i]) != cpu)
			continue;
		counters_read(live->counters[i]);
		counters_close(live->counters[i]);
		live->counters[i] = live->counters[--live->nr_counters];
	}
}

/* The cpu's events are gone for good, but what they wrote before is still to be read. */
static void cpu_went(struct live *live, struct attached *a)
{
	a->gone = true;
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++)
		if (live->origins[i].unit == a->unit)
			live->poll[i].fd = -1;
	uncount(live, a->cpu);
	note(live, a->cpu, "went offline");
}

int live_enable_counters(struct live *live, int cpu, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < live->nr_counters && !ret; i++)
		if (counters_cpu(live->counters[i]) == cpu || cpu < 0)
			ret = counters_enable(live->counters[i], err);
	return ret;
}

/* What the cpu did before its events count is a hole in the stream. */
static void cpu_came(struct live *live, int cpu)
{
	struct error err = {0};
	struct attached *a;
	int code;

	a = attach(live, cpu, &code, &err);
	if (!a && code == -ENODEV) /* it is offline again, which was announced too */
		return;
	if (!a || add_rings(live, a->unit, &err) || unit_enable(a->unit, &err) ||
	    live_enable_counters(live, cpu, &err)) {
		error_set(&err, 0, "came online, but: %s", err.text);
		note(live, cpu, err.text);
		uncount(live, cpu);
		if (a)
			detach(live, live->nr_attached - 1);
		return;
	}
	note(live, cpu, "came online");
	a->has_hole = unit_has_events(a->unit) || is_counted_on(live->plan, cpu);
	a->hole_from = live->hotplug_checked;
	a->hole = (struct loss){.header = {.type = PERF_RECORD_LOST, .size = sizeof(a->hole)},
				.time = wall_monotonic(),
				.cpu = cpu};
}

static bool is_drained(const struct live *live, const struct unit *unit)
{
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		struct ring *ring = merge_ring(live->merge, i);

		if (live->origins[i].unit == unit &&
		    (ring_snapshot(ring) || ring_peek(ring) != UINT64_MAX))
			return false;
	}
	return true;
}

static void follow_changes(struct live *live, const struct cpus *changed)
{
	struct cpus online, attached = {0};

	if (cpus_online(&online, NULL))
		return;
	for (uint32_t i = 0; i < live->nr_attached; i++) {
		struct attached *a = live->attached[i];

		if (!a->gone && (cpus_has(changed, a->cpu) || !cpus_has(&online, a->cpu)))
			cpu_went(live, a);
		if (!a->gone)
			cpus_add(&attached, a->cpu);
	}
	cpus_subtract(&online, &attached);
	for (int cpu = -1; (cpu = cpus_next(&online, cpu)) >= 0;)
		cpu_came(live, cpu);
}

void live_follow_cpus(struct live *live)
{
	struct cpus changed = {0};

	for (uint32_t i = live->nr_attached; i-- > 0;)
		if (live->attached[i]->gone && is_drained(live, live->attached[i]->unit))
			detach(live, i);
	if (hotplug_changed(live->hotplug, &changed))
		follow_changes(live, &changed);
	live->hotplug_checked = merge_time(live->merge);
	live->hotplug_next = live->hotplug_checked + HOTPLUG_PERIOD;
}

int live_attach_all(struct live *live, struct error *err)
{
	const struct plan *p = live->plan;
	int code = 0;

	if (p->per_thread)
		attach(live, -1, &code, err);
	for (int cpu = -1; !p->per_thread && !code && (cpu = cpus_next(&p->cpus, cpu)) >= 0;)
		attach(live, cpu, &code, err);
	if (!code && p->nr_counted && p->counts_threads)
		code = count(live, NULL, -1, err);
	return code;
}

int live_add_rings(struct live *live, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < live->nr_attached && !ret; i++)
		ret = add_rings(live, live->attached[i]->unit, err);
	return !ret && live->bpf ? add_bpf_rings(live, err) : ret;
}
