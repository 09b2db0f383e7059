/* SPDX-License-Identifier: GPL-2.0-only */
/* What a live source is attached to: cpus, which come and go, or threads; their rings and counters.
 */
#include "live/live_state.h"
#include <errno.h>
#include <stdlib.h>
#include "os/hotplug.h"
#include "live/ring.h"
#include "os/clock.h"

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

/* To be called when rings were added or removed. */
static void tell_rings(struct live *live)
{
	live->source.nr_rings = merge_nr_rings(live->merge);
	live->source.ring_tid = live->evlist->per_thread ? live->ring_tid : NULL;
}

static int add_ring(struct live *live, struct evset *evset, uint32_t number)
{
	const struct evset_ring *from = evset_ring(evset, number);
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
	live->poll[at] = (struct pollfd){.fd = evset_ring_fd(evset, number, 0), .events = POLLIN};
	live->origins[at] = (struct origin){.evset = evset, .ring = number};
	live->ring_tid[at] = from->tid;
	live->nr_lasting += from->group != GROUP_EVENTS;
	return 0;
}

/* Makes the rings of a evset readable. The decoder must know the ids by now. */
static int add_rings(struct live *live, struct evset *evset, struct error *err)
{
	for (uint32_t i = 0; i < evset_nr_rings(evset); i++)
		if (add_ring(live, evset, i))
			return error_set(err, -ENOMEM, "out of memory");
	tell_rings(live);
	return 0;
}

/* Makes the rings that BPF programs write to readable, from number `first` of theirs on. */
static int add_bpf_rings(struct live *live, uint32_t first, struct error *err)
{
	for (uint32_t i = first; i < bpf_rings_nr(live->bpf); i++) {
		uint32_t at = merge_nr_rings(live->merge);

		if (grow_for(live, at + 1) ||
		    bpf_rings_add(live->bpf, i, live->merge, live->source.decoder))
			return error_set(err, -ENOMEM, "out of memory");
		live->poll[at] =
			(struct pollfd){.fd = bpf_rings_fd(live->bpf, i), .events = POLLIN};
		live->origins[at] = (struct origin){.is_level = bpf_rings_is_level(live->bpf, i),
						    .bpf_cpu = bpf_rings_cpu(live->bpf, i)};
		live->ring_tid[at] = -1;
		live->nr_lasting++;
	}
	tell_rings(live);
	return 0;
}

uint64_t live_untold(const struct live *live, const struct evset *evset)
{
	uint64_t lost = evset_lost(evset), told = 0;

	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		const struct origin *o = &live->origins[i];

		if (o->evset == evset && evset_ring(evset, o->ring)->has_events)
			told += ring_lost(merge_ring(live->merge, i));
	}
	return lost > told ? lost - told : 0;
}

/* Opens what is counted on a cpu, -1: of the threads. A negative errno with a message. */
static int count(struct live *live, const struct evset *evset, int cpu, struct error *err)
{
	uint32_t n = live->nr_counters;
	int code = 0;

	if (grow(&live->counters, n + 1, sizeof(*live->counters)))
		return error_set(err, -ENOMEM, "out of memory");
	live->counters[n] = counters_open(live->evlist, evset, cpu, live->sums, &code, err);
	live->nr_counters += !code;
	return code;
}

/* Whether any of what is counted is for the cpu. */
static bool is_counted_on(const struct evlist *p, int cpu)
{
	for (uint32_t i = 0; i < p->nr_counted; i++)
		if (!p->counts_threads && cpus_has(&p->counted[i].cpus, cpu))
			return true;
	return false;
}

/* Opens the evset of a cpu, -1: of the threads. NULL with a message. */
static struct attached *attach(struct live *live, int cpu, int *code, struct error *err)
{
	struct attached *a = calloc(1, sizeof(*a));

	if (!a || grow(&live->attached, live->nr_attached + 1, sizeof(*live->attached))) {
		free(a);
		*code = error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	a->cpu = cpu;
	a->evset = evset_open(live->evlist, live->source.decoder, cpu, code, err);
	if (!a->evset) {
		free(a);
		return NULL;
	}
	if (cpu >= 0 && is_counted_on(live->evlist, cpu)) {
		*code = count(live, a->evset, cpu, err);
		if (*code) {
			evset_close(a->evset);
			free(a);
			return NULL;
		}
	}
	live->attached[live->nr_attached++] = a;
	return a;
}

static void remove_ring(struct live *live, uint32_t index)
{
	uint32_t last = merge_nr_rings(live->merge) - 1;

	merge_remove(live->merge, index);
	live->poll[index] = live->poll[last];
	live->origins[index] = live->origins[last];
	live->ring_tid[index] = live->ring_tid[last];
	tell_rings(live);
}

static void detach(struct live *live, uint32_t index)
{
	struct attached *a = live->attached[index];

	live->untold += live_untold(live, a->evset);
	for (uint32_t i = merge_nr_rings(live->merge); i-- > 0;)
		if (live->origins[i].evset == a->evset)
			remove_ring(live, i);
	evset_close(a->evset);
	free(a);
	live->attached[index] = live->attached[--live->nr_attached];
}

static void note(struct live *live, int cpu, const char *what)
{
	struct error *notice = &live->source.notice;

	error_set(notice, 0, "%s%sCPU #%d %s", notice->text, notice->text[0] ? "; " : "", cpu,
		  what);
}

/* NULL: nothing, or no more. */
static struct attached *attached_to(const struct live *live, int cpu)
{
	for (uint32_t i = 0; i < live->nr_attached; i++)
		if (live->attached[i]->cpu == cpu && !live->attached[i]->gone)
			return live->attached[i];
	return NULL;
}

/* The events of threads outlast a cpu's absence. */
static bool follows_evsets(const struct live *live)
{
	return !live->evlist->target.tids;
}

static bool follows_rings(const struct live *live)
{
	return live->bpf && bpf_rings_has_cpus(live->bpf);
}

static bool follows_cpus(const struct live *live)
{
	return follows_evsets(live) || follows_rings(live);
}

/* The last counts of a cpu go to the sums. */
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
static void cpu_went(struct live *live, int cpu)
{
	struct attached *a = follows_evsets(live) ? attached_to(live, cpu) : NULL;

	if (a) {
		a->gone = true;
		uncount(live, cpu);
	}
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		struct origin *o = &live->origins[i];
		bool is_bpf = !o->evset && o->bpf_cpu == cpu;

		if (is_bpf)
			o->bpf_gone = true;
		if (is_bpf || (a && o->evset == a->evset))
			live->poll[i].fd = -1;
	}
	if (follows_cpus(live))
		note(live, cpu, "went offline");
}

