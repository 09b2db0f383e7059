/* SPDX-License-Identifier: GPL-2.0-only */
#include "stacks/frame_tables.h"

#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "stacks/frame_rows.h"
#include "stacks/procmaps.h"
#include "symbols/debugfile.h"
#include "symbols/process_file.h"

enum { MAX_SPANS = 4096, MAX_SEGMENTS = 16, FIRST = 64 };

/* A part of an array. */
struct extent {
	uint32_t first, count;
};

/* The parts of an array that are free, sorted, and those that will be. */
struct room {
	struct extent *free, *retired;
	uint32_t nr_free, room_free, nr_retired, room_retired;
	uint32_t nr_settled; /* of the retired: those of before the last room_reclaim() */
	uint32_t used;
};

struct segment {
	uint64_t offset, size, addr;
};

/* A file. The same file of another file system has the same build id. */
struct table {
	uint8_t id[BUILD_ID_MAX];
	uint32_t id_size;
	uint32_t maj, min; /* as it was first seen in a process */
	uint64_t inode;
	struct timespec changed; /* another file may get the inode, or this one other contents */
	struct extent rows;
	uint32_t others, refs;
	uint32_t nr_segments;
	struct segment segments[MAX_SEGMENTS]; /* that hold code */
};

struct process {
	int32_t pid;
	struct extent spans;
	uint32_t nr_tables;
	struct table **tables; /* of the spans */
};

struct frame_tables {
	struct frame_row *rows;
	struct frame_span *spans;
	struct room row_room, span_room;
	struct table **tables;
	struct process *processes;
	uint32_t nr_tables, room_tables, nr_processes, room_processes;
	struct frame_tables_stats stats;
};

/* Room -------------------------------------------------------------------------------------------
 */

/* Makes room for one more element. Returns false without memory. */
static bool grow(void *array, uint32_t count, uint32_t *room, size_t size)
{
	uint32_t more = *room ? 2 * *room : FIRST;
	void *new;

	if (count < *room)
		return true;
	new = realloc(*(void **)array, more * size);
	if (!new)
		return false;
	*(void **)array = new;
	*room = more;
	return true;
}

static bool room_init(struct room *r, uint32_t count)
{
	if (!grow(&r->free, 0, &r->room_free, sizeof(*r->free)))
		return false;
	r->free[r->nr_free++] = (struct extent){0, count};
	return true;
}

static bool room_take(struct room *r, uint32_t count, struct extent *out)
{
	for (uint32_t i = 0; i < r->nr_free; i++) {
		struct extent *e = &r->free[i];

		if (e->count < count)
			continue;
		*out = (struct extent){e->first, count};
		e->first += count;
		e->count -= count;
		if (!e->count)
			memmove(e, e + 1, (--r->nr_free - i) * sizeof(*e));
		r->used += count;
		return true;
	}
	return false;
}

static void room_retire(struct room *r, struct extent e)
{
	if (e.count && grow(&r->retired, r->nr_retired, &r->room_retired, sizeof(e)))
		r->retired[r->nr_retired++] = e;
}

static void room_give(struct room *r, struct extent e)
{
	uint32_t i = 0;

	r->used -= e.count;
	while (i < r->nr_free && r->free[i].first < e.first)
		i++;
	if (i && r->free[i - 1].first + r->free[i - 1].count == e.first) {
		r->free[--i].count += e.count;
	} else if (grow(&r->free, r->nr_free, &r->room_free, sizeof(e))) {
		memmove(&r->free[i + 1], &r->free[i], (r->nr_free++ - i) * sizeof(e));
		r->free[i] = e;
	} else {
		return;
	}
	if (i + 1 < r->nr_free && r->free[i].first + r->free[i].count == r->free[i + 1].first) {
		r->free[i].count += r->free[i + 1].count;
		memmove(&r->free[i + 1], &r->free[i + 2], (--r->nr_free - i - 1) * sizeof(e));
	}
}

static void room_reclaim(struct room *r)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < r->nr_settled; i++)
		room_give(r, r->retired[i]);
	for (uint32_t i = r->nr_settled; i < r->nr_retired; i++)
		r->retired[n++] = r->retired[i];
	r->nr_settled = r->nr_retired = n;
}

static void room_fini(struct room *r)
{
	free(r->free);
	free(r->retired);
}

/* Files ------------------------------------------------------------------------------------------
 */

