/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The text of a map is kept as it is read; entries point into it. They are sorted by address. Older
 * entries may overlap newer ones and reach far beyond their neighbours, so each entry has the
 * greatest end of those up to it.
 */
#include "symbols/perfmap.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "symbols/string_pool.h"
#include "symbols/symbols.h"
#include "symbols/process_file.h"

enum {
	MAX_MAPS = 64, /* maps with open descriptors */
	MAX_TEXT = 64 << 20,
	MAX_BYTES = 256 << 20, /* of all maps */
	MAX_STEPS = 4096,      /* entries that are examined for one address */
	MAX_LINE = 16 << 10,
};

struct entry {
	uint64_t start, end;
	uint64_t reach; /* the greatest end up to here */
	uint32_t name;	/* offset in the text; greater is newer */
};

struct map {
	int32_t pid, inner_pid; /* in our namespace and in its own */
	int root;		/* its root directory; -1 */
	int fd;			/* -1: not opened yet */
	time_t tried;		/* when opening was last tried, s */
	uint64_t used;		/* number of the last lookup that used it */
	const char *path;
	char *text;
	uint32_t size, parsed; /* bytes of text; bytes whose lines are in entries */
	uint32_t nr_entries, room;
	struct entry *entries;
};

struct perfmaps {
	struct string_pool *names;
	uint64_t questions, bytes;
	uint32_t count;
	struct map *maps[MAX_MAPS];
};

struct perfmaps *perfmaps_new(struct string_pool *names)
{
	struct perfmaps *p = calloc(1, sizeof(*p));

	if (p)
		p->names = names;
	return p;
}

static uint64_t map_bytes(const struct map *m)
{
	return m->size + (uint64_t)m->room * sizeof(*m->entries);
}

static void forget_text(struct perfmaps *p, struct map *m)
{
	p->bytes -= map_bytes(m);
	free(m->text);
	free(m->entries);
	m->text = NULL;
	m->entries = NULL;
	m->size = m->parsed = m->nr_entries = m->room = 0;
}

static void free_map(struct perfmaps *p, struct map *m)
{
	forget_text(p, m);
	if (m->fd >= 0)
		close(m->fd);
	if (m->root >= 0)
		close(m->root);
	free(m);
}

void perfmaps_free(struct perfmaps *p)
{
	if (!p)
		return;
	for (uint32_t i = 0; i < p->count; i++)
		free_map(p, p->maps[i]);
	free(p);
}

uint64_t perfmaps_bytes(const struct perfmaps *p)
{
	return p->bytes;
}

/* Returns the pid of the process in its own namespace. */
static int32_t inner_pid(int32_t pid)
{
	char path[32], line[256];
	int32_t inner = pid;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "NSpid:", 6) == 0) {
			const char *last = strrchr(line, '\t');

			inner = last ? atoi(last) : pid;
			break;
		}
	if (file)
		fclose(file);
	return inner > 0 ? inner : pid;
}

static struct map *new_map(struct perfmaps *p, int32_t pid)
{
	struct map *m = calloc(1, sizeof(*m));
	char path[64];

	if (!m)
		return NULL;
	m->pid = pid;
	m->fd = -1;
	m->inner_pid = inner_pid(pid);
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	m->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", m->inner_pid);
	m->path = string_pool_add(p->names, path, strlen(path));
	return m;
}

/* Returns the map of pid. A new one replaces the least recently used. */
static struct map *get_map(struct perfmaps *p, int32_t pid)
{
	uint32_t oldest = 0;
	struct map *m;

	for (uint32_t i = 0; i < p->count; i++) {
		if (p->maps[i]->pid == pid)
			return p->maps[i];
		if (p->maps[i]->used < p->maps[oldest]->used)
			oldest = i;
	}
	m = new_map(p, pid);
	if (!m)
		return NULL;
	if (p->count < MAX_MAPS) {
		p->maps[p->count++] = m;
	} else {
		free_map(p, p->maps[oldest]);
		p->maps[oldest] = m;
	}
	m->used = ++p->questions;
	return m;
}

void perfmaps_watch(struct perfmaps *p, int32_t pid)
{
	get_map(p, pid);
}

