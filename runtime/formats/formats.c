/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The set is an array of tracepoints, sorted by key. That of the running kernel grows as events are
 * asked for, that of a recording as its texts are added. Tracepoints are never moved: they stay
 * valid until the set is freed.
 */
#include "formats/formats.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "error.h"
#include "formats/addresses.h"
#include "formats/format.h"
#include "formats/printer.h"
#include "formats/symbol_pieces.h"
#include "formats/tracefs.h"
#include "formats/tracepoint.h"
#include "nearest.h"

enum { TEXT_MAX = 1 << 20, KEY_MAX = 256 };

struct formats {
	char *events; /* the directory in tracefs; NULL: of a recording */
	struct addresses *symbols;
	struct symbol_pieces pieces;
	struct addresses *strings;
	struct printers printers;
	struct tracepoint **list; /* by key, "system:name" */
	size_t count;
};

/* dir: tracefs; NULL: the set is for a recording. */
static struct formats *new_set(const char *dir)
{
	struct formats *f = calloc(1, sizeof(*f));
	char path[KEY_MAX];

	if (!f)
		return NULL;
	snprintf(path, sizeof(path), "%s/printk_formats", dir ? dir : "");
	f->symbols = addresses_new(ADDRESSES_SYMBOLS, dir ? "/proc/kallsyms" : NULL);
	f->strings = addresses_new(ADDRESSES_STRINGS, dir ? path : NULL);
	if (dir && asprintf(&f->events, "%s/events", dir) < 0)
		f->events = NULL;
	f->printers.symbols = f->symbols;
	if (!f->symbols || !f->strings || (dir && !f->events)) {
		formats_free(f);
		return NULL;
	}
	return f;
}

struct formats *formats_new(void)
{
	return new_set(NULL);
}

struct formats *formats_open_tracefs(struct error *err)
{
	static const char *const dirs[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
	int code = ENOENT;

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		char events[KEY_MAX];

		snprintf(events, sizeof(events), "%s/events", dirs[i]);
		if (access(events, R_OK | X_OK) == 0) {
			struct formats *f = new_set(dirs[i]);

			if (f)
				return f;
			code = ENOMEM;
			break;
		}
		/* An unreadable tracefs is a better message than another one that is missing. */
		if (errno != ENOENT)
			code = errno;
	}
	if (code != ENOMEM)
		error_unavailable(err);
	if (code == ENOENT)
		error_set(err, -code,
			  "tracefs is not mounted; mount it with: "
			  "mount -t tracefs tracefs /sys/kernel/tracing");
	else if (code == EACCES || code == EPERM)
		error_set(err, -code,
			  "tracefs is not readable for this user; run as root, or let root allow "
			  "it: mount -o remount,mode=755 /sys/kernel/tracing");
	else
		error_set(err, -code, "tracefs: %s", strerror(code));
	errno = code;
	return NULL;
}

void formats_free(struct formats *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		tracepoint_free(f->list[i]);
	free(f->list);
	printer_free(f->printers.of_formats);
	printer_free(f->printers.of_plugins);
	symbol_pieces_begin(&f->pieces);
	addresses_free(f->symbols);
	addresses_free(f->strings);
	free(f->events);
	free(f);
}

