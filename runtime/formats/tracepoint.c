/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A set of formats is a sorted array of entries; a set of the running kernel fills it as events
 * are asked for, a set of a recording as its texts are added. Entries are never moved once made,
 * so a tracepoint and its fields stay valid until the set is freed.
 */
#include "formats/tracepoint.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "formats/addresses.h"
#include "error.h"
#include "formats/format.h"
#include "nearest.h"
#include "formats/payload.h"
#include "formats/printer.h"

enum { TEXT_MAX = 1 << 20, KEY_MAX = 256 };

struct tracepoint {
	char *key; /* "system:name" */
	char *text;
	size_t size;
	struct format format;
	bool parsed;
	bool trusted; /* the running kernel's own text */
	bool no_printer;
	struct printer *printer;   /* made when first needed */
	struct addresses *symbols; /* of the set */
};

struct formats {
	char *events; /* the directory in tracefs; NULL for a recording's set */
	struct addresses *symbols;
	struct addresses *strings;
	struct tracepoint **entries; /* by key */
	size_t count;
};

/* dir: tracefs, NULL for a set that is filled. */
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
		/* A tracefs that is closed to us says more than a second one that is not there. */
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

static void tracepoint_free(struct tracepoint *t)
{
	if (!t)
		return;
	printer_free(t->printer);
	format_release(&t->format);
	free(t->key);
	free(t->text);
	free(t);
}

void formats_free(struct formats *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->count; i++)
		tracepoint_free(f->entries[i]);
	free(f->entries);
	addresses_free(f->symbols);
	addresses_free(f->strings);
	free(f->events);
	free(f);
}

