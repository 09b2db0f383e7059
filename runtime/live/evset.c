/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/evset.h"
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include <perf/core.h>
#include <perf/cpumap.h>
#include <perf/evlist.h>
#include <perf/evsel.h>
#include <perf/threadmap.h>
#include <internal/evlist.h>
#include <internal/evsel.h>
#include <internal/mmap.h>
#include <internal/xyarray.h>
#include "bpf/bpf.h"
#include "decode/decoder.h"
#include "error.h"
#include "live/evlist.h"

/* Events of an evset that share rings. */
struct group {
	struct perf_evlist *list;
	const struct evsel **evsels; /* parallel to list */
	int32_t *targets;	     /* targets on which they were opened */
	uint32_t nr_targets, pages;
};

struct evset {
	const struct evlist *evlist;
	struct group groups[NR_GROUPS];
	struct evset_ring *rings;
	uint32_t nr_rings;
};

static int ignore_libperf(enum libperf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/* libperf has no public function for this; it frees the result with the perf_evsel. */
static struct xyarray *new_fds(uint32_t n)
{
	struct xyarray *fds = calloc(1, sizeof(*fds) + n * sizeof(int));

	if (!fds)
		return NULL;
	fds->entry_size = sizeof(int);
	fds->entries = n;
	fds->row_size = n * sizeof(int);
	fds->max_x = 1;
	fds->max_y = n;
	memset(fds->contents, -1, fds->row_size);
	return fds;
}

static int *fd_at(const struct perf_evsel *evsel, uint32_t target)
{
	return xyarray__entry(evsel->fd, 0, target);
}

static void close_target(struct group *g, uint32_t place)
{
	struct perf_evsel *evsel;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		int *fd = fd_at(evsel, place);

		if (*fd >= 0)
			close(*fd);
		*fd = -1;
	}
}

/* Opens all events of a group for one target. (libperf's own function fails if one thread has
 * exited.) Returns -ESRCH, without a message, if the thread has exited. */
static int open_target(const struct evlist *evlist, struct group *g, int cpu, int32_t target,
		       unsigned long flags, struct error *err)
{
	uint32_t place = g->nr_targets, i = 0;
	struct perf_evsel *evsel;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		const struct event_request *ev = g->evsels[i++]->event;
		int fd = evlist_open_event(&evsel->attr, target, cpu, -1, flags);

		*fd_at(evsel, place) = fd;
		if (fd < 0) {
			close_target(g, place);
			return fd == -ESRCH ? fd : evlist_open_error(evlist, ev, fd, err);
		}
		if (ev && ev->filter && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, ev->filter)) {
			int code = -errno;

			close_target(g, place);
			return evlist_filter_error(ev, code, err);
		}
		if (ev && ev->bpf_array) {
			int code = bpf_put_entry(ev->bpf_array, cpu, fd);

			if (code) {
				close_target(g, place);
				return error_set(err, code, "%s: cannot add it to a BPF map: %s",
						 ev->name, strerror(-code));
			}
		}
		if (ev && ev->program && ioctl(fd, PERF_EVENT_IOC_SET_BPF, ev->program)) {
			int code = -errno;

			close_target(g, place);
			return error_set(err, code, "%s: cannot attach the BPF filter: %s",
					 ev->name, strerror(-code));
		}
	}
	g->targets[g->nr_targets++] = target;
	return 0;
}

static int map_rings(struct group *g, int cpu, struct error *err)
{
	struct perf_thread_map *threads = perf_thread_map__new_array(g->nr_targets, g->targets);
	char list[16];
	struct perf_cpu_map *cpus;
	int ret = -ENOMEM;

	snprintf(list, sizeof(list), "%d", cpu);
	cpus = cpu >= 0 ? perf_cpu_map__new(list) : perf_cpu_map__dummy_new();
	if (cpus && threads) {
		perf_evlist__set_maps(g->list, cpus, threads);
		ret = 0;
		/* libperf keeps the size of a ring in an int: beyond it, it would map none. */
		if (g->pages >= INT_MAX / sysconf(_SC_PAGESIZE))
			ret = -ENOMEM;
		else if (perf_evlist__mmap(g->list, g->pages))
			ret = errno ? -errno : -EINVAL;
	}
	perf_cpu_map__put(cpus);
	perf_thread_map__put(threads);
	if (ret)
		error_set(err, ret, "cannot map rings of %u pages: %s%s", g->pages, strerror(-ret),
			  ret == -EPERM ? " (exceeds kernel.perf_event_mlock_kb: use a smaller -m "
					  "or CAP_IPC_LOCK)"
					: "");
	return ret;
}

