/* SPDX-License-Identifier: GPL-2.0-only */
/* The targets of a live source: CPUs, which come and go, or threads; with their rings and counters.
 */
#include "live/live_state.h"
#include <errno.h>
#include <stdlib.h>
#include "os/hotplug.h"
#include "live/ring.h"
#include "os/clock.h"

enum { HOTPLUG_PERIOD = 100000000 /* ns */ };

/* Grows an array; `array` is the address of the pointer to it. */
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
	return grow(&live->poll, rings + NR_MORE, sizeof(*live->poll)) ||
			       grow(&live->origins, rings, sizeof(*live->origins)) ||
			       grow(&live->ring_tid, rings, sizeof(*live->ring_tid))
		       ? -ENOMEM
		       : 0;
}

/* Call this when rings were added or removed. */
static void update_rings_info(struct live *live)
{
	live->source.nr_rings = merge_nr_rings(live->merge);
	/* Captured events have rings of CPUs, so losses can concern any thread. */
	live->source.ring_tid = live->evlist->per_thread && !live->captures ? live->ring_tid : NULL;
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

/* Adds the rings of an evset to the merge. The decoder must know its ids. */
static int add_rings(struct live *live, struct evset *evset, struct error *err)
{
	for (uint32_t i = 0; i < evset_nr_rings(evset); i++)
		if (add_ring(live, evset, i))
			return error_set(err, -ENOMEM, "out of memory");
	update_rings_info(live);
	return 0;
}

/* Adds the rings of BPF programs to the merge, from index `first` on. */
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
	update_rings_info(live);
	return 0;
}

/* Adds the rings of captured events to the merge. They are not polled one by one. */
static int add_capture_rings(struct live *live, struct error *err)
{
	for (uint32_t i = 0; i < capture_rings_nr(live->captures); i++) {
		uint32_t at = merge_nr_rings(live->merge);

		if (grow_for(live, at + 1) ||
		    capture_rings_add(live->captures, i, live->merge, live->source.decoder))
			return error_set(err, -ENOMEM, "out of memory");
		live->poll[at] = (struct pollfd){.fd = -1};
		live->origins[at] = (struct origin){.bpf_cpu = -1};
		live->ring_tid[at] = -1;
		live->nr_lasting++;
	}
	update_rings_info(live);
	return 0;
}

uint64_t live_unreported(const struct live *live, const struct evset *evset)
{
	uint64_t lost = evset_lost(evset), reported = 0;

	for (uint32_t i = 0; i < merge_nr_rings(live->merge); i++) {
		const struct origin *o = &live->origins[i];

		if (o->evset == evset && evset_ring(evset, o->ring)->has_events)
			reported += ring_lost(merge_ring(live->merge, i));
	}
	return lost > reported ? lost - reported : 0;
}

/* Opens the counters of a CPU; -1: of the threads. Returns 0, or a negative errno with a message.
 */
static int open_counters(struct live *live, const struct evset *evset, int cpu, struct error *err)
{
	uint32_t n = live->nr_counters;
	int code = 0;

	if (grow(&live->counters, n + 1, sizeof(*live->counters)))
		return error_set(err, -ENOMEM, "out of memory");
	live->counters[n] = counters_open(live->evlist, evset, cpu, live->sums, &code, err);
	live->nr_counters += !code;
	return code;
}

/* Whether an event is counted on the CPU whose `counted` is at most that. */
static bool is_counted_on(const struct evlist *evlist, int cpu, uint8_t most)
{
	for (uint32_t i = 0; i < evlist->nr_counted; i++)
		if (!evlist->counts_threads && cpus_has(&evlist->counted[i].cpus, cpu) &&
		    evlist->counted[i].event->counted <= most)
			return true;
	return false;
}

/* Opens the evset of a CPU; -1: of the threads. NULL with a message. */
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
	if (cpu >= 0 && is_counted_on(live->evlist, cpu, 2)) {
		*code = open_counters(live, a->evset, cpu, err);
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
	update_rings_info(live);
}

