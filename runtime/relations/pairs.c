/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One array of starts, found by their keys with linear probing. A start that was paired stays where
 * it is, marked as gone: most keys come again soon, and then nothing moves. When half of the array
 * is in use, it is rebuilt with the waiting starts. Two starts share a cache line.
 */
#include "relations/pairs_state.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "os/cpus.h"
#include "relations/timeline.h"

enum {
	MIN_BITS = 10,
	MAX_KEYS = 1 << 30, /* upper bound for config.max_keys */
	DEFAULT_KEYS = 2 << 20,
	EVICT_PART =
		16, /* this part of the time that starts have waited is evicted, the oldest one */
	BLOCK = 64, /* events whose starts are prefetched together */
	CACHED = 1 << 10,     /* an array of this size is in the nearest cache anyway */
	FREE = 0,	      /* class of an unused start */
	GONE = EVENT_CLASSES, /* flag in the class of a start that does not wait */
};

struct start {
	int64_t key;
	double time;
	union {
		struct event *event; /* with config.keep: kept copy, or NULL */
		int64_t value;	     /* else: see pairs_set_value() */
	};
	int32_t tid;
	int16_t cpu;
	uint16_t class; /* FREE, or that of the event, perhaps with GONE */
};

static uint64_t hash_key(int64_t key)
{
	uint64_t h = key;

	return (h ^ h >> 32) * 0x9e3779b97f4a7c15;
}

static bool waits(const struct start *s)
{
	return s->class != FREE && s->class < GONE;
}

/* Returns the start with this key, or the free one where it belongs. */
static __always_inline struct start *find_start(const struct pairs *restrict p, int64_t key,
						uint64_t hash)
{
	uint32_t i = hash >> p->shift;

	while (p->starts[i].class != FREE && p->starts[i].key != key)
		i = (i + 1) & p->last;
	return &p->starts[i];
}

/* Rebuilds the array with room for one more start. */
static int rebuild(struct pairs *p)
{
	uint32_t old_size = p->starts ? p->last + 1 : 0;
	struct start *old = p->starts;
	unsigned int bits = MIN_BITS;

	while (1ull << bits < 3 * p->stats.stored)
		bits++;
	p->starts = aligned_alloc(64, sizeof(*p->starts) << bits);
	if (!p->starts) {
		p->starts = old;
		return -ENOMEM;
	}
	memset(p->starts, 0, sizeof(*p->starts) << bits);
	p->last = (1u << bits) - 1;
	p->shift = 64 - bits;
	p->used = p->stats.stored;
	for (uint32_t i = 0; i < old_size; i++)
		if (waits(&old[i]))
			*find_start(p, old[i].key, hash_key(old[i].key)) = old[i];
	free(old);
	return 0;
}

struct pairs *pairs_new(const struct pairs_config *config)
{
	struct pairs *p;

	if (!config->stages || config->stages > UINT16_MAX) {
		errno = EINVAL;
		return NULL;
	}
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->config = *config;
	p->hole_end = -INFINITY;
	if (!p->config.max_keys)
		p->config.max_keys = DEFAULT_KEYS;
	if (p->config.max_keys > MAX_KEYS)
		p->config.max_keys = MAX_KEYS;
	p->places = calloc(config->stages, sizeof(*p->places));
	if (!p->places || rebuild(p)) {
		pairs_free(p);
		errno = ENOMEM;
		return NULL;
	}
	return p;
}

static void release_held(struct pairs *p)
{
	while (p->nr_held)
		timeline_release(p->config.keep, p->held[--p->nr_held]);
}

/* Numbers the kinds of pairs once all classes are known. */
static void number_kinds(struct pairs *p)
{
	uint32_t kind = 0;

	p->has_kinds = true;
	for (uint32_t stage = 0; stage < p->config.stages; stage++) {
		uint32_t seconds = p->places[(stage + 1) % p->config.stages];

		for (int i = 0; i < EVENT_CLASSES; i++)
			if (p->rules[i].can && p->rules[i].stage == stage)
				p->rules[i].kind = kind + p->rules[i].place * seconds;
		kind += p->places[stage] * seconds;
	}
}

/* The start stops waiting. */
static __always_inline void remove_start(struct pairs *restrict p, struct start *s)
{
	if (__builtin_expect(p->config.keep != NULL, 0)) {
		if (s->event)
			timeline_release(p->config.keep, s->event);
		s->event = NULL;
	}
	s->class |= GONE;
	p->stats.stored--;
}

static void remove_all(struct pairs *p)
{
	for (uint32_t i = 0; p->stats.stored && i <= p->last; i++)
		if (waits(&p->starts[i]))
			remove_start(p, &p->starts[i]);
}

