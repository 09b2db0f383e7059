/* SPDX-License-Identifier: GPL-2.0-only */
#include "recording/twins.h"
#include <errno.h>
#include <stdlib.h>
#include <linux/perf_event.h>
#include "decode/decoder.h"
#include "decode/sample.h"

enum { MOST = 64, APART = 10000000 /* ns: more is another event */ };

struct last { /* sample of a tracepoint on a CPU */
	uint64_t hash, time, seen;
};

struct attribute {
	uint32_t kind; /* the same for twins, from 1; 0: it has none */
	uint32_t rank; /* among the twins */
};

struct twins {
	const struct decoder *decoder;
	struct attribute *attributes;
	struct last *last; /* by ring and kind */
	uint32_t nr_kinds;
	uint64_t count; /* of samples that a twin had */
};

static bool are_twins(const struct perf_event_attr *a, const struct perf_event_attr *b)
{
	return a->config == b->config && a->sample_type == b->sample_type &&
	       a->sample_stack_user == b->sample_stack_user;
}

/* Each sample is one event, of which the raw data and the CPU are known. */
static bool may_have_twin(const struct perf_event_attr *a)
{
	const uint64_t needed = PERF_SAMPLE_RAW | PERF_SAMPLE_CPU;

	return a->type == PERF_TYPE_TRACEPOINT && a->sample_period == 1 && !a->freq &&
	       (a->sample_type & needed) == needed && !(a->sample_type & PERF_SAMPLE_READ);
}

static void find(struct twins *t)
{
	int n = decoder_nr_attrs(t->decoder);

	for (int i = 0; i < n; i++) {
		const struct perf_event_attr *a = decoder_attr(t->decoder, i);
		uint32_t rank = 0;

		if (t->attributes[i].kind || !may_have_twin(a))
			continue;
		for (int j = i + 1; j < n && rank < MOST - 1; j++) {
			const struct perf_event_attr *b = decoder_attr(t->decoder, j);

			if (may_have_twin(b) && are_twins(a, b))
				t->attributes[j] = (struct attribute){t->nr_kinds + 1, ++rank};
		}
		if (rank)
			t->attributes[i].kind = ++t->nr_kinds;
	}
}

int twins_new(const struct decoder *d, uint32_t nr_rings, struct twins **out)
{
	struct twins *t = calloc(1, sizeof(*t));

	*out = NULL;
	if (!t)
		return -ENOMEM;
	t->decoder = d;
	t->attributes = calloc(decoder_nr_attrs(d) + 1, sizeof(*t->attributes));
	if (t->attributes)
		find(t);
	if (t->nr_kinds)
		t->last = calloc((size_t)nr_rings * t->nr_kinds, sizeof(*t->last));
	if (!t->attributes || (t->nr_kinds && !t->last)) {
		twins_free(t);
		return -ENOMEM;
	}
	if (t->nr_kinds)
		*out = t;
	else
		twins_free(t);
	return 0;
}

void twins_free(struct twins *t)
{
	if (!t)
		return;
	free(t->attributes);
	free(t->last);
	free(t);
}

/* FNV-1a, by words. */
static uint64_t hash_of(const uint64_t *words, uint32_t n)
{
	uint64_t hash = 0xcbf29ce484222325;

	for (uint32_t i = 0; i < n; i++)
		hash = (hash ^ words[i]) * 0x100000001b3;
	return hash;
}

bool twins_have(struct twins *t, const struct perf_event_header *rec, uint32_t ring, uint64_t time)
{
	int index = t ? decoder_index_of(t->decoder, rec) : -1;
	const struct attribute *a = index >= 0 ? &t->attributes[index] : NULL;
	const uint64_t *raw;
	struct last *last;
	uint64_t hash, bit;
	uint32_t size;

	if (!a || !a->kind)
		return false;
	raw = sample_part(decoder_attr(t->decoder, index), (const uint64_t *)(rec + 1),
			  (rec->size - sizeof(*rec)) / 8, PERF_SAMPLE_RAW, &size);
	if (!raw)
		return false;
	hash = hash_of(raw, size);
	bit = 1ULL << a->rank;
	last = &t->last[(size_t)ring * t->nr_kinds + a->kind - 1];
	if (last->hash == hash && !(last->seen & bit) && time - last->time < APART) {
		last->seen |= bit;
		t->count++;
		return true;
	}
	*last = (struct last){hash, time, bit};
	return false;
}

uint64_t twins_count(const struct twins *t)
{
	return t ? t->count : 0;
}