static void detach(struct live *live, uint32_t index)
{
	struct attached *a = live->attached[index];

	live->unreported += live_unreported(live, a->evset);
	for (uint32_t i = 0; i < live->nr_requests; i++)
		evset_account(a->evset, live->requests[i].class, &live->closed[i]);
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

/* Returns the target of a CPU; NULL if it is not attached or went offline. */
static struct attached *attached_to(const struct live *live, int cpu)
{
	for (uint32_t i = 0; i < live->nr_attached; i++)
		if (live->attached[i]->cpu == cpu && !live->attached[i]->gone)
			return live->attached[i];
	return NULL;
}

/* Whether events follow hotplug. Those of threads continue on other CPUs. */
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

/* Adds the last counts of a CPU to the sums and closes its counters. */
static void close_counters(struct live *live, int cpu)
{
	for (uint32_t i = live->nr_counters; i-- > 0;) {
		if (counters_cpu(live->counters[i]) != cpu)
			continue;
		counters_read(live->counters[i]);
		counters_close(live->counters[i]);
		live->counters[i] = live->counters[--live->nr_counters];
	}
}

/* The kernel has removed the CPU's events, but their rings must still be drained. */
static void cpu_offline(struct live *live, int cpu)
{
	struct attached *a = follows_evsets(live) ? attached_to(live, cpu) : NULL;

	if (a) {
		a->gone = true;
		close_counters(live, cpu);
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
	close_counters(live, cpu);
	detach(live, live->nr_attached - 1);
	return -EINVAL;
}

static int attach_bpf(struct live *live, int cpu, struct error *err)
{
	uint32_t first = bpf_rings_nr(live->bpf);
	int ret = bpf_rings_add_cpu(live->bpf, cpu, live->source.decoder, err);

	return ret ? ret : add_bpf_rings(live, first, err);
}

/* Records that events of the CPU before now are missing from the stream. */
static void add_gap(struct live *live, int cpu)
{
	if (grow(&live->gaps, live->nr_gaps + 1, sizeof(*live->gaps)))
		return;
	live->gaps[live->nr_gaps++] = (struct gap){
		.from = live->hotplug_checked,
		.loss = {.header = {.type = PERF_RECORD_LOST, .size = sizeof(struct loss)},
			 .time = clock_monotonic(),
			 .cpu = cpu}};
}

static void cpu_online(struct live *live, int cpu)
{
	struct error err = {0};
	struct attached *a;
	int code = 0;

	cpus_add(&live->came_online, cpu);
	if (!follows_cpus(live))
		return;
	if (follows_evsets(live))
		code = attach_evset(live, cpu, &err);
	if (!code && follows_rings(live))
		code = attach_bpf(live, cpu, &err);
	if (code == -ENODEV) /* offline again, which is reported separately */
		return;
	if (code) {
		error_set(&err, 0, "came online: %s", err.text);
		note(live, cpu, err.text);
		return;
	}
	note(live, cpu, "came online");
	a = attached_to(live, cpu);
	if (follows_rings(live) ||
	    (a && (evset_has_events(a->evset) || is_counted_on(live->evlist, cpu, 1))))
		add_gap(live, cpu);
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
	for (uint32_t i = live->nr_gaps; i-- > 0;)
		if (live->gaps[i].is_reported)
			live->gaps[i] = live->gaps[--live->nr_gaps];
}

static void follow_changes(struct live *live, const struct cpus *changed)
{
	struct cpus online, came_online;

	if (cpus_online(&online, NULL))
		return;
	for (int cpu = -1; (cpu = cpus_next(&live->watched, cpu)) >= 0;) {
		if (!cpus_has(changed, cpu) && cpus_has(&online, cpu))
			continue;
		cpu_offline(live, cpu);
		cpus_remove(&live->watched, cpu);
	}
	came_online = online;
	cpus_subtract(&came_online, &live->watched);
	for (int cpu = -1; (cpu = cpus_next(&came_online, cpu)) >= 0;)
		cpu_online(live, cpu);
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
	int cpu = cpus_next(&live->came_online, -1);

	if (cpu >= 0)
		cpus_remove(&live->came_online, cpu);
	return cpu;
}

int live_attach_all(struct live *live, struct error *err)
{
	const struct evlist *evlist = live->evlist;
	int code = 0;

	if (evlist->per_thread)
		attach(live, -1, &code, err);
	for (int cpu = -1;
	     !evlist->per_thread && !code && (cpu = cpus_next(&evlist->cpus, cpu)) >= 0;)
		attach(live, cpu, &code, err);
	if (!code && evlist->nr_counted && evlist->counts_threads)
		code = open_counters(live, NULL, -1, err);
	return code;
}

int live_add_rings(struct live *live, struct error *err)
{
	int ret = grow(&live->poll, NR_MORE, sizeof(*live->poll))
			  ? error_set(err, -ENOMEM, "out of memory")
			  : 0;

	for (uint32_t i = 0; i < live->nr_attached && !ret; i++)
		ret = add_rings(live, live->attached[i]->evset, err);
	if (!ret && live->bpf)
		ret = add_bpf_rings(live, 0, err);
	return !ret && live->captures ? add_capture_rings(live, err) : ret;
}