static bool read_segments(struct table *table, Elf *elf)
{
	size_t count;
	GElf_Phdr ph;
	GElf_Ehdr eh;

	if (!gelf_getehdr(elf, &eh) || eh.e_machine != EM_X86_64 ||
	    eh.e_ident[EI_CLASS] != ELFCLASS64 || elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && table->nr_segments < MAX_SEGMENTS; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			table->segments[table->nr_segments++] =
				(struct segment){ph.p_offset, ph.p_filesz, ph.p_vaddr};
	return true;
}

static void read_rows(struct frame_tables *t, struct table *table, Elf *elf)
{
	struct frame_rows rows;

	if (frame_rows_read(elf, &rows)) {
		t->stats.unreadable++;
		return;
	}
	if (room_take(&t->row_room, rows.count, &table->rows)) {
		memcpy(t->rows + table->rows.first, rows.rows, rows.count * sizeof(*rows.rows));
		table->others = rows.others;
		t->stats.others += rows.others;
	} else {
		t->stats.no_room++;
	}
	free(rows.rows);
}

static struct table *find_file(const struct frame_tables *t, const struct table *like)
{
	for (uint32_t i = 0; i < t->nr_tables; i++) {
		struct table *one = t->tables[i];

		if (one->inode == like->inode && one->maj == like->maj && one->min == like->min &&
		    one->changed.tv_sec == like->changed.tv_sec &&
		    one->changed.tv_nsec == like->changed.tv_nsec)
			return one;
	}
	return NULL;
}

static struct table *find_copy(const struct frame_tables *t, const struct table *like)
{
	for (uint32_t i = 0; like->id_size && i < t->nr_tables; i++) {
		struct table *one = t->tables[i];

		if (one->id_size == like->id_size && !memcmp(one->id, like->id, like->id_size))
			return one;
	}
	return NULL;
}

/* Returns the table of a file, without taking a reference; NULL without memory. */
static struct table *get_table(struct frame_tables *t, struct table *like, Elf *elf)
{
	struct table *table = find_copy(t, like);

	if (table)
		return table;
	if (!grow(&t->tables, t->nr_tables, &t->room_tables, sizeof(table)))
		return NULL;
	table = malloc(sizeof(*table));
	if (!table)
		return NULL;
	*table = *like;
	if (read_segments(table, elf))
		read_rows(t, table, elf);
	t->tables[t->nr_tables++] = table;
	return table;
}

static void put_table(struct frame_tables *t, struct table *table)
{
	if (--table->refs)
		return;
	room_retire(&t->row_room, table->rows);
	t->stats.others -= table->others;
	for (uint32_t i = 0; i < t->nr_tables; i++)
		if (t->tables[i] == table) {
			t->tables[i] = t->tables[--t->nr_tables];
			break;
		}
	free(table);
}

/* Opens what is mapped. Returns a descriptor, -1 for the vDSO, or another negative number. */
static int open_mapped(int32_t pid, const struct procmaps_line *line)
{
	int fd;

	if (line->path[0] != '/')
		return -1;
	fd = process_file_open_mapped(pid, line->start, line->end, line->inode);
	if (fd < 0)
		fd = process_file_open_same(pid, line->path, line->inode);
	return fd < 0 ? -2 : fd;
}

/* Returns the table of what is opened as fd, without taking a reference; NULL if there is none. */
static struct table *read_table(struct frame_tables *t, int fd, const struct procmaps_line *line,
				struct table *like)
{
	char *vdso = (char *)getauxval(AT_SYSINFO_EHDR); // NOLINT: an address is what it returns
	struct table *table = NULL;
	Elf *elf = NULL;

	elf_version(EV_CURRENT);
	if (fd >= 0)
		elf = elf_begin(fd, ELF_C_READ, NULL);
	else if (fd == -1 && vdso)
		elf = elf_memory(vdso, line->end - line->start);
	if (!elf) {
		t->stats.unreadable++;
		return NULL;
	}
	like->id_size = debugfile_build_id(elf, like->id);
	table = get_table(t, like, elf);
	elf_end(elf);
	return table;
}

static struct table *open_table(struct frame_tables *t, int32_t pid,
				const struct procmaps_line *line)
{
	struct table like = {.inode = line->inode, .maj = line->maj, .min = line->min}, *table;
	int fd = open_mapped(pid, line);
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st))
		like.changed = st.st_ctim;
	table = find_file(t, &like);
	if (!table)
		table = read_table(t, fd, line, &like);
	if (fd >= 0)
		close(fd);
	return table;
}

/* Processes --------------------------------------------------------------------------------------
 */

struct reading {
	struct frame_tables *t;
	int32_t pid;
	uint32_t count;
	bool is_64;
	struct frame_span *spans;
	struct table **tables;
};

