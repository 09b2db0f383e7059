/* SPDX-License-Identifier: GPL-2.0-only */
#include "live/counters.h"
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "error.h"
#include "live/evlist.h"
#include "live/count_sums.h"
#include "live/evset.h"

enum { COUNT, ENABLED, RUNNING, FIRST }; /* words of a read(2): PERF_FORMAT_GROUP and both times */

struct counter {
	int fd;
	uint64_t value, enabled, running; /* at the last read */
};

struct counters {
	const struct evlist *evlist;
	struct count_sums *sums;
	int cpu;
	struct counter *counters; /* nr_counted for each opened target */
	int32_t *ids;		  /* of the rows in sums */
	uint32_t nr_targets;
	uint64_t *words; /* of one read */
};

/* Replaces events that are not counted on this CPU, so that groups are equal on all CPUs. */
static const struct perf_event_attr placeholder = {
	.type = PERF_TYPE_SOFTWARE, .size = sizeof(placeholder), .config = PERF_COUNT_SW_DUMMY};

static bool is_counted(const struct counters *c, const struct evsel *sel)
{
	return c->cpu < 0 || cpus_has(&sel->cpus, c->cpu);
}

static int open_counter(const struct counters *c, uint32_t event, int32_t target, int group,
			struct error *err)
{
	const struct evlist *evlist = c->evlist;
	const struct evsel *sel = &evlist->counted[event];
	struct perf_event_attr attr = is_counted(c, sel) ? sel->attr : placeholder;
	int fd;

	attr.read_format = sel->attr.read_format;
	/* A member opened disabled would stay disabled when its leader is enabled. */
	attr.disabled = group < 0;
	attr.enable_on_exec = group < 0 && evlist->target.enable_on_exec;
	attr.inherit = sel->attr.inherit;
	attr.use_clockid = sel->attr.use_clockid;
	attr.clockid = sel->attr.clockid;
	fd = evlist_open_event(&attr, target, c->cpu, group, evlist->targets[GROUP_EVENTS].flags);
	if (fd < 0)
		return fd == -ESRCH ? fd : evlist_open_error(evlist, sel->event, fd, err);
	if (is_counted(c, sel) && sel->event->filter &&
	    ioctl(fd, PERF_EVENT_IOC_SET_FILTER, sel->event->filter)) {
		int code = -errno;

		close(fd);
		return evlist_filter_error(sel->event, code, err);
	}
	return fd;
}

/* Returns -ESRCH, without a message, if the thread has exited. */
static int open_target(struct counters *c, const struct evset *evset, int32_t target,
		       uint32_t place, struct error *err)
{
	const struct evlist *evlist = c->evlist;
	struct counter *list = &c->counters[c->nr_targets * evlist->nr_counted];
	int sampler = evlist->sampler >= 0 ? evset_event_fd(evset, evlist->sampler, place) : -1;

	for (uint32_t i = 0; i < evlist->nr_counted; i++) {
		uint32_t leader = evlist->counted[i].leader;
		int group = sampler >= 0 ? sampler : leader < i ? list[leader].fd : -1;

		list[i] = (struct counter){.fd = open_counter(c, i, target, group, err)};
		if (list[i].fd < 0) {
			int code = list[i].fd;

			while (i-- > 0)
				close(list[i].fd);
			return code;
		}
	}
	c->ids[c->nr_targets++] = evlist->target.tids ? target : c->cpu;
	return 0;
}