/* Returns the index of key, or where it belongs. */
static size_t place(const struct formats *f, const char *key, bool *found)
{
	size_t low = 0, high = f->count;

	*found = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(tracepoint_key(f->list[mid]), key);

		if (order == 0) {
			*found = true;
			return mid;
		}
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Adds a tracepoint. Takes over text, also on failure. */
static int insert(struct formats *f, const char *key, char *text, size_t size)
{
	struct tracepoint **more;
	struct tracepoint *t;
	bool found;
	size_t at = place(f, key, &found);

	if (found) {
		free(text);
		return -EEXIST;
	}
	t = tracepoint_new(key, text, size, f->events != NULL, &f->printers);
	more = realloc(f->list, (f->count + 1) * sizeof(*more));
	if (more)
		f->list = more;
	if (!t || !more) {
		tracepoint_free(t);
		return -ENOMEM;
	}
	memmove(&more[at + 1], &more[at], (f->count - at) * sizeof(*more));
	more[at] = t;
	f->count++;
	return 0;
}

/* Returns whether this is a system or event name; other names could leave the directory. */
static bool plain_name(const char *name)
{
	size_t len = 0;

	for (; name[len]; len++)
		if (!isalnum((unsigned char)name[len]) && !strchr("_-.", name[len]))
			return false;
	return len && len < KEY_MAX / 2 && name[0] != '.';
}

int formats_add_text(struct formats *f, const char *system, const char *text, size_t size)
{
	char *name = NULL, *copy = NULL;
	char key[KEY_MAX];
	int ret;

	if (size > TEXT_MAX)
		return -E2BIG;
	ret = format_name(text, size, &name);
	if (ret)
		return ret;
	if (!plain_name(system) || !plain_name(name)) {
		free(name);
		return -EINVAL;
	}
	snprintf(key, sizeof(key), "%s:%s", system, name);
	free(name);
	copy = strndup(text, size);
	return copy ? insert(f, key, copy, strlen(copy)) : -ENOMEM;
}

int formats_add_kallsyms(struct formats *f, const char *text, size_t size)
{
	return addresses_set_text(f->symbols, text, size);
}

void formats_add_symbols(struct formats *f, const char *piece, size_t size)
{
	symbol_pieces_add(&f->pieces, f->symbols, piece, size);
}

void formats_restart_symbols(struct formats *f)
{
	symbol_pieces_begin(&f->pieces);
}

struct addresses *formats_symbols(struct formats *f)
{
	return f->symbols;
}

int formats_use_own_symbols(struct formats *f)
{
	return addresses_use(f->symbols, "/proc/kallsyms");
}

void formats_anchor_symbols(struct formats *f, const char *name, uint64_t addr)
{
	addresses_anchor(f->symbols, name, addr);
}

int formats_add_strings(struct formats *f, const char *text, size_t size)
{
	return addresses_set_text(f->strings, text, size);
}

const char *formats_symbol(struct formats *f, uint64_t addr, uint64_t *start)
{
	return addresses_find(f->symbols, addr, start);
}

const char *formats_string(struct formats *f, uint64_t addr)
{
	uint64_t start;

	return addresses_find(f->strings, addr, &start);
}

char *formats_names(struct formats *f)
{
	char *names = NULL;
	size_t size;
	FILE *out;

	if (f->events)
		return tracefs_names(f->events);
	out = open_memstream(&names, &size);
	for (size_t i = 0; out && i < f->count; i++)
		fprintf(out, "%s\n", tracepoint_key(f->list[i]));
	if (!out || fclose(out)) {
		free(names);
		return NULL;
	}
	return names;
}

/* Returns the systems of f, one per line; some occur more than once. */
static char *system_names(struct formats *f)
{
	char *names, *from, *to, *next;

	if (f->events)
		return tracefs_systems(f->events);
	names = formats_names(f);
	if (!names)
		return NULL;
	/* "system:name" becomes "system". */
	for (from = to = names; *from; from = next) {
		size_t len = strcspn(from, ":");

		next = from + strcspn(from, "\n") + 1;
		memmove(to, from, len);
		to += len;
		*to++ = '\n';
	}
	*to = '\0';
	return names;
}

static bool has_line(const char *names, const char *want)
{
	size_t len = strlen(want);

	for (const char *at = names; *at; at += strcspn(at, "\n") + 1)
		if (strncmp(at, want, len) == 0 && at[len] == '\n')
			return true;
	return false;
}

static void find_nearest(struct nearest *near, const char *word, const char *lines)
{
	nearest_start(near, word);
	while (lines && *lines) {
		size_t len = strcspn(lines, "\n");

		nearest_try(near, lines, len);
		lines += len + 1;
	}
}

static int unknown(struct formats *f, const char *system, const char *key, struct error *err)
{
	char *systems = system_names(f), *names = NULL;
	bool known = systems && has_line(systems, system);
	struct nearest near;

	/* A system in tracefs may exist without events, so look for both. */
	names = known || !systems ? formats_names(f) : NULL;
	if (names)
		find_nearest(&near, key, names);
	else
		find_nearest(&near, system, systems);
	free(systems);
	free(names);
	return error_set(err, -ENOENT, "no such event %s'%s'%s", known ? "" : "system ",
			 known ? key : system, nearest_hint(&near));
}

/* Reads an event of tracefs. */
static int load(struct formats *f, const char *system, const char *name, const char *key,
		struct error *err)
{
	char path[2 * KEY_MAX];
	char *text = NULL;
	size_t size = 0;
	int ret;

	snprintf(path, sizeof(path), "%s/%s/%s/format", f->events, system, name);
	ret = tracefs_read_format(path, &text, &size);
	if (ret == -ENOENT || ret == -ENOTDIR)
		return unknown(f, system, key, err);
	if (ret)
		return error_set(err, ret, "%s: %s", path, strerror(-ret));
	ret = insert(f, key, text, size);
	return ret ? error_set(err, ret, "out of memory") : 0;
}

static int find(struct formats *f, const char *system, const char *name, struct tracepoint **out,
		struct error *err)
{
	char key[KEY_MAX];
	bool found = false;
	size_t at = 0;
	int ret = 0;

	snprintf(key, sizeof(key), "%s:%s", system, name);
	if (!plain_name(system) || !plain_name(name))
		return unknown(f, system, key, err);
	at = place(f, key, &found);
	if (!found) {
		ret = f->events ? load(f, system, name, key, err) : unknown(f, system, key, err);
		if (ret)
			return ret;
		at = place(f, key, &found);
	}
	*out = f->list[at];
	return tracepoint_parse(*out, err);
}

struct tracepoint *formats_find(struct formats *f, const char *system, const char *name,
				struct error *err)
{
	struct tracepoint *t = NULL;
	int ret = find(f, system, name, &t, err);

	if (ret)
		errno = -ret;
	return ret ? NULL : t;
}

struct tracepoint *formats_by_id(struct formats *f, uint64_t id)
{
	for (size_t i = 0; i < f->count; i++)
		if (!tracepoint_parse(f->list[i], NULL) && tracepoint_id(f->list[i]) == id)
			return f->list[i];
	return NULL;
}
