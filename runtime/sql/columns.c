/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Integers are sorted by their bytes, those that are the same in all rows excepted. Texts are
 * numbered first, because most columns have few different ones: only these are compared, and the
 * rows are sorted by the rank of their text.
 */
#include "sql/columns.h"

#include <stdlib.h>
#include <string.h>
#include "event.h"
#include "formats/tracepoint.h"
#include "session/tasks.h"

enum { MIN_SLOTS = 256 };

struct index {
	uint32_t *order;   /* n row numbers */
	int64_t *keys;	   /* n, in that order: the value, or the rank of the text; 0 for NULL */
	struct span *text; /* by rank; NULL: a column of integers */
	uint32_t n, nulls, texts;
};

static int64_t load(const uint8_t *at, uint32_t size, bool is_signed)
{
	union {
		int8_t i8;
		int16_t i16;
		int32_t i32;
		int64_t i64;
		uint8_t u8;
		uint16_t u16;
		uint32_t u32;
	} v;

	memcpy(&v, at, size);
	switch (size) {
	case 1:
		return is_signed ? v.i8 : v.u8;
	case 2:
		return is_signed ? v.i16 : v.u16;
	case 4:
		return is_signed ? v.i32 : (int64_t)v.u32;
	default:
		return v.i64;
	}
}

bool column_integer(const struct column *c, const struct event *ev, int64_t *value)
{
	switch (c->kind) {
	case COLUMN_PID:
		*value = ev->pid;
		return true;
	case COLUMN_TID:
		*value = ev->tid;
		return true;
	case COLUMN_TIME:
		*value = (int64_t)(c->base + (uint64_t)(int64_t)ev->time);
		return true;
	case COLUMN_CPU:
		*value = ev->cpu;
		return true;
	case COLUMN_PERIOD:
		*value = (int64_t)ev->period;
		return true;
	case COLUMN_MACHINE:
		*value = ev->flags >> EVENT_MEMBER_SHIFT;
		return true;
	default:
		if (c->offset + c->size > ev->raw_size)
			return false;
		*value = load(ev->raw + c->offset, c->size, c->flags & FIELD_SIGNED);
		return true;
	}
}

/* Finds the bytes of a field of any length. */
static bool dynamic(const struct column *c, const struct event *ev, struct span *value)
{
	uint32_t word, at;

	memcpy(&word, ev->raw + c->offset, sizeof(word));
	at = (word & 0xffff) + (c->flags & FIELD_RELATIVE ? c->offset + c->size : 0);
	if (at + (word >> 16) > ev->raw_size)
		return false;
	*value = (struct span){(const char *)ev->raw + at, word >> 16};
	return true;
}

bool column_span(const struct column *c, const struct event *ev, struct span *value)
{
	if (c->kind == COLUMN_COMM) {
		value->at = tasks_name(c->tasks, ev->tid, ev->time);
		value->size = strlen(value->at);
		return true;
	}
	if (c->offset + c->size > ev->raw_size)
		return false;
	if (c->flags & FIELD_DYNAMIC) {
		if (!dynamic(c, ev, value))
			return false;
	} else {
		*value = (struct span){(const char *)ev->raw + c->offset, c->size};
	}
	if (c->type == COLUMN_TEXT)
		value->size = strnlen(value->at, value->size);
	return true;
}

int span_compare(struct span a, struct span b)
{
	int order = memcmp(a.at, b.at, a.size < b.size ? a.size : b.size);

	return order ? order : (a.size > b.size) - (a.size < b.size);
}

struct pair {
	int64_t key;
	uint32_t row;
};

/* Sorts by the keys, one byte after the other. Equal pairs stay in their order. Returns the sorted
 * one of the two arrays. */
static struct pair *sort_pairs(struct pair *from, struct pair *to, uint32_t n)
{
	uint64_t differ = 0;

	for (uint32_t i = 1; i < n; i++)
		differ |= (uint64_t)(from[i].key ^ from[0].key);
	for (uint32_t shift = 0; shift < 64; shift += 8) {
		uint32_t starts[256] = {0}, at = 0;
		/* The sign makes a number less, not greater. */
		uint64_t flip = shift == 56 ? 0x80 : 0;
		struct pair *other = from;

		if (!(differ >> shift & 0xff))
			continue;
		for (uint32_t i = 0; i < n; i++)
			starts[((uint64_t)from[i].key >> shift & 0xff) ^ flip]++;
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t count = starts[i];

			starts[i] = at;
			at += count;
		}
		for (uint32_t i = 0; i < n; i++)
			to[starts[((uint64_t)from[i].key >> shift & 0xff) ^ flip]++] = from[i];
		from = to;
		to = other;
	}
	return from;
}

/* The different texts of a column, numbered as they come. */
struct texts {
	struct span *list;
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t n, mask;
};

static uint32_t hash(struct span s)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < s.size; i++)
		h = (h ^ (uint8_t)s.at[i]) * 16777619u;
	return h ^ h >> 15;
}

static uint32_t *text_slot(const struct texts *t, struct span s)
{
	uint32_t at = hash(s) & t->mask;

	while (t->slots[at] && span_compare(t->list[t->slots[at] - 1], s))
		at = (at + 1) & t->mask;
	return &t->slots[at];
}

