/* SPDX-License-Identifier: GPL-2.0-only */
#include "decode/group_reads.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "decode/decoder_state.h"

enum { TID_BITS = 22 }; /* the kernel's PID_MAX_LIMIT */

/* The fields that all tracepoints have. */
struct common {
	uint16_t type;
	uint8_t flags, preempt_count;
	int32_t pid;
};

struct group_reads {
	struct id_table counters; /* to the index in counts */
	uint64_t *counts;	  /* of each counter, in its previous sample */
	uint32_t room;
	/* As many payloads as a batch has events: the oldest is no longer in use when its place is
	 * taken again. All but the common fields stay 0. */
	uint8_t *payloads;
	uint32_t payload_size, next_payload;
};

struct group_reads *group_reads_new(void)
{
	return calloc(1, sizeof(struct group_reads));
}

void group_reads_free(struct group_reads *g)
{
	if (!g)
		return;
	id_table_clear(&g->counters);
	free(g->counts);
	free(g->payloads);
	free(g);
}

int group_reads_reserve(struct group_reads *g, const struct decoder *d)
{
	uint32_t size = sizeof(struct common);

	for (int i = 0; i < d->nr_layouts; i++) {
		const struct layout *l = &d->layouts[i];

		size = l->payload > size ? l->payload : size;
		size = l->fixed_words * 8u > size ? l->fixed_words * 8u : size;
	}
	free(g->payloads);
	g->payload_size = (size + 7) & ~7u;
	g->payloads = calloc(BATCH_MAX, g->payload_size);
	return g->payloads ? 0 : -ENOMEM;
}

bool group_reads_are_in(const struct layout *l)
{
	return l->attr.sample_type & PERF_SAMPLE_READ && l->attr.read_format & PERF_FORMAT_ID;
}

/* Returns the place of a counter's previous count; NULL without memory. Inherited events count each
 * thread on its own, with the same id. */
static uint64_t *previous_count(struct group_reads *g, const struct layout *l, uint64_t id,
				int32_t tid)
{
	uint64_t counter = id << TID_BITS | (l->attr.inherit ? (uint32_t)tid : 0);
	int index = id_table_hash_find(&g->counters, counter);

	if (index >= 0)
		return &g->counts[index];
	index = g->counters.count;
	if ((uint32_t)index == g->room) {
		uint32_t room = g->room ? g->room * 2 : 64;
		uint64_t *grown = reallocarray(g->counts, room, sizeof(*grown));

		if (!grown)
			return NULL;
		g->counts = grown;
		g->room = room;
	}
	if (id_table_add(&g->counters, counter, index))
		return NULL;
	g->counts[index] = 0;
	return &g->counts[index];
}

static bool has_same_words(const struct layout *a, const struct layout *b)
{
	return a->fixed_words == b->fixed_words && a->tid == b->tid && a->time == b->time &&
	       a->cpu == b->cpu && a->period == b->period && a->id == b->id;
}

/* Replaces the leader's payload by that of a member. */
static void set_payload(struct group_reads *g, const struct layout *leader,
			const struct layout *member, const uint64_t *words, struct event *ev)
{
	struct common common = {.pid = ev->tid};
	uint8_t *payload;

	if (member->raw_is != PAYLOAD_RAW && has_same_words(leader, member)) {
		ev->raw = (const uint8_t *)words;
		ev->raw_size = leader->fixed_words * 8;
		return;
	}
	payload = g->payloads + (size_t)g->next_payload * g->payload_size;
	g->next_payload = (g->next_payload + 1) % BATCH_MAX;
	if (member->raw_is == PAYLOAD_RAW) {
		if (leader->raw_is == PAYLOAD_RAW && ev->raw_size >= sizeof(common) &&
		    leader->attr.type == PERF_TYPE_TRACEPOINT)
			memcpy(&common, ev->raw, sizeof(common));
		common.type = member->attr.config;
		memcpy(payload, &common, sizeof(common));
	} else {
		memset(payload, 0, sizeof(common));
	}
	ev->raw = payload;
	ev->raw_size = g->payload_size;
}

struct counts_read {
	const uint64_t *first; /* the value of the first one */
	uint32_t nr, step;     /* words from one count to the next */
	uint32_t id;	       /* words from a value to its id */
};

static bool find_counts(const struct layout *l, const uint64_t *words, unsigned int n,
			struct counts_read *out)
{
	uint64_t format = l->attr.read_format;
	uint32_t times = !!(format & PERF_FORMAT_TOTAL_TIME_ENABLED) +
			 !!(format & PERF_FORMAT_TOTAL_TIME_RUNNING);
	uint32_t size;
	const uint64_t *part = sample_part(&l->attr, words, n, PERF_SAMPLE_READ, &size);

	if (!part)
		return false;
	if (format & PERF_FORMAT_GROUP)
		*out = (struct counts_read){part + 1 + times, part[0],
					    format & PERF_FORMAT_LOST ? 3 : 2, 1};
	else
		*out = (struct counts_read){part, 1, 0, 1 + times};
	return true;
}

/* Returns the layout of a count's event, if it has a class. */
static const struct layout *counted_layout(const struct decoder *d, uint64_t id)
{
	int index = id_table_find(&d->ids, id);

	return index >= 0 && d->layouts[index].nr_classes ? &d->layouts[index] : NULL;
}

/* Counts must be compared once, so there must be room for all events before the first one. */
static int check_room(const struct decoder *d, const struct counts_read *c, int max)
{
	uint32_t total = 0;

	for (uint32_t i = 0; i < c->nr; i++) {
		const struct layout *l = counted_layout(d, c->first[i * c->step + c->id]);

		total += l ? l->nr_classes : 0;
	}
	if (total > BATCH_MAX)
		return -EBADMSG;
	return total > (uint32_t)max ? -ENOSPC : 0;
}

int group_reads_decode(struct group_reads *g, const struct decoder *d, const struct layout *l,
		       const uint64_t *words, unsigned int n, struct event *ev, int max)
{
	struct counts_read counts;
	struct event sample;
	int ret, nr = 0;

	if (!decoder_read_sample(l, words, n, &sample) || !find_counts(l, words, n, &counts))
		return -EBADMSG;
	ret = check_room(d, &counts, max);
	if (ret)
		return ret;
	for (uint32_t i = 0; i < counts.nr; i++) {
		const uint64_t *count = counts.first + i * counts.step;
		const struct layout *member = counted_layout(d, count[counts.id]);
		uint64_t *previous;

		if (!member)
			continue;
		previous = previous_count(g, member, count[counts.id], sample.tid);
		if (!previous)
			return -EBADMSG;
		sample.period = count[0] - *previous;
		*previous = count[0];
		for (int j = 0; sample.period && j < member->nr_classes; j++) {
			ev[nr] = sample;
			ev[nr].class = member->classes[j];
			if (member != l)
				set_payload(g, l, member, words, &ev[nr]);
			nr++;
		}
	}
	return nr;
}
