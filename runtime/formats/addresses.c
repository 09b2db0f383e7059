/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The entries point into the text, whose lines are cut up in place. kallsyms has no sizes: a symbol
 * extends to the next one, but at most SYMBOL_REACH bytes, so that user space pointers and data
 * after the last module get no name.
 */
#include "formats/addresses.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	SYMBOL_REACH = 1 << 20,
	TEXT_MAX = 256 << 20,
	MAX_RELOADS = 32,
	PAGE = 4096,
};

struct entry {
	uint64_t addr;
	const char *text;
	const char *module; /* "[NAME]"; NULL: the kernel itself */
	bool named;	    /* perf names frames after symbols of its type */
};

struct kind {
	uint64_t reach; /* most bytes that an entry can cover */
	/* Parses what follows the address. Returns false if the line names nothing. */
	bool (*parse)(char *rest, struct entry *entry);
};

struct addresses {
	const struct kind *kind;
	char *path;
	char *watched;		/* path of a file that changes when the text does, or NULL */
	uint64_t watch_sum;	/* checksum of the file when the text was read */
	char *old[MAX_RELOADS]; /* earlier texts: their names are still in use */
	uint32_t nr_old;
	char *text;
	bool loaded;
	char anchor[32]; /* name of a symbol whose address is known, or "" */
	uint64_t anchor_addr;
	size_t count, size;    /* entries; bytes of text */
	struct entry *entries; /* ascending */
};

/* Absolute symbols are offsets, mostly of per-CPU data. */
static bool parse_symbol(char *rest, struct entry *entry)
{
	if (rest[0] != ' ' || rest[1] == '\0' || rest[2] != ' ' || strchr("aA", rest[1]))
		return false;
	entry->text = rest + 3;
	entry->named = strchr("tTwWdDbB", rest[1]);
	rest += 3 + strcspn(rest + 3, " \t");
	entry->module = rest[0] == '\t' && rest[1] == '[' ? rest + 1 : NULL;
	rest[0] = '\0';
	return entry->text[0] != '\0';
}

static bool parse_string(char *rest, struct entry *entry)
{
	size_t len;

	rest += strspn(rest, " :");
	if (rest[0] == '"')
		rest++;
	len = strlen(rest);
	if (len && rest[len - 1] == '"')
		rest[--len] = '\0';
	if (len >= 2 && strcmp(rest + len - 2, "\\n") == 0)
		rest[len - 2] = '\0';
	entry->text = rest;
	return true;
}

static const struct kind kinds[] = {
	[ADDRESSES_SYMBOLS] = {SYMBOL_REACH, parse_symbol},
	[ADDRESSES_STRINGS] = {1, parse_string},
};

struct addresses *addresses_new(enum addresses_kind kind, const char *path)
{
	struct addresses *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->kind = &kinds[kind];
	a->path = path ? strdup(path) : NULL;
	if (path && !a->path) {
		free(a);
		return NULL;
	}
	return a;
}

void addresses_free(struct addresses *a)
{
	if (!a)
		return;
	free(a->path);
	free(a->watched);
	for (uint32_t i = 0; i < a->nr_old; i++)
		free(a->old[i]);
	free(a->text);
	free(a->entries);
	free(a);
}

int addresses_set_text(struct addresses *a, const char *text, size_t size)
{
	char *copy = strndup(text, size);

	if (!copy)
		return -ENOMEM;
	free(a->text);
	free(a->entries);
	a->text = copy;
	a->entries = NULL;
	a->count = 0;
	a->loaded = false;
	return 0;
}

int addresses_replace_text(struct addresses *a, const char *text, size_t size)
{
	if (a->text && a->loaded) {
		if (a->nr_old == MAX_RELOADS)
			return -ENOSPC;
		a->old[a->nr_old++] = a->text;
		a->text = NULL;
	}
	return addresses_set_text(a, text, size);
}

int addresses_use(struct addresses *a, const char *path)
{
	if (a->text || a->path)
		return 0;
	a->path = strdup(path);
	return a->path ? 0 : -ENOMEM;
}

/* Files in proc and tracefs have no size. */
static char *read_file(const char *path)
{
	FILE *file = fopen(path, "re");
	size_t size = 0, room = 0;
	char *text = NULL;

	if (!file)
		return NULL;
	while (size < TEXT_MAX) {
		if (room - size < 2) {
			room = room ? 2 * room : 1 << 16;
			char *more = realloc(text, room);

			if (!more)
				break;
			text = more;
		}
		size_t n = fread(text + size, 1, room - size - 1, file);

		if (n == 0)
			break;
		size += n;
	}
	fclose(file);
	if (text)
		text[size] = '\0';
	return text;
}

/* Entries with the same address keep the order of the text. */
static int compare(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->text < b->text ? -1 : a->text > b->text;
}