int live_enable_counters(struct live *live, int cpu, struct error *err)
{
	int ret = 0;

	for (uint32_t i = 0; i < live->nr_counters && !ret; i++)
		if (counters_cpu(live->counters[i]) == cpu || cpu < 0)
			ret = counters_enable(live->counters[i], err);
	return ret;
}

static int attach_evset(struct live *live, int cpu, struct error *err)
{
	int code;
	struct attached *a = attach(live, cpu, &code, err);

	if (!a)
		return code;
	if (!add_rings(live, a->evset, err) && !evset_enable(a->evset, err) &&
	    !live_enable_counters(live, cpu, err))
		return 0;
	uncount(live, cpu);
	detach(live, live->nr_attached - 1);
	return -EINVAL;
}

static int attach_bpf(struct live *live, int cpu, struct error *err)
{
	uint32_t first = bpf_rings_nr(live->bpf);
	int ret = bpf_rings_come(live->bpf, cpu, live->source.decoder, err);

	return ret ? ret : add_bpf_rings(live, first, err);
}

/* What the cpu did before its events count is a hole in the stream. */
static void add_hole(struct live *live, int cpu)
{
	if (grow(&live->holes, live->nr_holes + 1, sizeof(*live->holes)))
		return;
	live->holes[live->nr_holes++] = (struct hole){
		.from = live->hotplug_checked,
		.loss = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(struct loss)},
			 .time = clock_monotonic(),
			 .cpu = cpu}};
}

static void cpu_came(struct live *live, int cpu)
{
	struct error err = {0};
	struct attached *a;
	int code = 0;

	cpus_add(&live->came, cpu);
	if (!follows_cpus(live))
		return;
	if (follows_evsets(live))
		code = attach_evset(live, cpu, &err);
	if (!code && follows_rings(live))
		code = attach_bpf(live, cpu, &err);
	if (code == -ENODEV) /* it is offline again, which was announced too */
		return;
	if (code) {
		error_set(&err, 0, "came online, but: %s", err.text);
		note(live, cpu, err.text);
		return;
	}
	note(live, cpu, "came online");
	a = attached_to(live, cpu);
	if (follows_rings(live) ||
	    (a && (evset_has_events(a->evset) || is_counted_on(live->evlist, cpu))))
		add_hole(live, cpu);
}

static bool is_drained(struct ring *ring)
{
	return !ring_snapshot(ring) && ring_peek(ring) == UINT64_MAX;
}

static bool is_evset_drained(const struct live *live, const struct evset *evset)
{
	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++)
		if (live->origins[i].evset == evset && !is_drained(merge_ring(live->merge, i)))
			return false;
	return true;
}

static void drop_drained(struct live *live)
{
	for (uint32_t i = live->nr_attached; i-- > 0;)
		if (live->attached[i]->gone && is_evset_drained(live, live->attached[i]->evset))
			detach(live, i);
	for (uint32_t i = merge_nr_rings(live->merge); i-- > 0;) {
		struct ring *ring = merge_ring(live->merge, i);

		if (!live->origins[i].bpf_gone || !is_drained(ring))
			continue;
		bpf_rings_drop(live->bpf, ring);
		remove_ring(live, i);
		live->nr_lasting--;
	}
	for (uint32_t i = live->nr_holes; i-- > 0;)
		if (live->holes[i].is_told)
			live->holes[i] = live->holes[--live->nr_holes];
}

static void follow_changes(struct live *live, const struct cpus *changed)
{
	struct cpus online, came;

	if (cpus_online(&online, NULL))
		return;
	for (int cpu = -1; (cpu = cpus_next(&live->watched, cpu)) >= 0;) {
		if (!cpus_has(changed, cpu) && cpus_has(&online, cpu))
			continue;
		cpu_went(live, cpu);
		cpus_remove(&live->watched, cpu);
	}
	came = online;
	cpus_subtract(&came, &live->watched);
	for (int cpu = -1; (cpu = cpus_next(&came, cpu)) >= 0;)
		cpu_came(live, cpu);
	live->watched = online;
}

void live_follow_cpus(struct live *live)
{
	struct cpus changed = {0};

	drop_drained(live);
	if (hotplug_changed(live->hotplug, &changed))
		follow_changes(live, &changed);
	live->hotplug_checked = merge_time(live->merge);
	live->hotplug_next = live->hotplug_checked + HOTPLUG_PERIOD;
}

int live_next_cpu(struct source *src)
{
	struct live *live = (struct live *)src;
	int cpu = cpus_next(&live->came, -1);

	if (cpu >= 0)
		cpus_remove(&live->came, cpu);
	return cpu;
}

int live_attach_all(struct live *live, struct error *err)
{
	const struct evlist *p = live->evlist;
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
		ret = add_rings(live, live->attached[i]->evset, err);
	return !ret && live->bpf ? add_bpf_rings(live, 0, err) : ret;
}