static int add_ids(struct group *g, struct decoder *decoder, struct error *err)
{
	struct perf_evsel *evsel;
	uint32_t at = 0;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		const struct evsel *sel = g->evsels[at++];

		for (uint32_t i = 0; i < evsel->ids; i++)
			if (decoder_add_id(decoder, evsel->id[i], sel->index))
				return error_set(err, -ENOMEM, "out of memory");
	}
	return 0;
}

static int add_evsel(struct group *g, const struct evsel *sel, uint32_t nr_targets)
{
	struct perf_event_attr attr = sel->attr;
	struct perf_evsel *evsel = perf_evsel__new(&attr);

	if (!evsel)
		return -ENOMEM;
	g->evsels[g->list->nr_entries] = sel;
	perf_evlist__add(g->list, evsel);
	evsel->fd = new_fds(nr_targets);
	return evsel->fd ? 0 : -ENOMEM;
}

/* Opens the events of a group on the CPU, if there are any. */
static int open_group(const struct evlist *evlist, struct evset *set, enum evlist_group number,
		      int cpu, struct error *err)
{
	const struct targets *targets = &evlist->targets[number];
	struct group *g = &set->groups[number];
	int ret = 0;

	g->pages = evlist->task_pages;
	g->list = perf_evlist__new();
	g->evsels = calloc(evlist->nr_evsels, sizeof(struct evsel *));
	g->targets = calloc(targets->n, sizeof(*g->targets));
	if (!g->list || !g->evsels || !g->targets)
		ret = -ENOMEM;
	for (uint32_t i = 0; i < evlist->nr_evsels && !ret; i++) {
		const struct evsel *sel = &evlist->evsels[i];

		if (sel->group != number || !evlist_is_for(evlist, sel, cpu))
			continue;
		ret = add_evsel(g, sel, targets->n);
		if (sel->event)
			g->pages = evlist->target.pages;
	}
	if (ret)
		return error_set(err, ret, "out of memory");
	if (!g->list->nr_entries)
		return 0;
	for (uint32_t i = 0; i < targets->n; i++) {
		ret = open_target(evlist, g, cpu, targets->list[i], targets->flags, err);
		if (ret && ret != -ESRCH)
			return ret;
	}
	if (!g->nr_targets)
		return error_set(err, -ESRCH, "all target threads have exited");
	return map_rings(g, cpu, err);
}

static int open_groups(struct evset *set, int cpu, struct decoder *decoder, struct error *err)
{
	int ret = 0;

	for (int i = 0; i < NR_GROUPS && !ret; i++) {
		ret = open_group(set->evlist, set, i, cpu, err);
		if (!ret)
			ret = add_ids(&set->groups[i], decoder, err);
	}
	return ret;
}

/* Lists the rings of a group that are overwritten, or those that are not. */
static void list_group_rings(struct evset *set, enum evlist_group group, bool is_backward)
{
	const struct group *g = &set->groups[group];
	uint32_t target = 0;
	struct perf_mmap *map;

	perf_evlist__for_each_mmap(g->list, map, is_backward)
	{
		set->rings[set->nr_rings++] = (struct evset_ring){
			.base = map->base,
			.pages = g->pages,
			.target = target,
			.tid = set->evlist->per_thread ? g->targets[target] : -1,
			.has_events = group != GROUP_TASKS,
			.is_backward = is_backward,
			.group = group,
		};
		target++;
	}
}

