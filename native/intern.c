/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Open addressing with linear probing over 32-bit hashes; at most half of the slots are used. All
 * keys are in one array of 64-bit words: a header per part (kind, size << 8), then the value, or
 * the string padded with zeros. So keys are compared word by word, and equal words mean equal keys.
 * The hash is seeded, because traced programs choose keys and must not choose collisions.
 */
#include "intern.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define NO_KEY UINT32_MAX

enum {
	PART_WORDS = 1 + INTERN_BYTES / 8,
	KEY_WORDS = INTERN_PARTS * PART_WORDS,
	MAX_WORDS = 8 << 20, /* 64 MiB */
	FIRST_SLOTS = 64,
	FIRST_WORDS = 256,
};

struct slot {
	uint32_t hash;
	uint32_t id; /* NO_KEY: free */
};

struct key {
	uint32_t first; /* index into words */
	uint32_t words;
};

struct intern {
	struct slot *slots;
	struct key *keys; /* by id; room for half of the slots */
	uint64_t *words;
	uint32_t mask; /* slots - 1 */
	uint32_t count, max_keys;
	uint32_t used_words, room_words;
	uint64_t overflow;
	uint64_t seed;
	/* the key being pushed */
	uint64_t hash;
	uint32_t parts, pushed;
	uint64_t scratch[KEY_WORDS];
};

static void clear_slots(struct intern *t)
{
	memset(t->slots, 0xff, ((size_t)t->mask + 1) * sizeof(*t->slots));
}

struct intern *intern_new(uint32_t max_keys)
{
	struct intern *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->slots = malloc(FIRST_SLOTS * sizeof(*t->slots));
	t->keys = malloc(FIRST_SLOTS / 2 * sizeof(*t->keys));
	t->words = malloc(FIRST_WORDS * sizeof(*t->words));
	if (!t->slots || !t->keys || !t->words) {
		intern_free(t);
		return NULL;
	}
	t->mask = FIRST_SLOTS - 1;
	t->room_words = FIRST_WORDS;
	t->max_keys = max_keys;
	/* Without entropy (early boot) the seed stays 0, and the table still works. */
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) < 0)
		t->seed = 0;
	clear_slots(t);
	intern_cancel(t);
	return t;
}

void intern_free(struct intern *t)
{
	if (!t)
		return;
	free(t->slots);
	free(t->keys);
	free(t->words);
	free(t);
}

void intern_clear(struct intern *t)
{
	t->count = 0;
	t->used_words = 0;
	t->overflow = 0;
	clear_slots(t);
	intern_cancel(t);
}

void intern_cancel(struct intern *t)
{
	t->parts = 0;
	t->pushed = 0;
	t->hash = t->seed;
}