/* Moves the kernel to its address in the recording. Modules do not move with it, so theirs are
 * unknown. */
static void move_to_anchor(struct addresses *a)
{
	uint64_t distance = 0;
	size_t kept = 0;

	for (size_t i = 0; i < a->count && a->anchor[0]; i++)
		if (!a->entries[i].module && strcmp(a->entries[i].text, a->anchor) == 0) {
			distance = a->anchor_addr - a->entries[i].addr;
			break;
		}
	for (size_t i = 0; distance && i < a->count; i++) {
		if (a->entries[i].module)
			continue;
		a->entries[kept] = a->entries[i];
		a->entries[kept++].addr += distance;
	}
	if (distance)
		a->count = kept;
}

static uint64_t sum_of(const char *path)
{
	char *text = read_file(path);
	uint64_t sum = 1;

	for (const char *c = text; c && *c; c++)
		sum = (sum ^ (uint8_t)*c) * 0x9e3779b97f4a7c15ULL;
	free(text);
	return sum;
}

static void load(struct addresses *a)
{
	size_t lines = 1;

	a->loaded = true;
	if (a->watched)
		a->watch_sum = sum_of(a->watched);
	if (!a->text && a->path)
		a->text = read_file(a->path);
	if (!a->text)
		return;
	a->size = strlen(a->text) + 1;
	for (const char *c = a->text; (c = strchr(c, '\n')); c++)
		lines++;
	a->entries = calloc(lines, sizeof(*a->entries));
	if (!a->entries)
		return;
	for (char *line = a->text, *next; line; line = next) {
		struct entry *entry = &a->entries[a->count];
		char *end;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		entry->addr = strtoull(line, &end, 16);
		/* Hidden addresses are all 0. */
		if (end != line && entry->addr && a->kind->parse(end, entry))
			a->count++;
	}
	move_to_anchor(a);
	qsort(a->entries, a->count, sizeof(*a->entries), compare);
}

void addresses_watch(struct addresses *a, const char *path)
{
	free(a->watched);
	a->watched = strdup(path);
}

void addresses_anchor(struct addresses *a, const char *name, uint64_t addr)
{
	if (strlen(name) >= sizeof(a->anchor) || !addr)
		return;
	strcpy(a->anchor, name);
	a->anchor_addr = addr;
}

bool addresses_hidden(const struct addresses *a)
{
	return a->loaded && a->text && !a->count;
}

uint64_t addresses_bytes(const struct addresses *a)
{
	return a->entries ? a->size + a->count * sizeof(*a->entries) : 0;
}

/* Returns how many entries begin at or before addr; 0 also if none of them can cover it. */
static size_t count_before(struct addresses *a, uint64_t addr)
{
	size_t low = 0, high;

	if (!a->loaded)
		load(a);
	high = a->count;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (a->entries[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && addr - a->entries[low - 1].addr < a->kind->reach ? low : 0;
}

const char *addresses_find(struct addresses *a, uint64_t addr, uint64_t *start)
{
	size_t i = count_before(a, addr);

	if (!i)
		return NULL;
	for (i--; i > 0 && a->entries[i - 1].addr == a->entries[i].addr; i--)
		;
	*start = a->entries[i].addr;
	return a->entries[i].text;
}

/* Returns where an entry ends: at the next one. As in perf, the last symbol of the kernel or of a
 * module ends with its page. */
static uint64_t end_of(const struct addresses *a, size_t i)
{
	const struct entry *e = &a->entries[i], *next = e + 1, *end = a->entries + a->count;

	while (next < end && (!next->named || next->addr == e->addr))
		next++;
	if (next < end && (next->module == e->module ||
			   (next->module && e->module && strcmp(next->module, e->module) == 0)))
		return next->addr;
	return (e->addr + 2 * PAGE - 1) / PAGE * PAGE;
}

static const struct entry *find_frame(struct addresses *a, uint64_t addr)
{
	size_t i = count_before(a, addr);

	while (i && !a->entries[i - 1].named)
		i--;
	return i && addr < end_of(a, i - 1) ? &a->entries[i - 1] : NULL;
}

/* Reads the text again, because modules may have been loaded. */
static bool reload(struct addresses *a)
{
	if (!a->watched || !a->text || a->nr_old == MAX_RELOADS ||
	    sum_of(a->watched) == a->watch_sum)
		return false;
	a->old[a->nr_old++] = a->text;
	free(a->entries);
	a->text = NULL;
	a->entries = NULL;
	a->count = 0;
	load(a);
	return true;
}

const char *addresses_find_frame(struct addresses *a, uint64_t addr, uint64_t *start,
				 const char **module)
{
	const struct entry *e = find_frame(a, addr);

	if (!e && reload(a))
		e = find_frame(a, addr);
	if (!e)
		return NULL;
	*start = e->addr;
	if (e->module)
		*module = e->module;
	return e->text;
}
