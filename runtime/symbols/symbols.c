/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Files are numbered from 1 and never forgotten, because address spaces refer to them. Their
 * contents are: the list `used` has the files with a descriptor, most recently used first, and only
 * those have a table. A file with the build id of a file that has a full table uses that table: the
 * other file is its twin.
 */
#include "symbols/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "symbols/symbol_cache.h"
#include "symbols/buildids.h"
#include "symbols/debugfile.h"
#include "symbols/string_pool.h"
#include "symbols/symtab.h"
#include "symbols/process_file.h"

enum {
	MAX_FILES = 1 << 18,
	MAX_OPEN = 256,
	MAX_TABLE_BYTES = 512 << 20,
	MAX_NAME_BYTES = 256 << 20,
	FIRST_SLOTS = 256,
	READABLE_MAX = 64 << 10, /* a demangled name */
	VDSO_MAX = 64 << 10,
};

struct file {
	uint32_t id, twin;
	const char *path;
	uint32_t maj, min;
	uint64_t inode;
	uint8_t build_id[BUILD_ID_MAX];
	uint32_t build_id_size; /* given to symbols_add(), or read from the file */
	bool is_data;
	bool has_given_id; /* the build id was given: it identifies the file */
	int32_t pid;	   /* the last process that had it mapped; 0: none */
	int fd;
	bool failed, loaded, full;
	struct symtab *table;
	struct file *newer, *older; /* in `used`; NULL: not in it */
};

struct symbols {
	bool live;
	bool own_vdso;
	const struct buildids *ids; /* by path; NULL: unknown */
	enum name_style style;
	struct string_pool *names;
	struct file **files; /* by number; 0 is unused */
	uint32_t nr_files, room;
	uint32_t *slots; /* hash table of numbers; 0: free */
	size_t slots_mask;
	struct symbol_cache *cache;
	struct file used; /* head: older is the most recently used */
	uint32_t nr_open, nr_tables;
	uint64_t table_bytes, seed;
	char readable[READABLE_MAX];
};

struct symbols *symbols_new(bool live, enum name_style style)
{
	struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->live = s->own_vdso = live;
	s->style = style;
	s->used.newer = s->used.older = &s->used;
	s->names = string_pool_new(MAX_NAME_BYTES);
	s->slots = calloc(FIRST_SLOTS, sizeof(*s->slots));
	s->cache = symbol_cache_new();
	s->slots_mask = FIRST_SLOTS - 1;
	if (getrandom(&s->seed, sizeof(s->seed), GRND_NONBLOCK) < 0)
		s->seed = 0; /* early boot: it works all the same */
	if (!s->names || !s->slots || !s->cache) {
		symbols_free(s);
		return NULL;
	}
	elf_version(EV_CURRENT);
	return s;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	for (uint32_t i = 1; i <= s->nr_files; i++) {
		symtab_free(s->files[i]->table);
		if (s->files[i]->fd >= 0)
			close(s->files[i]->fd);
		free(s->files[i]);
	}
	string_pool_free(s->names);
	free(s->files);
	free(s->slots);
	symbol_cache_free(s->cache);
	free(s);
}