static int open_all(struct counters *c, const struct evset *evset, struct error *err)
{
	const struct evlist *evlist = c->evlist;
	const struct targets *targets = &evlist->targets[GROUP_EVENTS];

	c->counters = calloc((size_t)targets->n * evlist->nr_counted, sizeof(*c->counters));
	c->ids = calloc(targets->n, sizeof(*c->ids));
	c->words = calloc(FIRST + evlist->nr_counted, sizeof(*c->words));
	if (!c->counters || !c->ids || !c->words)
		return error_set(err, -ENOMEM, "out of memory");
	for (uint32_t i = 0; i < targets->n; i++) {
		int ret = open_target(c, evset, targets->list[i], i, err);

		if (ret && ret != -ESRCH)
			return ret;
	}
	if (!c->nr_targets)
		return error_set(err, -ESRCH, "all target threads have exited");
	for (uint32_t i = 0; i < c->nr_targets; i++)
		for (uint32_t event = 0; event < evlist->nr_counted; event++)
			if (is_counted(c, &evlist->counted[event]) &&
			    count_sums_expect(c->sums, c->ids[i], event))
				return error_set(err, -ENOMEM, "out of memory");
	return 0;
}

struct counters *counters_open(const struct evlist *evlist, const struct evset *evset, int cpu,
			       struct count_sums *sums, int *code, struct error *err)
{
	struct counters *c = calloc(1, sizeof(*c));

	if (!c) {
		*code = error_set(err, -ENOMEM, "out of memory");
		return NULL;
	}
	c->evlist = evlist;
	c->sums = sums;
	c->cpu = cpu;
	*code = open_all(c, evset, err);
	if (*code) {
		counters_close(c);
		return NULL;
	}
	return c;
}

void counters_close(struct counters *c)
{
	if (!c)
		return;
	for (uint32_t i = 0; i < c->nr_targets * c->evlist->nr_counted; i++)
		close(c->counters[i].fd);
	free(c->counters);
	free(c->ids);
	free(c->words);
	free(c);
}

int counters_cpu(const struct counters *c)
{
	return c->cpu;
}

/* Whether counter i leads a group, unless a sampled event leads and reads it. */
static bool is_leader(const struct counters *c, uint32_t i)
{
	uint32_t event = i % c->evlist->nr_counted;

	return c->evlist->sampler < 0 && c->evlist->counted[event].leader == event;
}

int counters_enable(struct counters *c, struct error *err)
{
	for (uint32_t i = 0; i < c->nr_targets * c->evlist->nr_counted; i++)
		if (is_leader(c, i) && ioctl(c->counters[i].fd, PERF_EVENT_IOC_ENABLE, 0))
			return error_set(err, -errno, "cannot start counting: %s", strerror(errno));
	return 0;
}

void counters_disable(struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_targets * c->evlist->nr_counted; i++)
		if (is_leader(c, i))
			ioctl(c->counters[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

static void add(struct counters *c, uint32_t i, uint64_t value)
{
	struct counter *k = &c->counters[i];
	uint32_t event = i % c->evlist->nr_counted;
	uint64_t enabled = c->words[ENABLED], running = c->words[RUNNING];

	if (is_counted(c, &c->evlist->counted[event]))
		count_sums_add(c->sums, c->ids[i / c->evlist->nr_counted], event, value - k->value,
			       enabled - k->enabled, running - k->running);
	k->value = value;
	k->enabled = enabled;
	k->running = running;
}

static bool read_words(struct counters *c, uint32_t i)
{
	size_t size = (FIRST + c->evlist->nr_counted) * sizeof(*c->words);

	return read(c->counters[i].fd, c->words, size) > (ssize_t)(FIRST * sizeof(*c->words));
}

/* Reads the group led by counter i. */
static void read_group(struct counters *c, uint32_t i)
{
	uint32_t nr = c->evlist->nr_counted, leader = i % nr, end = i - leader + nr, at = 0;
	uint64_t got;

	if (!read_words(c, i))
		return;
	got = c->words[COUNT];
	for (uint32_t k = i; k < end; k++) {
		if (c->evlist->counted[k % nr].leader != leader)
			continue;
		if (at < got)
			add(c, k, c->words[FIRST + at]);
		else if (read_words(c, k)) /* the group was dissolved when its CPU went offline */
			add(c, k, c->words[FIRST]);
		at++;
	}
}

void counters_read(struct counters *c)
{
	for (uint32_t i = 0; i < c->nr_targets * c->evlist->nr_counted; i++)
		if (is_leader(c, i))
			read_group(c, i);
}