static int list_rings(struct evset *set, struct error *err)
{
	uint32_t n = 0;

	for (int i = 0; i < NR_GROUPS; i++)
		n += set->groups[i].list->nr_mmaps * 2;
	set->rings = calloc(n, sizeof(*set->rings));
	if (!set->rings)
		return error_set(err, -ENOMEM, "out of memory");
	for (int i = 0; i < NR_GROUPS; i++) {
		list_group_rings(set, i, false);
		list_group_rings(set, i, true);
	}
	return 0;
}

struct evset *evset_open(const struct evlist *evlist, struct decoder *decoder, int cpu, int *code,
			 struct error *err)
{
	struct evset *set = calloc(1, sizeof(*set));

	if (!set) {
		*code = error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	libperf_init(ignore_libperf);
	set->evlist = evlist;
	*code = open_groups(set, cpu, decoder, err);
	if (!*code)
		*code = list_rings(set, err);
	if (*code) {
		evset_close(set);
		return NULL;
	}
	return set;
}

/* Frees the events and the parts of them that libperf forgets. */
static void close_events(struct perf_evlist *list)
{
	struct perf_evsel *evsel;

	if (!list)
		return;
	perf_evlist__for_each_entry(list, evsel)
	{
		perf_evsel__free_id(evsel);
		perf_cpu_map__put(evsel->cpus);
		perf_thread_map__put(evsel->threads);
	}
	perf_evlist__delete(list);
}

void evset_close(struct evset *set)
{
	if (!set)
		return;
	for (int i = 0; i < NR_GROUPS; i++) {
		close_events(set->groups[i].list);
		free(set->groups[i].evsels);
		free(set->groups[i].targets);
	}
	free(set->rings);
	free(set);
}

bool evset_has_events(const struct evset *set)
{
	return set->groups[GROUP_EVENTS].nr_targets > 0 ||
	       set->groups[GROUP_EVERYWHERE].nr_targets > 0;
}

uint32_t evset_nr_rings(const struct evset *set)
{
	return set->nr_rings;
}

const struct evset_ring *evset_ring(const struct evset *set, uint32_t ring)
{
	return &set->rings[ring];
}

int evset_ring_fd(const struct evset *set, uint32_t ring, uint32_t number)
{
	const struct group *g = &set->groups[set->rings[ring].group];

	if (set->evlist->per_thread)
		return number ? -1 : *fd_at(perf_evlist__first(g->list), set->rings[ring].target);
	return number < g->nr_targets ? *fd_at(perf_evlist__first(g->list), number) : -1;
}

int evset_event_fd(const struct evset *set, int number, uint32_t target)
{
	const struct group *g = &set->groups[GROUP_EVENTS];
	struct perf_evsel *evsel;
	uint32_t i = 0;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		if (g->evsels[i++] == &set->evlist->evsels[number])
			return *fd_at(evsel, target);
	}
	return -1;
}

static int enable_group(const struct group *g, struct error *err)
{
	struct perf_evsel *evsel;

	if (!g->list)
		return 0;
	perf_evlist__for_each_entry(g->list, evsel)
	{
		for (uint32_t t = 0; t < g->nr_targets; t++)
			if (ioctl(*fd_at(evsel, t), PERF_EVENT_IOC_ENABLE, 0))
				return error_set(err, -errno, "cannot start counting: %s",
						 strerror(errno));
	}
	return 0;
}

int evset_enable_tasks(struct evset *set, struct error *err)
{
	return enable_group(&set->groups[GROUP_TASKS], err);
}

int evset_enable_everywhere(struct evset *set, struct error *err)
{
	return enable_group(&set->groups[GROUP_EVERYWHERE], err);
}

int evset_enable(struct evset *set, struct error *err)
{
	int ret = evset_enable_tasks(set, err);

	if (!ret)
		ret = evset_enable_everywhere(set, err);
	return ret ? ret : enable_group(&set->groups[GROUP_EVENTS], err);
}