/* A missing map may appear later: opening it is tried once per second. */
static bool open_map(struct map *m)
{
	struct timespec now;
	char root[32];

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (m->fd >= 0 || m->tried == now.tv_sec || !m->path)
		return m->fd >= 0;
	m->tried = now.tv_sec;
	snprintf(root, sizeof(root), "/proc/self/fd/%d", m->root);
	m->fd = m->root >= 0 ? process_file_open(root, m->path) : -1;
	if (m->fd < 0)
		m->fd = process_file_open(NULL, m->path);
	if (m->fd >= 0 && m->root >= 0) {
		close(m->root);
		m->root = -1;
	}
	return m->fd >= 0;
}

static int compare(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->name < b->name ? -1 : 1;
}

static bool add_entry(struct perfmaps *p, struct map *m, const struct entry *entry)
{
	if (m->nr_entries == m->room) {
		uint32_t room = m->room ? 2 * m->room : 256;
		struct entry *entries = reallocarray(m->entries, room, sizeof(*entries));

		if (!entries)
			return false;
		p->bytes += (uint64_t)(room - m->room) * sizeof(*entries);
		m->entries = entries;
		m->room = room;
	}
	m->entries[m->nr_entries++] = *entry;
	return true;
}

/* Adds the new lines of the text; a line that is still being written waits. */
static void parse(struct perfmaps *p, struct map *m)
{
	uint64_t reach = 0;
	char *end;

	while ((end = memchr(m->text + m->parsed, '\n', m->size - m->parsed))) {
		char *line = m->text + m->parsed, *rest;
		struct entry entry = {.start = strtoull(line, &rest, 16)};
		uint64_t size = *rest == ' ' ? strtoull(rest, &rest, 16) : 0;

		*end = '\0';
		m->parsed = (uint32_t)(end + 1 - m->text);
		if (rest >= end || *rest != ' ' || !size || size > UINT64_MAX - entry.start)
			continue;
		entry.end = entry.start + size;
		entry.name = (uint32_t)(rest + 1 - m->text);
		if (!add_entry(p, m, &entry))
			break;
	}
	if (m->nr_entries)
		qsort(m->entries, m->nr_entries, sizeof(*m->entries), compare);
	for (uint32_t i = 0; i < m->nr_entries; i++) {
		reach = m->entries[i].end > reach ? m->entries[i].end : reach;
		m->entries[i].reach = reach;
	}
}

/* Reads what was added to the file; a file that shrank was started over. */
static void refresh(struct perfmaps *p, struct map *m)
{
	struct stat st;
	uint32_t wanted;
	char *text;
	ssize_t n;

	if (fstat(m->fd, &st))
		return;
	if (st.st_size < m->size)
		forget_text(p, m);
	wanted = st.st_size < MAX_TEXT ? (uint32_t)st.st_size : MAX_TEXT;
	if (wanted <= m->size || p->bytes + wanted - m->size > MAX_BYTES)
		return;
	text = realloc(m->text, wanted + 1);
	if (!text)
		return;
	m->text = text;
	n = pread(m->fd, text + m->size, wanted - m->size, m->size);
	if (n <= 0)
		return;
	m->size += (uint32_t)n;
	p->bytes += (uint64_t)n;
	text[m->size] = '\0'; /* for strtoull() */
	parse(p, m);
}

static const struct entry *find_entry(const struct map *m, uint64_t addr)
{
	const struct entry *best = NULL;
	uint32_t low = 0, high = m->nr_entries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->entries[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	for (int step = 0; low-- > 0 && m->entries[low].reach > addr && step < MAX_STEPS; step++)
		if (m->entries[low].end > addr && (!best || m->entries[low].name > best->name))
			best = &m->entries[low];
	return best;
}

bool perfmaps_find(struct perfmaps *p, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path)
{
	struct map *m = get_map(p, pid);
	const struct entry *e;
	const char *name;

	*out = (struct symbol){0};
	if (!m || !open_map(m))
		return false;
	m->used = ++p->questions;
	refresh(p, m);
	e = find_entry(m, addr);
	if (!e)
		return false;
	name = m->text + e->name;
	out->name = string_pool_add(p->names, name, strnlen(name, MAX_LINE));
	out->offset = addr - e->start;
	*path = m->path;
	return out->name;
}
