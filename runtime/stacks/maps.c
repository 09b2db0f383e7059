/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A fork, an exec, and a change of a space that others still need begin a new image of the process;
 * other changes are made in place.
 */
#include "stacks/maps.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/perf_event.h>

#include "decode/records.h"
#include "stacks/address_space.h"
#include "symbols/perfmap.h"
#include "stacks/processes.h"
#include "stacks/procmaps.h"
#include "symbols/symbols.h"

enum {
	MAX_ENDED = 16384,
	MAX_SPACES = 1 << 20,
	MAX_BYTES = 128 << 20,
	BUILD_ID_MAX = 20,
};

struct maps {
	bool live, data;
	struct symbols *symbols;
	struct perfmaps *perfmaps;
	struct processes *processes;
	struct address_space *modules; /* NULL: none is known */
	struct address_space **spaces; /* by id; 0 is unused */
	uint32_t nr_spaces, room;
	uint64_t bytes;	  /* of all address spaces */
	uint64_t full_at; /* their size after the last shrink() that found nothing more to free */
	uint64_t forgotten;
};

struct maps *maps_new(struct symbols *symbols, bool live)
{
	struct maps *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->live = live;
	m->symbols = symbols;
	m->processes = processes_new(MAX_ENDED);
	m->perfmaps = perfmaps_new(symbols_names(symbols));
	if (!m->processes || !m->perfmaps) {
		maps_free(m);
		return NULL;
	}
	return m;
}

void maps_forget_spaces(struct maps *m)
{
	for (uint32_t i = 1; i <= m->nr_spaces; i++) {
		m->spaces[i]->id = m->spaces[i]->before = 0;
		address_space_put(m->spaces[i]);
	}
	m->nr_spaces = 0;
}

void maps_want_data(struct maps *m)
{
	m->data = true;
}

void maps_free(struct maps *m)
{
	if (!m)
		return;
	maps_forget_spaces(m);
	if (m->modules)
		address_space_put(m->modules);
	processes_free(m->processes);
	perfmaps_free(m->perfmaps);
	free(m->spaces);
	free(m);
}

/* Begins an image of process pid with nothing mapped. */
static struct process *begin_empty(struct maps *m, int32_t pid, double time)
{
	struct address_space *space = address_space_new(pid, &m->bytes);

	return space ? processes_begin(m->processes, pid, space, time) : NULL;
}

/* Makes room down to three quarters of the bound: forgets processes that have exited, then mappings
 * of spaces that no process has any more, oldest first. Returns false if nothing can be freed. */
static bool shrink(struct maps *m, const struct process *keep)
{
	const uint64_t enough = MAX_BYTES / 4 * 3;

	if (m->bytes <= MAX_BYTES)
		return true;
	if (m->bytes == m->full_at)
		return false;
	while (m->bytes > enough && !keep->older && !processes_forget_ended(m->processes))
		;
	for (uint32_t i = 1; m->bytes > enough && i <= m->nr_spaces; i++) {
		struct address_space *space = m->spaces[i];

		if (space->refs > 1 || !space->room)
			continue;
		address_space_clear(space);
		m->forgotten++;
	}
	m->full_at = m->bytes;
	return m->bytes <= MAX_BYTES;
}

/* Returns the space of the process's current image. It is copied first if another process or a
 * stack would see the change, including stacks of events that were decoded but not looked at
 * yet. */
static struct address_space *writable(struct maps *m, struct process *p, enum space_change change,
				      double time)
{
	struct address_space *space = process_space(p), *copy;
	bool shared = space->refs > (space->id ? 2 : 1);

	if (!shared && (change == SPACE_ADDS || (!space->id && process_since(p) == time)))
		return space;
	copy = address_space_copy(space, p->pid);
	return copy && processes_begin(m->processes, p->pid, copy, time) ? copy : NULL;
}

static void add_mapping(struct maps *m, struct process *p, const struct mapping *mapping,
			double time)
{
	enum space_change change = address_space_check(process_space(p), mapping);
	struct address_space *space;

	if (change == SPACE_SAME)
		return;
	space = shrink(m, p) ? writable(m, p, change, time) : NULL;
	if (!space || !address_space_insert(space, mapping))
		m->forgotten++;
}

/* Returns whether the mapping is not a file that could have symbols. */
static bool is_anonymous(const char *path)
{
	return (path[0] != '/' && strcmp(path, "[vdso]") != 0) || path[1] == '/' ||
	       strncmp(path, "/SYSV", 5) == 0 || strncmp(path, "/dev/zero", 9) == 0 ||
	       strncmp(path, "/anon_hugepage", 14) == 0;
}

/* Returns the number of the name of data without a file, such as "[heap]". */
static uint32_t name_data(struct maps *m, const char *path)
{
	struct symbols_file file = {.path = path[0] == '[' ? path : "[anon]", .is_data = true};

	return symbols_add(m->symbols, &file);
}