/* Disables the events of one class, -1: all. */
static void disable_group(const struct group *g, int class)
{
	struct perf_evsel *evsel;
	uint32_t i = 0;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		const struct event_request *ev = g->evsels[i++]->event;

		if (class >= 0 && (!ev || ev->class != class))
			continue;
		for (uint32_t t = 0; t < g->nr_targets; t++)
			ioctl(*fd_at(evsel, t), PERF_EVENT_IOC_DISABLE, 0);
	}
}

void evset_disable(struct evset *set)
{
	disable_group(&set->groups[GROUP_EVENTS], -1);
	disable_group(&set->groups[GROUP_EVERYWHERE], -1);
}

void evset_pause(struct evset *set, bool paused)
{
	for (uint32_t i = 0; i < set->nr_rings; i++)
		if (set->rings[i].is_backward)
			ioctl(evset_ring_fd(set, i, 0), PERF_EVENT_IOC_PAUSE_OUTPUT, paused);
}

void evset_disable_class(struct evset *set, uint16_t class)
{
	disable_group(&set->groups[GROUP_EVENTS], class);
	disable_group(&set->groups[GROUP_EVERYWHERE], class);
}

/* Adds what the kernel says about an event for one target. */
static void add_read(const struct perf_event_attr *attr, int fd, struct source_account *out)
{
	uint64_t words[5] = {0}; /* value, two times, id, lost */
	unsigned int at = 1;

	if (read(fd, words, sizeof(words)) < 0)
		return;
	out->counters++;
	out->fired += words[0];
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_ENABLED)
		out->enabled += words[at++];
	if (attr->read_format & PERF_FORMAT_TOTAL_TIME_RUNNING)
		out->running += words[at++];
	at++;
	if (attr->read_format & PERF_FORMAT_LOST)
		out->lost += words[at];
}

/* Adds the events of a class, -1: all, and returns how many there are. */
static uint32_t read_group(const struct group *g, int class, struct source_account *out)
{
	struct perf_evsel *evsel;
	uint32_t i = 0, n = 0;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		const struct event_request *ev = g->evsels[i++]->event;

		if (!ev || ev->reads == READS_COUNTED || (class >= 0 && ev->class != class))
			continue;
		for (uint32_t t = 0; t < g->nr_targets; t++)
			add_read(&evsel->attr, *fd_at(evsel, t), out);
		n++;
	}
	return n;
}

uint64_t evset_lost(const struct evset *set)
{
	struct source_account all = {0};

	if (!set->evlist->has_lost)
		return 0;
	read_group(&set->groups[GROUP_EVENTS], -1, &all);
	read_group(&set->groups[GROUP_EVERYWHERE], -1, &all);
	return all.lost;
}

bool evset_account(const struct evset *set, uint16_t class, struct source_account *out)
{
	uint32_t n = read_group(&set->groups[GROUP_EVENTS], class, out);

	return n + read_group(&set->groups[GROUP_EVERYWHERE], class, out);
}

static int any_fd(const struct group *g, uint16_t class)
{
	struct perf_evsel *evsel;
	uint32_t i = 0;

	perf_evlist__for_each_entry(g->list, evsel)
	{
		const struct event_request *ev = g->evsels[i++]->event;

		if (ev && ev->class == class && g->nr_targets)
			return *fd_at(evsel, 0);
	}
	return -1;
}

uint32_t evset_programs(const struct evset *set, uint16_t class, uint32_t *ids, uint32_t max)
{
	struct perf_event_query_bpf *query = calloc(1, sizeof(*query) + max * sizeof(*ids));
	int fd = any_fd(&set->groups[GROUP_EVENTS], class);
	uint32_t n = 0;

	if (fd < 0)
		fd = any_fd(&set->groups[GROUP_EVERYWHERE], class);
	if (query) {
		query->ids_len = max;
		if (fd >= 0 && !ioctl(fd, PERF_EVENT_IOC_QUERY_BPF, query))
			n = query->prog_cnt < max ? query->prog_cnt : max;
		memcpy(ids, query->ids, n * sizeof(*ids));
		free(query);
	}
	return n;
}