void pairs_free(struct pairs *p)
{
	if (!p)
		return;
	release_held(p);
	if (p->starts)
		remove_all(p);
	for (int i = 0; i < MACHINES; i++)
		free(p->running[i]);
	free(p->held);
	free(p->starts);
	free(p->places);
	free(p);
}

static bool remove_key(struct pairs *p, int64_t key)
{
	struct start *s = find_start(p, key, hash_key(key));

	if (!waits(s))
		return false;
	remove_start(p, s);
	return true;
}

/* Evicts the starts that have waited longest, at least one if there is any. */
static void evict_oldest(struct pairs *p)
{
	double first = INFINITY, last = -INFINITY, limit;
	uint64_t stored = p->stats.stored;

	for (uint32_t i = 0; i <= p->last; i++) {
		const struct start *s = &p->starts[i];

		if (waits(s)) {
			first = s->time < first ? s->time : first;
			last = s->time > last ? s->time : last;
		}
	}
	limit = first + (last - first) / EVICT_PART;
	for (uint32_t i = 0; i <= p->last; i++)
		if (waits(&p->starts[i]) && p->starts[i].time <= limit)
			remove_start(p, &p->starts[i]);
	p->stats.evicted += stored - p->stats.stored;
}

/* Without memory for a larger array all waiting starts are evicted: an array full of starts that
 * are gone cannot be searched. */
static void start_again(struct pairs *p)
{
	p->stats.evicted += p->stats.stored;
	remove_all(p);
	memset(p->starts, 0, sizeof(*p->starts) * (p->last + 1));
	p->used = 0;
}

/* Returns where an event with the key is to be stored: s, or another start if some were evicted. */
static struct start *make_room(struct pairs *p, int64_t key, uint64_t hash, struct start *s)
{
	bool full = p->stats.stored >= p->config.max_keys, crowded = p->used > p->last / 2;

	if (full)
		evict_oldest(p);
	if (crowded && rebuild(p) && p->used >= p->last / 4 * 3)
		start_again(p);
	if (full || crowded)
		s = find_start(p, key, hash);
	p->used += s->class == FREE;
	return s;
}

/* Keeps ev, or its existing copy, as the event of s. If the timeline is full, the oldest starts are
 * evicted, at last s itself. */
static void keep_event(struct pairs *p, struct start *s, const struct event *ev, uint32_t index)
{
	struct event *kept = p->copies ? p->copies[index] : NULL;

	if (kept)
		timeline_retain(kept);
	while (!kept && !(kept = timeline_keep(p->config.keep, ev))) {
		evict_oldest(p);
		if (!waits(s))
			return;
	}
	s->event = kept;
}

static __always_inline int64_t integer_of(const struct integer *integer, const struct event *ev)
{
	const uint8_t *at = ev->raw + integer->offset;
	uint64_t u64;
	uint32_t u32;
	uint16_t u16;

	switch (integer->size) {
	case 8:
		memcpy(&u64, at, sizeof(u64));
		return u64;
	case 4:
		memcpy(&u32, at, sizeof(u32));
		return integer->is_signed ? (int32_t)u32 : (int64_t)u32;
	case 2:
		memcpy(&u16, at, sizeof(u16));
		return integer->is_signed ? (int16_t)u16 : u16;
	case 1:
		return integer->is_signed ? (int8_t)*at : *at;
	default:
		return 0;
	}
}

static __always_inline const struct rule *rule_of(const struct pairs *p, const struct event *ev)
{
	return &p->rules[ev->class & (EVENT_CLASSES - 1)];
}

static __always_inline int64_t key_of(const struct rule *rule, const struct event *ev)
{
	return rule->key.size ? integer_of(&rule->key, ev) : ev->key;
}

static __always_inline int64_t value_of(const struct pairs *p, const struct start *s)
{
	if (!p->config.keep)
		return s->value;
	return s->event ? integer_of(&p->rules[s->class].value, s->event) : 0;
}

/* ev finds start s: writes the pair to out if they make one. */
static __always_inline int finish(struct pairs *restrict p, struct start *s,
				  const struct rule *rule, const struct event *ev, uint32_t index,
				  struct pair *out)
{
	const struct rule *first = &p->rules[s->class];

	if (first->stage != rule->previous || !(s->time < ev->time)) {
		p->stats.mismatched++;
		return 0;
	}
	out->first_time = s->time;
	out->second_time = ev->time;
	out->ns = ev->time - s->time;
	out->kind = first->kind + rule->place;
	out->key = s->key;
	out->first_class = s->class;
	out->second_class = ev->class;
	out->second = index;
	out->first_tid = s->tid;
	out->first_cpu = s->cpu;
	out->first_value = value_of(p, s);
	out->first_event = NULL;
	if (__builtin_expect(p->config.keep == NULL, 1))
		return 1;
	out->first_event = s->event;
	if (s->event)
		p->held[p->nr_held++] = s->event;
	s->event = NULL;
	return 1;
}