/* Where key is or belongs. */
static size_t place(const struct formats *f, const char *key, bool *found)
{
	size_t low = 0, high = f->count;

	*found = false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(f->entries[mid]->key, key);

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

/* Takes text over, also on failure. */
static int insert(struct formats *f, const char *key, char *text, size_t size)
{
	struct tracepoint *t = calloc(1, sizeof(*t));
	struct tracepoint **more;
	bool found;
	size_t at = place(f, key, &found);

	if (t) {
		t->text = text;
		t->key = strdup(key);
	}
	more = realloc(f->entries, (f->count + 1) * sizeof(*more));
	if (more)
		f->entries = more;
	if (!t || !t->key || !more || found) {
		if (!t)
			free(text);
		tracepoint_free(t);
		return found ? -EEXIST : -ENOMEM;
	}
	t->size = size;
	t->trusted = f->events != NULL;
	t->symbols = f->symbols;
	memmove(&more[at + 1], &more[at], (f->count - at) * sizeof(*more));
	more[at] = t;
	f->count++;
	return 0;
}

/* A system or event name: also keeps a name from leaving its directory. */
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

/* A growing text. */
struct text {
	char *at;
	size_t len, room;
	bool failed;
};

static void text_add(struct text *t, const char *a, const char *b, const char *c)
{
	size_t need = strlen(a) + strlen(b) + strlen(c) + 1;

	if (t->failed)
		return;
	if (t->room - t->len < need) {
		size_t room = 2 * (t->room + need);
		char *more = realloc(t->at, room);

		if (!more) {
			t->failed = true;
			return;
		}
		t->at = more;
		t->room = room;
	}
	t->len += (size_t)snprintf(t->at + t->len, t->room - t->len, "%s%s%s", a, b, c);
}

static DIR *open_dir_at(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int compare_keys(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of text in order; frees text. */
static char *sort_lines(struct text text)
{
	char **lines = NULL, *save = NULL;
	struct text sorted = {0};
	size_t count = 0, n = 0;

	for (size_t i = 0; i < text.len; i++)
		count += text.at[i] == '\n';
	lines = calloc(count + 1, sizeof(*lines));
	text_add(&sorted, "", "", "");
	if (lines && !text.failed) {
		for (char *line = strtok_r(text.at, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			lines[n++] = line;
		qsort(lines, n, sizeof(*lines), compare_keys);
		for (size_t i = 0; i < n; i++)
			text_add(&sorted, lines[i], "\n", "");
	}
	if (!lines || text.failed || sorted.failed) {
		free(sorted.at);
		sorted.at = NULL;
	}
	free(lines);
	free(text.at);
	return sorted.at;
}

/* Adds "system:name\n" for each event of the system: a directory with an id. */
static void list_system(struct text *names, int events, const char *system)
{
	DIR *dir = open_dir_at(events, system);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char id[sizeof(entry->d_name) + 4];

		snprintf(id, sizeof(id), "%s/id", entry->d_name);
		if (entry->d_name[0] == '.' || faccessat(dirfd(dir), id, F_OK, 0) < 0)
			continue;
		text_add(names, system, ":", entry->d_name);
		text_add(names, "\n", "", "");
	}
	if (dir)
		closedir(dir);
}

/* What a directory of tracefs holds, one a line: with list_system() events, else systems. */
static char *list_tracefs(const struct formats *f, bool systems)
{
	DIR *dir = open_dir_at(AT_FDCWD, f->events);
	struct text names = {0};
	struct dirent *entry;

	text_add(&names, "", "", "");
	while (dir && (entry = readdir(dir))) {
		if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
			continue;
		if (systems)
			text_add(&names, entry->d_name, "\n", "");
		else
			list_system(&names, dirfd(dir), entry->d_name);
	}
	if (dir)
		closedir(dir);
	return sort_lines(names);
}

char *formats_names(struct formats *f)
{
	struct text names = {0};

	if (f->events)
		return list_tracefs(f, false);
	text_add(&names, "", "", "");
	for (size_t i = 0; i < f->count; i++)
		text_add(&names, f->entries[i]->key, "\n", "");
	if (names.failed) {
		free(names.at);
		return NULL;
	}
	return names.at;
}

/* The systems of f, one a line, some of them more than once. */
static char *system_names(struct formats *f)
{
	char *names, *from, *to, *next;

	if (f->events)
		return list_tracefs(f, true);
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

static int unknown(struct formats *f, const char *system, const char *key, struct error *err)
{
	char *systems = system_names(f), *names = NULL;
	char near[KEY_MAX] = "";
	bool known = systems && has_line(systems, system);

	/* A system in tracefs may be known and have no event of its own, so ask for both. */
	names = known || !systems ? formats_names(f) : NULL;
	if (names)
		nearest_name(names, key, near, sizeof(near));
	else if (systems)
		nearest_name(systems, system, near, sizeof(near));
	free(systems);
	free(names);
	return error_set(err, -ENOENT, "no such event %s'%s'%s%s%s", known ? "" : "system ",
			 known ? key : system, near[0] ? "; did you mean '" : "", near,
			 near[0] ? "'?" : "");
}

/* Reads a format file of tracefs, whose size is not known before. */
static int read_format(const char *path, char **text, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t room = 0, len = 0;
	char *buf = NULL;
	ssize_t n = 0;

	if (fd < 0)
		return -errno;
	while (len < TEXT_MAX) {
		if (room - len < 2) {
			room = room ? 2 * room : 8192;
			char *more = realloc(buf, room);

			if (!more) {
				n = -1;
				errno = ENOMEM;
				break;
			}
			buf = more;
		}
		n = read(fd, buf + len, room - len - 1);
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	int ret = n < 0 ? -errno : 0;

	close(fd);
	if (ret) {
		free(buf);
		return ret;
	}
	buf[len] = '\0';
	*text = buf;
	*size = len;
	return 0;
}

/* Adds the event's entry from tracefs. */
static int load(struct formats *f, const char *system, const char *name, const char *key,
		struct error *err)
{
	char path[2 * KEY_MAX];
	char *text = NULL;
	size_t size = 0;
	int ret;

	snprintf(path, sizeof(path), "%s/%s/%s/format", f->events, system, name);
	ret = read_format(path, &text, &size);
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
	struct error why = {0};
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

	struct tracepoint *t = f->entries[at];

	if (!t->parsed) {
		ret = format_parse(&t->format, t->text, t->size, &why);
		if (ret)
			return error_set(err, ret, "event '%s': %s", key, why.text);
		t->parsed = true;
	}
	*out = t;
	return 0;
}

struct tracepoint *tracepoint_find(struct formats *f, const char *system, const char *name,
				   struct error *err)
{
	struct tracepoint *t = NULL;
	int ret = find(f, system, name, &t, err);

	if (ret)
		errno = -ret;
	return t;
}

uint32_t tracepoint_id(const struct tracepoint *t)
{
	return t->format.id;
}

uint32_t tracepoint_nr_fields(const struct tracepoint *t)
{
	return t->format.nr_fields;
}

const struct field *tracepoint_field(const struct tracepoint *t, uint32_t index)
{
	return index < t->format.nr_fields ? &t->format.fields[index] : NULL;
}

const char *tracepoint_print_fmt(const struct tracepoint *t)
{
	return t->format.print_fmt;
}

int tracepoint_print(struct tracepoint *t, const uint8_t *raw, uint32_t raw_size, char *buf,
		     uint32_t size)
{
	if (t->trusted && !t->printer && !t->no_printer) {
		char *system = strndup(t->key, strcspn(t->key, ":"));

		t->printer = system ? printer_new(system, t->text, t->size, t->symbols) : NULL;
		t->no_printer = !t->printer;
		free(system);
	}
	return t->printer ? (int)printer_print(t->printer, raw, raw_size, buf, size)
			  : (int)payload_print(t->format.fields, t->format.nr_fields, raw, raw_size,
					       buf, size);
}