static void map_file(struct maps *m, struct process *p, uint64_t start, uint64_t end,
		     uint64_t offset, const struct symbols_file *file, double time)
{
	struct mapping mapping = {start, end, offset, 0};
	bool anonymous = is_anonymous(file->path);

	if (end <= start)
		return;
	if (!anonymous) {
		mapping.file = symbols_add(m->symbols, file);
	} else if (file->is_data) {
		mapping.file = name_data(m, file->path);
		mapping.offset = start; /* when it grows, it is the same */
	}
	add_mapping(m, p, &mapping, time);
	if (!m->live)
		return;
	if (mapping.file)
		symbols_open(m->symbols, mapping.file, p->pid, start, end);
	if (file->is_data)
		return;
	if (anonymous || strncmp(file->path, "/memfd:", 7) == 0)
		perfmaps_watch(m->perfmaps, p->pid);
}

struct seeding {
	struct maps *maps;
	struct process *process;
};

static void seed_line(const struct procmaps_line *line, void *arg)
{
	struct symbols_file file = {.path = line->path,
				    .maj = line->maj,
				    .min = line->min,
				    .inode = line->inode,
				    .is_data = !line->is_executable};
	struct seeding *seeding = arg;

	map_file(seeding->maps, seeding->process, line->start, line->end, line->offset, &file,
		 -INFINITY);
}

/* Adds what process pid has mapped now, as if it always had. Does nothing if its maps are known. */
static void seed(struct maps *m, int32_t pid)
{
	struct seeding seeding = {.maps = m};

	if (processes_find(m->processes, pid))
		return;
	/* A process that has exited counts as known, so that it is not looked up again. */
	seeding.process = begin_empty(m, pid, -INFINITY);
	if (seeding.process)
		procmaps_read(pid, m->data, seed_line, &seeding);
}

int maps_seed_all(struct maps *m)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int count = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		seed(m, atoi(entry->d_name));
		count++;
	}
	closedir(dir);
	return count;
}

static struct process *look_up(struct maps *m, int32_t pid)
{
	struct process *p = processes_find(m->processes, pid);

	if (p || !m->live)
		return p;
	seed(m, pid);
	return processes_find(m->processes, pid);
}

static void record_fork(struct maps *m, uint16_t misc, int32_t pid, int32_t parent_pid, double time)
{
	const struct process *parent;

	if (pid == parent_pid)
		return;
	parent = look_up(m, parent_pid);
	/* The recorder listed a running process; its maps follow. */
	if (misc & PERF_RECORD_MISC_FORK_EXEC)
		begin_empty(m, pid, time);
	else if (parent)
		processes_begin(m->processes, pid, address_space_get(process_space(parent)), time);
}

/* Both records begin alike. mmap2_rest is what MMAP2 has between offset and path. */
struct mmap_start {
	uint32_t pid, tid;
	uint64_t start, len, offset;
};

struct mmap2_rest {
	union {
		struct {
			uint32_t maj, min;
			uint64_t inode, inode_generation;
		};
		struct {
			uint8_t build_id_size, reserved[3];
			uint8_t build_id[BUILD_ID_MAX];
		};
	};
	uint32_t prot, flags; /* Linux 3.16; before that the path is here */
};

/* perf lists the kernel's modules: "[ath9k]" or "/lib/modules/6.1.0/kernel/net/ath9k.ko.xz". */
static void record_module(struct maps *m, const struct mmap_start *start, const char *path)
{
	struct mapping mapping = {start->start, start->start + start->len, 0, 0};
	const char *base = strrchr(path, '/'), *end = base ? strstr(base, ".ko") : NULL;
	char name[64];

	if (end)
		snprintf(name, sizeof(name), "[%.*s]", (int)(end - base - 1), base + 1);
	else if (path[0] == '[' && !strstr(path, "kernel"))
		snprintf(name, sizeof(name), "%s", path);
	else
		return;
	for (char *at = name; (at = strchr(at, '-'));)
		*at = '_';
	if (!m->modules)
		m->modules = address_space_new((int32_t)start->pid, &m->bytes);
	mapping.file = name_data(m, name);
	if (!m->modules || mapping.end <= mapping.start || m->bytes > MAX_BYTES ||
	    !address_space_insert(m->modules, &mapping))
		m->forgotten++;
}