static int texts_size(struct texts *t, uint32_t slots)
{
	struct span *list = reallocarray(t->list, slots / 2 + 1, sizeof(*list));

	if (!list)
		return -1;
	t->list = list;
	free(t->slots);
	t->slots = calloc(slots, sizeof(*t->slots));
	t->mask = slots - 1;
	if (!t->slots)
		return -1;
	for (uint32_t i = 0; i < t->n; i++)
		*text_slot(t, t->list[i]) = i + 1;
	return 0;
}

/* Returns the number of a text; negative: no memory. */
static int64_t text_number(struct texts *t, struct span s)
{
	uint32_t *slot;

	if (t->n > t->mask / 2 && texts_size(t, 2 * (t->mask + 1)))
		return -1;
	slot = text_slot(t, s);
	if (!*slot) {
		t->list[t->n++] = s;
		*slot = t->n;
	}
	return *slot - 1;
}

static int by_text(const void *a, const void *b, void *list)
{
	const struct span *texts = list;

	return span_compare(texts[*(const uint32_t *)a], texts[*(const uint32_t *)b]);
}

/* Replaces the numbers of texts by their ranks, and moves the texts to the index. */
static int rank_texts(struct index *x, struct texts *t, struct pair *pairs, uint32_t n)
{
	uint32_t *numbers = malloc((t->n + 1) * sizeof(*numbers));
	uint32_t *ranks = malloc((t->n + 1) * sizeof(*ranks));

	x->text = malloc((t->n + 1) * sizeof(*x->text));
	x->texts = t->n;
	if (numbers && ranks && x->text) {
		for (uint32_t i = 0; i < t->n; i++)
			numbers[i] = i;
		qsort_r(numbers, t->n, sizeof(*numbers), by_text, t->list);
		for (uint32_t i = 0; i < t->n; i++) {
			ranks[numbers[i]] = i;
			x->text[i] = t->list[numbers[i]];
		}
		for (uint32_t i = 0; i < n; i++)
			pairs[i].key = ranks[pairs[i].key];
	}
	free(numbers);
	free(ranks);
	return numbers && ranks && x->text ? 0 : -1;
}

/* Fills the pairs with the rows that are not NULL, and the order with the others. */
static int read_integers(struct index *x, const struct column *c, struct event *const *rows,
			 uint32_t n, struct pair *pairs)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (column_integer(c, rows[i], &pairs[found].key))
			pairs[found++].row = i;
		else
			x->order[x->nulls++] = i;
	}
	return 0;
}

static int read_texts(struct index *x, const struct column *c, struct event *const *rows,
		      uint32_t n, struct pair *pairs)
{
	struct texts texts = {0};
	uint32_t found = 0;
	int err = texts_size(&texts, MIN_SLOTS);

	for (uint32_t i = 0; i < n && !err; i++) {
		struct span s;

		if (column_span(c, rows[i], &s)) {
			pairs[found].key = text_number(&texts, s);
			err = pairs[found].key < 0 ? -1 : 0;
			pairs[found++].row = i;
		} else {
			x->order[x->nulls++] = i;
		}
	}
	if (!err)
		err = rank_texts(x, &texts, pairs, found);
	free(texts.list);
	free(texts.slots);
	return err;
}

struct index *index_new(const struct column *c, struct event *const *rows, uint32_t n)
{
	struct index *x = calloc(1, sizeof(*x));
	struct pair *pairs = reallocarray(NULL, n + 1, sizeof(*pairs));
	struct pair *spare = reallocarray(NULL, n + 1, sizeof(*spare));
	struct pair *sorted;

	if (!x || !pairs || !spare)
		goto failed;
	x->n = n;
	x->order = reallocarray(NULL, n + 1, sizeof(*x->order));
	x->keys = reallocarray(NULL, n + 1, sizeof(*x->keys));
	if (!x->order || !x->keys)
		goto failed;
	if ((c->type == COLUMN_TEXT ? read_texts : read_integers)(x, c, rows, n, pairs))
		goto failed;
	memset(x->keys, 0, x->nulls * sizeof(*x->keys));
	sorted = sort_pairs(pairs, spare, n - x->nulls);
	for (uint32_t i = x->nulls; i < n; i++) {
		x->order[i] = sorted[i - x->nulls].row;
		x->keys[i] = sorted[i - x->nulls].key;
	}
	free(pairs);
	free(spare);
	return x;

failed:
	free(pairs);
	free(spare);
	index_free(x);
	return NULL;
}

void index_free(struct index *x)
{
	if (!x)
		return;
	free(x->order);
	free(x->keys);
	free(x->text);
	free(x);
}

const uint32_t *index_order(const struct index *x)
{
	return x->order;
}

bool index_integer(const struct index *x, uint32_t place, int64_t *value)
{
	*value = x->keys[place];
	return place >= x->nulls;
}

bool index_text(const struct index *x, uint32_t place, struct span *value)
{
	if (place < x->nulls)
		return false;
	*value = x->text[x->keys[place]];
	return true;
}

uint32_t index_nulls(const struct index *x)
{
	return x->nulls;
}

uint32_t index_below(const struct index *x, int64_t value, bool or_equal)
{
	uint32_t low = x->nulls, high = x->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (x->keys[middle] < value || (or_equal && x->keys[middle] == value))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

uint32_t index_below_text(const struct index *x, struct span value, bool or_equal)
{
	uint32_t low = 0, high = x->texts;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		int order = span_compare(x->text[middle], value);

		if (order < 0 || (or_equal && !order))
			low = middle + 1;
		else
			high = middle;
	}
	return index_below(x, low, false);
}
