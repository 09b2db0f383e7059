/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/task_scan.h"
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <linux/perf_event.h>
#include "symbols/debugfile.h"
#include "symbols/process_file.h"
#include "stacks/procmaps.h"
#include "wire/bytes.h"

enum {
	STEP = 16, /* processes; takes about a millisecond */
	COMM_SIZE = 16,
	KNOWN = 1024 /* files, a power of two: more than most machines execute */
};

/* The build id of a file, as in an MMAP2 record. */
struct id_words {
	uint8_t size, reserved[3];
	uint8_t id[BUILD_ID_MAX];
};

/* A file that was seen before. */
struct known_file {
	uint64_t inode; /* 0: none */
	uint32_t maj, min;
	struct id_words id;
};

struct task_scan {
	DIR *proc;
	uint32_t words;
	bool maps;
	/* Of the process that is being described. */
	struct bytes *out;
	int32_t pid;
	struct known_file files[KNOWN];
};

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	char comm[COMM_SIZE];
};

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t addr, len, pgoff;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct id_words id;
	};
	uint32_t prot, flags;
};

struct task_scan *task_scan_new(uint32_t words, bool maps)
{
	struct task_scan *scan = calloc(1, sizeof(*scan));

	if (!scan)
		return NULL;
	elf_version(EV_CURRENT);
	scan->words = words;
	scan->maps = maps;
	scan->proc = opendir("/proc");
	if (scan->proc)
		return scan;
	free(scan);
	return NULL;
}

void task_scan_free(struct task_scan *scan)
{
	if (!scan)
		return;
	closedir(scan->proc);
	free(scan);
}

static void add_comm(struct task_scan *scan, int32_t tid)
{
	struct comm_record rec = {
		.header = {.type = PERF_RECORD_COMM, .size = sizeof(rec) + scan->words * 8},
		.pid = scan->pid,
		.tid = tid};
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", scan->pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	n = read(fd, rec.comm, sizeof(rec.comm) - 1);
	close(fd);
	if (n <= 0)
		return;
	rec.comm[strcspn(rec.comm, "\n")] = 0;
	bytes_add(scan->out, &rec, sizeof(rec));
	bytes_extend(scan->out, scan->words * 8);
}

static void read_id(const struct task_scan *scan, const struct procmaps_line *line,
		    struct id_words *id)
{
	int fd = process_file_open_mapped(scan->pid, line->start, line->end, line->inode);
	Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;

	id->size = elf && elf_kind(elf) == ELF_K_ELF ? debugfile_build_id(elf, id->id) : 0;
	elf_end(elf);
	if (fd >= 0)
		close(fd);
}

/* Returns the build id of a mapped file, which many processes share. Its size is 0 if there is
 * none. */
static const struct id_words *find_id(struct task_scan *scan, const struct procmaps_line *line)
{
	struct known_file *f = &scan->files[line->inode % KNOWN];

	if (f->inode != line->inode || f->maj != line->maj || f->min != line->min) {
		*f = (struct known_file){line->inode, line->maj, line->min, {0}};
		if (line->inode)
			read_id(scan, line, &f->id);
	}
	return &f->id;
}

static void add_map(const struct procmaps_line *line, void *arg)
{
	struct task_scan *scan = arg;
	struct mmap2_record rec = {
		.header = {.type = PERF_RECORD_MMAP2, .misc = PERF_RECORD_MISC_USER},
		.pid = scan->pid,
		.tid = scan->pid,
		.addr = line->start,
		.len = line->end - line->start,
		.pgoff = line->offset,
		.maj = line->maj,
		.min = line->min,
		.ino = line->inode,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
	};
	const char *path = line->path[0] ? line->path : "//anon";
	const struct id_words *id = find_id(scan, line);
	size_t size = (strlen(path) + 8) / 8 * 8; /* with its 0 */

	if (size > PATH_MAX)
		return;
	if (id->size) {
		rec.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		rec.id = *id;
	}
	rec.header.size = sizeof(rec) + size + scan->words * 8;
	bytes_add(scan->out, &rec, sizeof(rec));
	bytes_add(scan->out, path, strlen(path));
	bytes_extend(scan->out, size - strlen(path) + scan->words * 8);
}

static void add_process(struct task_scan *scan, int32_t pid)
{
	struct dirent *entry;
	char path[32];
	DIR *tasks;

	scan->pid = pid;
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = opendir(path);
	if (!tasks)
		return;
	while ((entry = readdir(tasks)))
		if (isdigit((unsigned char)entry->d_name[0]))
			add_comm(scan, atoi(entry->d_name));
	closedir(tasks);
	if (scan->maps)
		procmaps_read(pid, false, add_map, scan);
}

bool task_scan_next(struct task_scan *scan, struct bytes *out)
{
	struct dirent *entry;

	scan->out = out;
	for (int n = 0; n < STEP;) {
		entry = readdir(scan->proc);
		if (!entry)
			return false;
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		add_process(scan, atoi(entry->d_name));
		n++;
	}
	return true;
}