static uint64_t hash_word(uint64_t hash, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0x9e3779b97f4a7c15ULL;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static void push_value(struct intern *t, enum intern_kind kind, uint64_t word)
{
	if (t->parts == INTERN_PARTS)
		return;
	t->parts++;
	t->hash = hash_word(t->hash + kind, word);
	t->scratch[t->pushed++] = kind;
	t->scratch[t->pushed++] = word;
}

void intern_push_int(struct intern *t, int64_t value)
{
	push_value(t, INTERN_INT, (uint64_t)value);
}

void intern_push_uint(struct intern *t, uint64_t value)
{
	push_value(t, value > INT64_MAX ? INTERN_UINT : INTERN_INT, value);
}

void intern_push_number(struct intern *t, double value)
{
	const double two63 = 9223372036854775808.0;
	uint64_t bits;

	if (value >= -two63 && value < two63 && value == (double)(int64_t)value) {
		intern_push_int(t, (int64_t)value);
	} else if (value >= two63 && value < 2 * two63) {
		intern_push_uint(t, (uint64_t)value);
	} else if (value != value) {
		intern_push_bytes(t, "nan", 3);
	} else {
		memcpy(&bits, &value, sizeof(bits));
		push_value(t, INTERN_DOUBLE, bits);
	}
}

/* Loads the last 1 to 7 bytes of a string as a word; memcpy() of that size would be a call. */
static uint64_t load_tail(const char *bytes, size_t size)
{
	unsigned int shift = 0;
	uint64_t value = 0;
	uint32_t four;
	uint16_t two;

	if (size & 4) {
		memcpy(&four, bytes, 4);
		value = le32toh(four);
		shift = 32;
		bytes += 4;
	}
	if (size & 2) {
		memcpy(&two, bytes, 2);
		value |= (uint64_t)le16toh(two) << shift;
		shift += 16;
		bytes += 2;
	}
	if (size & 1)
		value |= (uint64_t)(uint8_t)*bytes << shift;
	return htole64(value);
}

void intern_push_bytes(struct intern *t, const char *bytes, size_t size)
{
	uint64_t *out = t->scratch + t->pushed;
	uint64_t hash;

	if (t->parts == INTERN_PARTS)
		return;
	t->parts++;
	size = size < INTERN_BYTES ? size : INTERN_BYTES;
	*out = INTERN_STRING | (uint64_t)size << 8;
	hash = t->hash + *out++;
	for (; size >= 8; size -= 8, bytes += 8) {
		memcpy(out, bytes, 8);
		hash = hash_word(hash, *out++);
	}
	if (size) {
		*out = load_tail(bytes, size);
		hash = hash_word(hash, *out++);
	}
	t->hash = hash;
	t->pushed = (uint32_t)(out - t->scratch);
}

static void place(struct intern *t, uint32_t hash, uint32_t id)
{
	uint32_t i = hash & t->mask;

	while (t->slots[i].id != NO_KEY)
		i = (i + 1) & t->mask;
	t->slots[i] = (struct slot){hash, id};
}

/* Doubles slots and keys. Returns 0 without memory. */
static int grow_slots(struct intern *t)
{
	size_t n = (size_t)t->mask + 1;
	struct slot *old = t->slots;
	struct slot *slots = malloc(2 * n * sizeof(*slots));
	struct key *keys = realloc(t->keys, n * sizeof(*keys));

	if (keys)
		t->keys = keys;
	if (!keys || !slots) {
		free(slots);
		return 0;
	}
	t->slots = slots;
	t->mask = (uint32_t)(2 * n - 1);
	clear_slots(t);
	for (size_t i = 0; i < n; i++)
		if (old[i].id != NO_KEY)
			place(t, old[i].hash, old[i].id);
	free(old);
	return 1;
}

static int grow_words(struct intern *t)
{
	uint32_t room = t->room_words;
	uint64_t *words;

	while (room < t->used_words + t->pushed)
		room *= 2;
	if (room > MAX_WORDS)
		return 0;
	words = realloc(t->words, room * sizeof(*words));
	if (!words)
		return 0;
	t->words = words;
	t->room_words = room;
	return 1;
}

/* Stores the pushed key under the next id, or returns the overflow bucket. */
static uint32_t insert(struct intern *t, uint32_t hash)
{
	if (t->count == t->max_keys || (t->count > t->mask / 2 && !grow_slots(t)) ||
	    (t->used_words + t->pushed > t->room_words && !grow_words(t))) {
		t->overflow++;
		return t->max_keys;
	}
	t->keys[t->count] = (struct key){t->used_words, t->pushed};
	memcpy(t->words + t->used_words, t->scratch, t->pushed * sizeof(*t->words));
	t->used_words += t->pushed;
	place(t, hash, t->count);
	return t->count++;
}

static int is_pushed_key(const struct intern *t, uint32_t id)
{
	const struct key *key = &t->keys[id];
	const uint64_t *words = t->words + key->first;

	if (key->words != t->pushed)
		return 0;
	for (uint32_t i = 0; i < key->words; i++)
		if (words[i] != t->scratch[i])
			return 0;
	return 1;
}

uint32_t intern_commit(struct intern *t)
{
	uint32_t hash = (uint32_t)t->hash, i = hash & t->mask, id;

	while ((id = t->slots[i].id) != NO_KEY) {
		if (t->slots[i].hash == hash && is_pushed_key(t, id))
			break;
		i = (i + 1) & t->mask;
	}
	if (id == NO_KEY)
		id = insert(t, hash);
	intern_cancel(t);
	return id;
}

uint32_t intern_number(struct intern *t, double value)
{
	intern_push_number(t, value);
	return intern_commit(t);
}

uint32_t intern_count(const struct intern *t)
{
	return t->count;
}

uint64_t intern_overflow(const struct intern *t)
{
	return t->overflow;
}

void intern_add_overflow(struct intern *t, uint64_t uses)
{
	t->overflow += uses;
}

int intern_part(const struct intern *t, uint32_t id, uint32_t part, struct intern_part *out)
{
	const uint64_t *w, *end;

	if (id >= t->count)
		return 0;
	w = t->words + t->keys[id].first;
	end = w + t->keys[id].words;
	while (w < end) {
		uint32_t size = (uint32_t)(*w >> 8);
		uint32_t words = (*w & 0xff) == INTERN_STRING ? (size + 7) / 8 : 1;

		if (!part--) {
			*out = (struct intern_part){.kind = *w & 0xff, .size = size};
			if (out->kind == INTERN_STRING)
				out->bytes = (const char *)(w + 1);
			else if (out->kind == INTERN_DOUBLE)
				memcpy(&out->d, w + 1, sizeof(out->d));
			else
				out->i = (int64_t)w[1];
			return 1;
		}
		w += 1 + words;
	}
	return 0;
}