/* Stores the event as the start s with its key, or does not, as its time and flags tell. */
static __always_inline void store(struct pairs *restrict p, struct start *s, const struct event *ev,
				  uint16_t class, uint32_t flags, int64_t key, uint64_t hash,
				  uint32_t index)
{
	if (waits(s)) {
		p->stats.replaced++;
		if (s->time > ev->time)
			return;
		remove_start(p, s);
	}
	if (flags & EVENT_NO_START) {
		p->stats.dropped++;
		return;
	}
	if (s->class == FREE || p->stats.stored >= p->config.max_keys)
		s = make_room(p, key, hash, s);
	s->key = key;
	s->time = ev->time;
	s->tid = ev->tid;
	s->cpu = (int16_t)ev->cpu;
	s->class = class;
	p->stats.stored++;
	if (p->config.keep)
		keep_event(p, s, ev, index);
	else
		s->value = integer_of(&p->rules[class].value, ev);
}

/* Feeds an event that takes part. Returns the number of pairs that it completes (0 or 1). */
static __always_inline int feed_event(struct pairs *restrict p, const struct rule *rule,
				      const struct event *ev, uint32_t flags, uint32_t index,
				      struct pair *out)
{
	int64_t key = key_of(rule, ev);
	uint64_t hash = hash_key(key);
	unsigned int can = rule->can & ~flags;
	struct start *s = find_start(p, key, hash);
	int paired = 0;

	if (can & EVENT_NO_SECOND) {
		if (waits(s)) {
			paired = finish(p, s, rule, ev, index, out);
			remove_start(p, s);
		} else {
			p->stats.unstarted += ev->class != EVENT_EXIT; /* a task that is killed */
		}
	}
	if (can & EVENT_NO_FIRST)
		store(p, s, ev, ev->class, flags, key, hash, index);
	return paired;
}

static void lose(struct pairs *p, const struct event *lost)
{
	uint32_t machine = lost->flags >> EVENT_MEMBER_SHIFT;
	int32_t *running = p->running[machine];
	bool is_one = lost->cpu >= 0 && lost->cpu < CPUS_MAX;

	/* A CPU without any switch so far may not be traced at all. */
	for (int i = is_one ? lost->cpu : 0; running && i < (is_one ? lost->cpu + 1 : CPUS_MAX);
	     i++)
		if (running[i] != NOT_YET)
			running[i] = UNKNOWN;
	if (p->config.per_instance && !p->shares_keys[machine] &&
	    (lost->cpu >= 0 || lost->tid >= 0)) {
		p->stats.dropped += remove_key(p, ((int64_t)machine << PAIRS_MACHINE_SHIFT) +
							  (lost->cpu >= 0 ? lost->cpu : lost->tid));
	} else {
		p->stats.dropped += p->stats.stored;
		remove_all(p);
		if (p->hole_end < lost->key)
			p->hole_end = lost->key;
	}
}

/* Prefetches what finding the keys of n events will need. Reading the keys here fetches several
 * payloads at once. */
static void prefetch(const struct pairs *p, const struct event *events, int n)
{
	for (int i = 0; i < n; i++) {
		const struct event *ev = &events[i];
		uint64_t hash = hash_key(key_of(rule_of(p, ev), ev));

		__builtin_prefetch(&p->starts[hash >> p->shift]);
	}
}

static int32_t int_at(const struct event *ev, uint16_t offset)
{
	int32_t value;

	memcpy(&value, ev->raw + offset, sizeof(value));
	return value;
}

/* Returns the flags that a wakeup gets. */
static __always_inline uint32_t judge_wakeup(struct pairs *restrict p, const struct rule *rule,
					     const struct event *ev)
{
	int32_t task = int_at(ev, rule->task), cpu = int_at(ev, rule->target);
	int32_t running = cpu >= 0 && cpu < CPUS_MAX ? p->running[rule->machine][cpu] : NOT_YET;

	if (task == running || task == int_at(ev, rule->waker)) {
		p->stats.unneeded++;
		return EVENT_NO_FIRST;
	}
	return running == UNKNOWN ? EVENT_NO_START : 0;
}

/* The CPU switches to another task. */
static __always_inline void follow_switch(struct pairs *restrict p, const struct rule *rule,
					  const struct event *ev)
{
	int32_t *running = &p->running[rule->machine][ev->cpu];

	if (__builtin_expect(*running != int_at(ev, rule->before) && *running >= 0, 0))
		p->stats.unreported++;
	*running = int_at(ev, rule->task);
}

static __always_inline bool is_asleep(const struct rule *rule, const struct event *ev)
{
	uint64_t bits = 0;

	memcpy(&bits, ev->raw + rule->end_bits, rule->end_is_long ? 8 : 4);
	return bits & rule->end_mask;
}