static uint64_t mix(uint64_t hash, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * 0x9e3779b97f4a7c15ULL;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* Paths are interned, so equal ones have the same address. */
static size_t hash_file(const struct symbols *s, const struct symbols_file *f, const char *path)
{
	uint64_t hash = mix(s->seed, (uint64_t)(uintptr_t)path);

	hash = mix(hash, (uint64_t)f->maj << 32 | f->min);
	hash = mix(hash, f->inode + f->is_data);
	for (uint32_t i = 0; i < f->build_id_size; i++)
		hash = mix(hash, f->build_id[i]);
	return hash;
}

static bool is_file(const struct file *file, const struct symbols_file *f, const char *path)
{
	uint32_t id_size = file->has_given_id ? file->build_id_size : 0;

	return file->path == path && file->maj == f->maj && file->min == f->min &&
	       file->inode == f->inode && file->is_data == f->is_data &&
	       id_size == f->build_id_size &&
	       (!id_size || memcmp(file->build_id, f->build_id, id_size) == 0);
}

static struct symbols_file describe(const struct file *file)
{
	return (struct symbols_file){
		.path = file->path,
		.maj = file->maj,
		.min = file->min,
		.inode = file->inode,
		.build_id = file->build_id,
		.build_id_size = file->has_given_id ? file->build_id_size : 0,
		.is_data = file->is_data,
	};
}

static bool grow_files(struct symbols *s)
{
	uint32_t room = s->room ? 2 * s->room : FIRST_SLOTS / 2;
	uint32_t *slots = calloc(2 * (size_t)room, sizeof(*slots));
	struct file **files = reallocarray(s->files, room, sizeof(*files));

	if (files)
		s->files = files;
	if (!files || !slots) {
		free(slots);
		return false;
	}
	free(s->slots);
	s->slots = slots;
	s->slots_mask = 2 * (size_t)room - 1;
	s->room = room;
	for (uint32_t i = 1; i <= s->nr_files; i++) {
		struct symbols_file f = describe(files[i]);
		size_t at = hash_file(s, &f, files[i]->path) & s->slots_mask;

		while (slots[at])
			at = (at + 1) & s->slots_mask;
		slots[at] = i;
	}
	return true;
}

static struct file *new_file(struct symbols *s, const struct symbols_file *f, const char *path)
{
	struct file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->id = ++s->nr_files;
	file->path = path;
	file->fd = -1;
	file->maj = f->maj;
	file->min = f->min;
	file->inode = f->inode;
	file->is_data = f->is_data;
	file->build_id_size = f->build_id_size;
	file->has_given_id = f->build_id_size;
	if (f->build_id_size)
		memcpy(file->build_id, f->build_id, f->build_id_size);
	else if (s->ids)
		file->build_id_size = buildids_find(s->ids, path, file->build_id);
	s->files[file->id] = file;
	return file;
}

void symbols_expect(struct symbols *s, const struct buildids *ids)
{
	s->ids = ids;
}

void symbols_use_own_vdso(struct symbols *s)
{
	s->own_vdso = true;
}

uint32_t symbols_add(struct symbols *s, const struct symbols_file *file)
{
	const char *path = string_pool_add(s->names, file->path, strlen(file->path));
	struct symbols_file f = *file;
	size_t at;

	if (!path || (s->nr_files + 1 >= s->room && !grow_files(s)))
		return 0;
	if (f.inode || f.build_id_size > BUILD_ID_MAX)
		f.build_id_size = 0;
	at = hash_file(s, &f, path) & s->slots_mask;
	while (s->slots[at]) {
		if (is_file(s->files[s->slots[at]], &f, path))
			return s->slots[at];
		at = (at + 1) & s->slots_mask;
	}
	if (s->nr_files >= MAX_FILES || !new_file(s, &f, path))
		return 0;
	s->slots[at] = s->nr_files;
	return s->nr_files;
}

static struct file *get_file(const struct symbols *s, uint32_t id)
{
	return id && id <= s->nr_files ? s->files[id] : NULL;
}

const char *symbols_path(const struct symbols *s, uint32_t file)
{
	const struct file *f = get_file(s, file);

	return f ? f->path : NULL;
}

bool symbols_is_data(const struct symbols *s, uint32_t file)
{
	const struct file *f = get_file(s, file);

	return f && f->is_data;
}

int32_t symbols_pid(const struct symbols *s, uint32_t file)
{
	const struct file *f = get_file(s, file);

	return f ? f->pid : 0;
}

struct string_pool *symbols_names(struct symbols *s)
{
	return s->names;
}

void symbols_read_stats(const struct symbols *s, struct symbols_stats *out)
{
	*out = (struct symbols_stats){
		.bytes =
			s->table_bytes + string_pool_bytes(s->names) + symbol_cache_bytes(s->cache),
		.files = s->nr_files,
		.tables = s->nr_tables,
	};
}

static void unlink_file(struct file *f)
{
	if (!f->newer)
		return;
	f->newer->older = f->older;
	f->older->newer = f->newer;
	f->newer = f->older = NULL;
}

static void use_file(struct symbols *s, struct file *f)
{
	unlink_file(f);
	f->older = s->used.older;
	f->newer = &s->used;
	f->older->newer = f;
	s->used.older = f;
}

static void drop_table(struct symbols *s, struct file *f)
{
	if (f->table) {
		s->table_bytes -= symtab_bytes(f->table);
		s->nr_tables--;
	}
	symtab_free(f->table);
	f->table = NULL;
	f->loaded = false;
}

/* Drops the least recently used tables, then descriptors, but not those of keep. */
static void shrink(struct symbols *s, const struct file *keep)
{
	for (struct file *f = s->used.newer, *newer; f != &s->used; f = newer) {
		newer = f->newer;
		if (f == keep)
			continue;
		if (s->table_bytes > MAX_TABLE_BYTES || s->nr_open > MAX_OPEN)
			drop_table(s, f);
		if (s->nr_open <= MAX_OPEN) {
			if (s->table_bytes <= MAX_TABLE_BYTES)
				break;
			continue;
		}
		close(f->fd);
		f->fd = -1;
		s->nr_open--;
		unlink_file(f);
	}
}

static void keep_open(struct symbols *s, struct file *f, int fd)
{
	f->fd = fd;
	s->nr_open++;
	/* Lookups that failed while it could not be opened are obsolete. */
	if (f->failed)
		symbol_cache_clear(s->cache);
	f->failed = false;
	f->loaded = f->table;
	use_file(s, f);
	shrink(s, f);
}

void symbols_open(struct symbols *s, uint32_t file, int32_t pid, uint64_t start, uint64_t end)
{
	struct file *f = get_file(s, file);
	int fd;

	if (!f || !s->live || f->fd >= 0 || f->path[0] != '/')
		return;
	f->pid = pid;
	fd = process_file_open_mapped(pid, start, end, f->inode);
	if (fd < 0)
		fd = process_file_open_same(pid, f->path, f->inode);
	if (fd >= 0)
		keep_open(s, f, fd);
}

/* Opens the file at its path, if it is still the same, or a copy of it elsewhere. */
static int open_again(const struct file *f)
{
	bool by_id = f->build_id_size > 0;
	int fd = process_file_open_same(f->pid, f->path, by_id ? 0 : f->inode);

	if (!by_id || (fd >= 0 && debugfile_has_id(fd, f->build_id, f->build_id_size)))
		return fd;
	if (fd >= 0)
		close(fd);
	return debugfile_open_program(f->build_id, f->build_id_size);
}

/* The path may still lead to the file even though its descriptor had to be closed. */
static bool reopen(struct symbols *s, struct file *f)
{
	int fd;

	if (f->fd >= 0)
		return true;
	if (f->failed || f->path[0] != '/')
		return false;
	fd = open_again(f);
	f->failed = fd < 0;
	if (fd >= 0)
		keep_open(s, f, fd);
	return fd >= 0;
}

/* Returns a copy of our own: the kernel maps the same one into all processes of this kind. */
static char *copy_vdso(size_t *size)
{
	unsigned long addr = getauxval(AT_SYSINFO_EHDR);
	Elf64_Ehdr eh;
	char *copy;

	if (!addr || sizeof(addr) != 8)
		return NULL;
	memcpy(&eh, (const void *)addr, sizeof(eh));
	*size = eh.e_shoff + (size_t)eh.e_shnum * eh.e_shentsize;
	copy = *size <= VDSO_MAX ? malloc(*size) : NULL;
	return copy ? memcpy(copy, (const void *)addr, *size) : NULL;
}

static bool is_vdso(const struct symbols *s, const struct file *f)
{
	return s->own_vdso && strcmp(f->path, "[vdso]") == 0;
}

int symbols_dup(struct symbols *s, uint32_t file)
{
	struct file *f = get_file(s, file);
	size_t size = 0;
	char *vdso;
	int fd;

	if (!f)
		return -ENOENT;
	if (!is_vdso(s, f))
		return reopen(s, f) ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : -ENOENT;
	vdso = copy_vdso(&size);
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd >= 0 && (!vdso || write(fd, vdso, size) != (ssize_t)size)) {
		close(fd);
		fd = -1;
	}
	free(vdso);
	return fd;
}