static void record_mmap(struct maps *m, uint32_t type, uint16_t misc, const uint8_t *payload,
			uint32_t size, double time)
{
	uint32_t path_at = records_mmap_path(type, payload, size);
	bool is_mmap2 = type == PERF_RECORD_MMAP2;
	uint16_t mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;
	struct symbols_file file = {0};
	struct mmap2_rest rest = {0};
	struct mmap_start start;
	struct process *p;

	if (size <= path_at)
		return;
	file.is_data = misc & PERF_RECORD_MISC_MMAP_DATA;
	memcpy(&start, payload, sizeof(start));
	if (is_mmap2)
		memcpy(&rest, payload + sizeof(start), sizeof(rest));
	file.path = (const char *)payload + path_at;
	if (!memchr(file.path, '\0', size - path_at))
		return;
	if (mode == PERF_RECORD_MISC_KERNEL)
		record_module(m, &start, file.path);
	if (mode != PERF_RECORD_MISC_USER || (file.is_data && !m->data))
		return;
	if (is_mmap2 && (misc & PERF_RECORD_MISC_MMAP_BUILD_ID)) {
		file.build_id = rest.build_id;
		file.build_id_size = rest.build_id_size <= BUILD_ID_MAX ? rest.build_id_size : 0;
	} else {
		file.maj = rest.maj;
		file.min = rest.min;
		file.inode = rest.inode;
	}
	p = look_up(m, (int32_t)start.pid);
	if (!p)
		p = begin_empty(m, (int32_t)start.pid, -INFINITY);
	if (!p || start.len > UINT64_MAX - start.start)
		return;
	map_file(m, p, start.start, start.start + start.len, start.offset, &file, time);
}

void maps_record(struct maps *m, uint32_t type, uint16_t misc, const void *payload, uint32_t size,
		 double time)
{
	uint32_t ids[4] = {0}; /* FORK, EXIT: pid, parent's pid, tid, parent's tid; COMM: pid */

	memcpy(ids, payload, size < sizeof(ids) ? size : sizeof(ids));
	switch (type) {
	case PERF_RECORD_MMAP:
	case PERF_RECORD_MMAP2:
		record_mmap(m, type, misc, payload, size, time);
		break;
	case PERF_RECORD_COMM:
		if (misc & PERF_RECORD_MISC_COMM_EXEC)
			begin_empty(m, (int32_t)ids[0], time);
		break;
	case PERF_RECORD_FORK:
		if (size >= sizeof(ids))
			record_fork(m, misc, (int32_t)ids[0], (int32_t)ids[1], time);
		break;
	case PERF_RECORD_EXIT:
		/* Other threads may outlive the first one; what has exited is kept for long
		 * anyway. */
		if (size >= sizeof(ids) && ids[0] == ids[2])
			processes_end(m->processes, (int32_t)ids[0]);
		break;
	}
}

/* Gives the space an id, for which it is kept. */
static uint32_t number(struct maps *m, struct address_space *space)
{
	if (m->nr_spaces + 1 >= m->room) {
		uint32_t room = m->room ? 2 * m->room : 256;
		struct address_space **spaces =
			room <= MAX_SPACES ? reallocarray(m->spaces, room, sizeof(*spaces)) : NULL;

		if (!spaces) {
			m->forgotten++;
			return 0;
		}
		m->spaces = spaces;
		m->room = room;
	}
	space->id = ++m->nr_spaces;
	m->spaces[space->id] = address_space_get(space);
	return space->id;
}

uint32_t maps_space(struct maps *m, int32_t pid, double time)
{
	const struct process *p = look_up(m, pid);
	struct address_space *before, *space = p ? process_space_at(p, time, &before) : NULL;

	if (!space)
		return 0;
	if (!space->id && number(m, space) && before)
		space->before = before->id ? before->id : number(m, before);
	return space->id;
}

bool maps_find(const struct maps *m, uint32_t space, uint64_t addr, struct place *out)
{
	const struct mapping *mapping, *before;

	*out = (struct place){0};
	if (!space || space > m->nr_spaces)
		return false;
	out->pid = m->spaces[space]->pid;
	mapping = address_space_find(m->spaces[space], addr);
	if (!mapping)
		return false;
	out->file = mapping->file;
	out->offset = addr - mapping->start + mapping->offset;
	if (!symbols_is_data(m->symbols, mapping->file) || mapping == m->spaces[space]->mappings)
		return true;
	before = mapping - 1;
	if (before->end == mapping->start) {
		out->file_before = before->file;
		out->offset_before = addr - before->start + before->offset;
	}
	return true;
}

const char *maps_find_module(const struct maps *m, uint64_t addr)
{
	const struct mapping *found = m->modules ? address_space_find(m->modules, addr) : NULL;

	return found ? symbols_path(m->symbols, found->file) : NULL;
}

uint32_t maps_space_before(const struct maps *m, uint32_t space)
{
	return space && space <= m->nr_spaces ? m->spaces[space]->before : 0;
}

bool maps_find_jit(struct maps *m, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path)
{
	return perfmaps_find(m->perfmaps, pid, addr, out, path);
}

void maps_read_stats(const struct maps *m, struct maps_stats *out)
{
	*out = (struct maps_stats){
		.bytes = m->bytes + perfmaps_bytes(m->perfmaps),
		.processes = processes_count(m->processes),
		.forgotten = m->forgotten,
	};
}