static void read_mapping(const struct procmaps_line *line, void *arg)
{
	struct reading *r = arg;
	struct frame_span *span = &r->spans[r->count];
	struct table *table;

	bool is_64 = line->start > UINT32_MAX;

	r->is_64 |= is_64;
	/* The vDSO of a program of 32 bits is another one than here. */
	if (r->count == MAX_SPANS ||
	    (line->path[0] != '/' && (strcmp(line->path, "[vdso]") || !is_64)))
		return;
	table = open_table(r->t, r->pid, line);
	if (!table)
		return;
	*span = (struct frame_span){.start = line->start, .end = line->end};
	for (uint32_t i = 0; i < table->nr_segments; i++) {
		const struct segment *s = &table->segments[i];

		if (line->offset + (line->end - line->start) <= s->offset ||
		    line->offset >= s->offset + s->size)
			continue;
		span->bias = line->start - line->offset + s->offset - s->addr;
		span->first = table->rows.first;
		span->count = table->rows.count;
		break;
	}
	table->refs++;
	r->tables[r->count++] = table;
}

static struct process *find_process(const struct frame_tables *t, int32_t pid)
{
	for (uint32_t i = 0; i < t->nr_processes; i++)
		if (t->processes[i].pid == pid)
			return &t->processes[i];
	return NULL;
}

static void clear(struct frame_tables *t, struct process *p)
{
	for (uint32_t i = 0; i < p->nr_tables; i++)
		put_table(t, p->tables[i]);
	free(p->tables);
	p->tables = NULL;
	p->nr_tables = 0;
	room_retire(&t->span_room, p->spans);
	p->spans = (struct extent){0};
}

/* Returns a process without spans; NULL without memory. */
static struct process *make_process(struct frame_tables *t, int32_t pid)
{
	struct process *p = find_process(t, pid);

	if (p)
		return p;
	if (!grow(&t->processes, t->nr_processes, &t->room_processes, sizeof(*p)))
		return NULL;
	p = &t->processes[t->nr_processes++];
	*p = (struct process){.pid = pid};
	return p;
}

static uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void put_all(struct reading *r)
{
	while (r->count)
		put_table(r->t, r->tables[--r->count]);
	free(r->tables);
}

/* Takes over the tables of what was read. */
static int set_spans(struct frame_tables *t, struct reading *r, struct frame_space *out)
{
	struct process *p;
	struct extent e;

	if (!r->is_64 || !r->count) {
		put_all(r);
		return -ESRCH;
	}
	p = make_process(t, r->pid);
	if (!p || !room_take(&t->span_room, r->count, &e)) {
		put_all(r);
		t->stats.no_spans += p != NULL;
		return p ? -ENOSPC : -ENOMEM;
	}
	memcpy(t->spans + e.first, r->spans, r->count * sizeof(*r->spans));
	clear(t, p);
	p->spans = e;
	p->tables = r->tables;
	p->nr_tables = r->count;
	*out = (struct frame_space){e.first, e.count};
	return 0;
}

int frame_tables_update(struct frame_tables *t, int32_t pid, struct frame_space *out)
{
	struct reading r = {.t = t, .pid = pid};
	uint64_t start = now();
	int err;

	r.spans = calloc(MAX_SPANS, sizeof(*r.spans));
	r.tables = calloc(MAX_SPANS, sizeof(struct table *));
	err = r.spans && r.tables ? procmaps_read(pid, false, read_mapping, &r) : -ENOMEM;
	if (err)
		put_all(&r);
	else
		err = set_spans(t, &r, out);
	free(r.spans);
	t->stats.build_ns += now() - start;
	return err;
}

void frame_tables_remove(struct frame_tables *t, int32_t pid)
{
	struct process *p = find_process(t, pid);

	if (!p)
		return;
	clear(t, p);
	*p = t->processes[--t->nr_processes];
}

void frame_tables_reclaim(struct frame_tables *t)
{
	room_reclaim(&t->row_room);
	room_reclaim(&t->span_room);
}

void frame_tables_read_stats(const struct frame_tables *t, struct frame_tables_stats *out)
{
	*out = t->stats;
	out->files = t->nr_tables;
	out->processes = t->nr_processes;
	out->rows = t->row_room.used;
	out->spans = t->span_room.used;
}

struct frame_tables *frame_tables_new(struct frame_row *rows, uint32_t nr_rows,
				      struct frame_span *spans, uint32_t nr_spans)
{
	struct frame_tables *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->rows = rows;
	t->spans = spans;
	if (room_init(&t->row_room, nr_rows) && room_init(&t->span_room, nr_spans))
		return t;
	frame_tables_free(t);
	return NULL;
}

void frame_tables_free(struct frame_tables *t)
{
	if (!t)
		return;
	while (t->nr_processes)
		frame_tables_remove(t, t->processes[0].pid);
	free(t->tables);
	free(t->processes);
	room_fini(&t->row_room);
	room_fini(&t->span_room);
	free(t);
}