/* Returns a file with this build id and a full table. */
static struct file *find_twin(const struct symbols *s, const struct file *of)
{
	for (struct file *f = s->used.older; of->build_id_size && f != &s->used; f = f->older)
		if (f != of && f->is_data == of->is_data && f->full && f->table &&
		    f->build_id_size == of->build_id_size &&
		    memcmp(f->build_id, of->build_id, f->build_id_size) == 0)
			return f;
	return NULL;
}

/* Adds the symbols that a stripped file has left elsewhere. */
static int add_debug_file(struct symtab *table, const struct file *f, Elf *elf)
{
	struct symtab_names names = {.fd = -1, .owned = true};
	char path[PATH_MAX], root[32];
	Elf *debug = NULL;
	int ret = 0;

	snprintf(root, sizeof(root), "/proc/%d/root", f->pid);
	snprintf(path, sizeof(path), "%.*s", process_file_path_len(f->path), f->path);
	names.fd = debugfile_open(elf, f->pid ? root : NULL, path);
	if (names.fd < 0)
		names.memory = debugfile_unpack(elf, &names.size);
	if (names.fd >= 0)
		debug = elf_begin(names.fd, ELF_C_READ, NULL);
	else if (names.memory)
		debug = elf_memory(names.memory, names.size);
	if (debug) {
		ret = symtab_add(table, debug, &names);
	} else {
		free(names.memory);
		if (names.fd >= 0)
			close(names.fd);
	}
	elf_end(debug);
	return ret;
}

