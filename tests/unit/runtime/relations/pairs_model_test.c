/* SPDX-License-Identifier: GPL-2.0-only */
/* runtime/relations/pairs.c compared with a second implementation, on random events. */
#include "relations/pairs.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "event.h"
#include "relations/timeline.h"

/*
 * The rules once more, as plainly as possible, over an array in order of arrival.
 */
struct model {
	struct pairs_config config;
	struct event stored[64];
	struct pairs_stats stats;
	double hole_end;
};

static void model_take(struct model *m, uint64_t i)
{
	memmove(&m->stored[i], &m->stored[i + 1], (--m->stats.stored - i) * sizeof(struct event));
}

/* The first sixteenth of the time between the oldest and the newest is dropped. */
static void model_evict(struct model *m)
{
	double first = INFINITY, last = -INFINITY;

	for (uint64_t i = 0; i < m->stats.stored; i++) {
		first = fmin(first, m->stored[i].time);
		last = fmax(last, m->stored[i].time);
	}
	for (uint64_t i = m->stats.stored; i-- > 0;) {
		if (m->stored[i].time <= first + (last - first) / 16) {
			model_take(m, i);
			m->stats.evicted++;
		}
	}
}

static void model_lose(struct model *m, const struct event *ev)
{
	int64_t key = ev->cpu >= 0 ? ev->cpu : ev->tid;

	for (uint64_t i = m->stats.stored; i-- > 0;) {
		if (!m->config.per_instance || key < 0 || m->stored[i].key == key) {
			model_take(m, i);
			m->stats.dropped++;
		}
	}
	if ((!m->config.per_instance || key < 0) && m->hole_end < ev->key)
		m->hole_end = ev->key;
}

/* Stage of a class in the model and in its test: each stage has two classes. */
static uint32_t stage_of(const struct event *ev)
{
	return (ev->class - EVENT_FIRST) / 2;
}

/* Returns whether ev completes a pair, and the start in *first. */
static int model_feed(struct model *m, const struct event *ev, struct event *first)
{
	uint32_t n = m->config.stages, stage = stage_of(ev), cycle = m->config.cycle;
	uint64_t i = 0;
	int paired = 0;

	if (ev->time < m->hole_end)
		return 0;
	while (i < m->stats.stored && m->stored[i].key != ev->key)
		i++;
	if ((stage > 0 || cycle) && !(ev->flags & EVENT_NO_SECOND)) {
		if (i == m->stats.stored) {
			m->stats.unstarted++;
		} else {
			*first = m->stored[i];
			paired = (stage_of(first) + 1) % n == stage && first->time < ev->time;
			m->stats.pairs += paired;
			m->stats.mismatched += !paired;
			model_take(m, i);
			i = m->stats.stored;
		}
	}
	if ((stage < n - 1 || cycle) && !(ev->flags & EVENT_NO_FIRST)) {
		if (i < m->stats.stored) {
			m->stats.replaced++;
			if (m->stored[i].time > ev->time)
				return paired;
			model_take(m, i);
		} else if (!(ev->flags & EVENT_NO_START) && m->stats.stored == m->config.max_keys) {
			model_evict(m);
		}
		if (ev->flags & EVENT_NO_START) {
			m->stats.dropped++;
			return paired;
		}
		m->stored[m->stats.stored++] = *ev;
	}
	return paired;
}

/* A stream of n events: keys collide often, times repeat and sometimes step back. */
static void random_events(struct event *events, uint64_t *serial, int n, uint32_t stages,
			  double *now, unsigned int *seed)
{
	for (int i = 0; i < n; i++) {
		struct event *ev = &events[i];

		*now += rand_r(seed) % 3;
		*ev = (struct event){.time = *now, .key = rand_r(seed) % 40 - 2};
		ev->time -= rand_r(seed) % 20 ? 0 : rand_r(seed) % 5;
		ev->class = EVENT_FIRST + rand_r(seed) % (2 * stages);
		ev->flags = (rand_r(seed) % 5 ? 0 : EVENT_NO_FIRST) |
			    (rand_r(seed) % 5 ? 0 : EVENT_NO_SECOND) |
			    (rand_r(seed) % 9 ? 0 : EVENT_NO_START);
		ev->tid = rand_r(seed) % 40 - 1;
		ev->cpu = rand_r(seed) % 8 - 1;
		if (rand_r(seed) % 200 == 0) {
			ev->class = EVENT_LOST;
			ev->key = *now + rand_r(seed) % 6;
		}
		serial[i] = (uint64_t)rand_r(seed) << 20 | i;
		ev->raw = (const uint8_t *)&serial[i];
		ev->raw_size = sizeof(serial[i]);
	}
}

static void check_pair(const struct pair *pair, const struct event *first, const struct event *ev,
		       uint64_t serial)
{
	assert_true(pair->first_time == first->time && pair->second_time == ev->time);
	assert_true(pair->key == ev->key);
	assert_int_equal(pair->first_class, first->class);
	assert_int_equal(pair->second_class, ev->class);
	assert_int_equal(pair->first_tid, first->tid);
	assert_int_equal(pair->first_cpu, first->cpu);
	if (pair->first_event)
		assert_memory_equal(pair->first_event->raw, &serial, sizeof(serial));
}

static void compare_with_model(unsigned int seed)
{
	enum { BATCH = 150, BATCHES = 20 };
	struct timeline *tl = seed % 2 ? timeline_new(0) : NULL;
	struct model m = {.hole_end = -INFINITY,
			  .config = {.stages = 1 + rand_r(&seed) % 4,
				     .cycle = rand_r(&seed) % 2,
				     .per_instance = rand_r(&seed) % 2,
				     .max_keys = 1 + rand_r(&seed) % 63,
				     .keep = tl}};
	struct pairs *p = pairs_new(&m.config);
	static uint64_t serial[BATCHES][BATCH]; /* stored starts point here */
	struct event events[BATCH];
	struct pair out[BATCH];
	struct pairs_stats stats;
	double now = 0;

	for (uint32_t i = 0; i < 2 * m.config.stages; i++)
		pairs_add_class(p, EVENT_FIRST + i, i / 2);
	for (int b = 0; b < BATCHES; b++) {
		int n = 1 + rand_r(&seed) % BATCH, paired, expected = 0;

		random_events(events, serial[b], n, m.config.stages, &now, &seed);
		paired = pairs_feed(p, events, n, out);
		for (int i = 0; i < n; i++) {
			struct event first;

			if (events[i].class == EVENT_LOST) {
				model_lose(&m, &events[i]);
			} else if (model_feed(&m, &events[i], &first)) {
				assert_true(expected < paired);
				assert_int_equal(out[expected].second, i);
				assert_int_equal(!out[expected].first_event, !tl);
				check_pair(&out[expected++], &first, &events[i],
					   *(const uint64_t *)first.raw);
			}
		}
		assert_int_equal(paired, expected);
		pairs_read_stats(p, &stats);
		assert_memory_equal(&stats, &m.stats, sizeof(stats));
	}
	pairs_free(p);
	if (tl)
		assert_int_equal(timeline_bytes(tl), 0);
	timeline_free(tl);
}

static void agrees_with_the_model(void **state)
{
	(void)state;
	for (unsigned int seed = 1; seed <= 400; seed++)
		compare_with_model(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_the_model),
	};

	return cmocka_run_group_tests_name("pairs_model", tests, NULL, NULL);
}