/* Removes the start that the event ends, if there is one. */
static void end_start(struct pairs *p, const struct rule *rule, const struct event *ev)
{
	int32_t key = int_at(ev, rule->end_key);
	struct start *s = find_start(p, key, hash_key(key));

	if (!waits(s) || !(s->time < ev->time))
		return;
	remove_start(p, s);
	p->stats.ended++;
}

/* See pairs_set_awake(). */
static __always_inline void start_awake(struct pairs *restrict p, const struct rule *rule,
					const struct event *ev, uint32_t flags, uint32_t index)
{
	int32_t key = int_at(ev, rule->end_key);
	uint64_t hash = hash_key(key);

	if (key > 0)
		store(p, find_start(p, key, hash), ev, rule->awake, flags, key, hash, index);
}

/* The start of a thread goes on with another key, where no other one waits. */
static void move_start(struct pairs *p, struct start *s, int64_t key)
{
	uint64_t hash = hash_key(key);
	struct start moved = *s, *to;

	if (p->config.keep)
		s->event = NULL;
	remove_start(p, s);
	to = make_room(p, key, hash, find_start(p, key, hash));
	*to = moved;
	to->key = key;
	p->stats.stored++;
}

/* See pairs_set_exec(). */
static void follow_exec(struct pairs *p, const struct rule *rule, const struct event *ev)
{
	int32_t before = int_at(ev, rule->before), now = int_at(ev, rule->task);
	int64_t base = rule->has_machine ? (int64_t)rule->machine << PAIRS_MACHINE_SHIFT : 0;
	int32_t *running = p->running[rule->machine];
	struct start *s;

	if (before == now)
		return;
	if (running && ev->cpu >= 0 && ev->cpu < CPUS_MAX && running[ev->cpu] == before)
		running[ev->cpu] = now;
	p->stats.ended += remove_key(p, base + now);
	s = find_start(p, base + before, hash_key(base + before));
	if (waits(s))
		move_start(p, s, base + now);
}

int pairs_feed(struct pairs *restrict p, const struct event *events, int n, struct pair *out)
{
	int paired = 0;

	release_held(p);
	if (!p->has_kinds)
		number_kinds(p);
	if (p->config.keep && n > 0 && (uint32_t)n > p->max_held) {
		struct event **held = realloc(p->held, n * sizeof(struct event *));

		if (!held)
			return -ENOMEM;
		p->held = held;
		p->max_held = n;
	}
	for (int i = 0; i < n; i++) {
		const struct event *ev = &events[i];
		const struct rule *rule = rule_of(p, ev);
		uint32_t flags = ev->flags;

		if (i % BLOCK == 0 && p->last >= CACHED)
			prefetch(p, ev, n - i < BLOCK ? n - i : BLOCK);
		if (rule->tells & WAKEUP)
			flags |= judge_wakeup(p, rule, ev);
		if (rule->tells & SWITCH && ev->cpu >= 0 && ev->cpu < CPUS_MAX)
			follow_switch(p, rule, ev);
		if (rule->tells & SLEEP && is_asleep(rule, ev))
			end_start(p, rule, ev);
		if (!rule->can) {
			if (ev->class == EVENT_LOST)
				lose(p, ev);
			else if (rule->tells & EXEC)
				follow_exec(p, rule, ev);
			continue;
		}
		if (ev->time < p->hole_end)
			continue;
		paired += feed_event(p, rule, ev, flags, i, &out[paired]);
		if (rule->awake && !is_asleep(rule, ev))
			start_awake(p, rule, ev, flags, i);
	}
	p->stats.pairs += paired;
	return paired;
}

void pairs_use_copies(struct pairs *p, struct event *const *copies)
{
	p->copies = copies;
}

uint32_t pairs_next_stored(const struct pairs *p, uint32_t at, struct pair *out)
{
	while (at <= p->last) {
		const struct start *s = &p->starts[at++];

		if (!waits(s))
			continue;
		*out = (struct pair){
			.first_time = s->time,
			.key = s->key,
			.first_class = s->class,
			.second = PAIRS_NO_SECOND,
			.first_tid = s->tid,
			.first_cpu = s->cpu,
			.first_value = value_of(p, s),
			.first_event = p->config.keep ? s->event : NULL,
		};
		return at;
	}
	return 0;
}

double pairs_oldest(const struct pairs *p)
{
	double oldest = INFINITY;

	for (uint32_t i = 0; p->stats.stored && i <= p->last; i++)
		if (waits(&p->starts[i]) && p->starts[i].time < oldest)
			oldest = p->starts[i].time;
	return oldest;
}

void pairs_read_stats(const struct pairs *p, struct pairs_stats *out)
{
	*out = p->stats;
}