static struct symtab *read_table(struct file *f, Elf *elf, const struct symtab_names *names)
{
	struct symtab *table = symtab_new(elf, f->is_data);
	int full;

	if (!table) {
		free(names->memory);
		return NULL;
	}
	full = symtab_add(table, elf, names);
	if (full == 0 && names->fd >= 0)
		full = add_debug_file(table, f, elf);
	if (full < 0 || symtab_finish(table)) {
		symtab_free(table);
		return NULL;
	}
	f->full = full > 0;
	return table;
}

/* Opens the ELF file, unless it is another file than the one that was mapped: no names are better
 * than wrong ones. */
static Elf *open_elf(struct file *f, const struct symtab_names *names)
{
	Elf *elf = names->memory ? elf_memory(names->memory, names->size)
				 : elf_begin(names->fd, ELF_C_READ, NULL);
	uint8_t id[BUILD_ID_MAX];
	uint32_t size = 0;

	if (elf && elf_kind(elf) == ELF_K_ELF)
		size = debugfile_build_id(elf, id);
	if (!elf || elf_kind(elf) != ELF_K_ELF ||
	    (f->build_id_size && size &&
	     (f->build_id_size != size || memcmp(f->build_id, id, size) != 0))) {
		elf_end(elf);
		return NULL;
	}
	if (size) {
		f->build_id_size = size;
		memcpy(f->build_id, id, size);
	}
	return elf;
}

static void load(struct symbols *s, struct file *f)
{
	bool vdso = is_vdso(s, f);
	struct symtab_names names = {.owned = vdso};
	bool opened = vdso || reopen(s, f);
	struct file *twin = NULL;
	Elf *elf = NULL;

	f->loaded = true;
	names.fd = f->fd;
	if (vdso)
		names.memory = copy_vdso(&names.size);
	if (opened && (names.fd >= 0 || names.memory))
		elf = open_elf(f, &names);
	if (elf)
		twin = find_twin(s, f);
	f->twin = twin ? twin->id : 0;
	if (elf && !twin)
		f->table = read_table(f, elf, &names);
	else
		free(names.memory);
	elf_end(elf);
	if (f->table) {
		s->table_bytes += symtab_bytes(f->table);
		s->nr_tables++;
		shrink(s, f);
	}
}

static struct symtab *get_table(struct symbols *s, struct file *f)
{
	const struct file *twin = get_file(s, f->twin);

	/* If the twin has lost its table, f reads its own. */
	if (!f->loaded || (twin && !twin->table))
		load(s, f);
	twin = get_file(s, f->twin);
	if (twin)
		f = s->files[f->twin];
	if (f->fd >= 0)
		use_file(s, f);
	return f->table;
}

static const char *readable(struct symbols *s, char *name)
{
	size_t whole = strlen(name), len = strcspn(name, "@"), more = whole - len; /* "@plt" */
	const char *suffix = more ? "@plt" : "";

	name[len] = '\0';
	len = demangle(name, s->style, s->readable, sizeof(s->readable) - more);
	memcpy(name + whole - more, suffix, more);
	if (!len)
		return string_pool_add(s->names, name, whole);
	memcpy(s->readable + len, suffix, more);
	return string_pool_add(s->names, s->readable, len + more);
}

bool symbols_find(struct symbols *s, uint32_t file, uint64_t offset, struct symbol *out)
{
	struct file *f = get_file(s, file);
	struct symtab *table;
	char *name;

	*out = (struct symbol){0};
	if (!f)
		return false;
	if (!symbol_cache_find(s->cache, file, offset, out)) {
		table = get_table(s, f);
		name = table ? symtab_find(table, offset, &out->offset) : NULL;
		out->name = name ? readable(s, name) : NULL;
		symbol_cache_add(s->cache, file, offset, out);
	}
	return out->name;
}
