/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Entries are sorted by address, larger ones first if the address is equal. So the last entry that
 * begins at or before an address is the innermost one, if it covers the address. If it ends before,
 * whatever covers the address was already open where the entry begins: each entry knows the
 * innermost of those, its parent.
 */
#include "symbols/symtab.h"

#include <elf.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/plt.h"

#define NONE UINT32_MAX

enum {
	MAX_SEGMENTS = 64,
	MAX_SECTIONS = 1 << 16,
	MAX_ENTRIES = 16 << 20,
	MAX_FILES = 2,
	MAX_SOURCES = 2 * MAX_FILES, /* of each file a full table and one for the dynamic linker */
	MAX_ALIASES = 32,	     /* that are compared to find the best name */
	MAX_NAME = 8 << 10,
	MAX_SIZE = (1 << 27) - 1,
};

enum rank { GLOBAL, LOCAL, WEAK, LABEL, STUB };

struct entry {
	uint64_t addr;
	uint32_t size : 27; /* 0 until symtab_finish(): up to the next entry */
	uint32_t source : 2;
	uint32_t rank : 3;
	uint32_t name; /* offset in the strings of its source */
};

/* The strings of one table. The sources of full tables come first: symbols in both kinds of tables
 * are taken from the full ones, which have more. */
struct source {
	int fd;
	const char *memory;
	uint64_t offset, size;
};

struct segment {
	uint64_t offset, size, addr;
	uint64_t memory; /* bytes that an offset may be in: size, or more for data */
	bool wanted;
};

struct range {
	uint64_t start, end;
};

struct symtab {
	struct segment segments[MAX_SEGMENTS];
	struct source sources[MAX_SOURCES];
	struct symtab_names files[MAX_FILES];
	uint32_t nr_segments, nr_files;
	uint32_t nr_entries, nr_sections;
	bool data;     /* of variables, not of functions */
	uint64_t base; /* address of the first segment */
	struct entry *entries;
	uint32_t *parents; /* for each entry the innermost one that is open where it begins */
	struct range *
		sections; /* those of the symbols, while loading: they end functions without size */
	char name[2][MAX_NAME]; /* the best one so far, and the one that it is compared with */
};

/* Gets the address of the first segment. Debug files of relocated libraries have another one. */
static bool first_address(Elf *elf, uint64_t *addr)
{
	size_t count;
	GElf_Phdr ph;

	if (elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && i < INT32_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD) {
			*addr = ph.p_vaddr;
			return true;
		}
	return false;
}

struct symtab *symtab_new(Elf *elf, bool data)
{
	struct symtab *t = calloc(1, sizeof(*t));
	size_t count;
	GElf_Phdr ph;

	if (t)
		t->data = data;
	if (!t || elf_getphdrnum(elf, &count))
		return t;
	for (size_t i = 0; i < count && t->nr_segments < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(elf, (int)i, &ph))
			break;
		if (ph.p_type == PT_LOAD)
			t->segments[t->nr_segments++] = (struct segment){
				.offset = ph.p_offset,
				.size = ph.p_filesz,
				.addr = ph.p_vaddr,
				.memory = data ? ph.p_memsz : ph.p_filesz,
				.wanted = !(ph.p_flags & PF_X) == data,
			};
	}
	first_address(elf, &t->base);
	return t;
}

static void release(const struct symtab_names *names)
{
	if (names->owned && names->fd >= 0)
		close(names->fd);
	if (names->owned)
		free(names->memory);
}

void symtab_free(struct symtab *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->nr_files; i++)
		release(&t->files[i]);
	free(t->entries);
	free(t->parents);
	free(t->sections);
	free(t);
}

uint64_t symtab_bytes(const struct symtab *t)
{
	uint64_t bytes = sizeof(*t) + (uint64_t)t->nr_entries * (sizeof(struct entry) + 4);

	for (uint32_t i = 0; i < t->nr_files; i++)
		bytes += t->files[i].owned ? t->files[i].size : 0;
	return bytes;
}

/* Whether the symbols of a section are wanted. */
static bool is_wanted(const struct symtab *t, const GElf_Shdr *sh)
{
	bool code = sh->sh_flags & SHF_EXECINSTR;

	return t->data ? !code && (sh->sh_flags & SHF_ALLOC) : code;
}

/* Returns the ranges of elf's wanted sections by number; others are empty. */
static struct range *read_sections(const struct symtab *t, Elf *elf, size_t *count)
{
	struct range *ranges;
	GElf_Shdr sh;

	if (elf_getshdrnum(elf, count) || *count > MAX_SECTIONS)
		return NULL;
	ranges = calloc(*count + 1, sizeof(*ranges));
	for (size_t i = 0; ranges && i < *count; i++)
		if (gelf_getshdr(elf_getscn(elf, i), &sh) && is_wanted(t, &sh) &&
		    sh.sh_addr + sh.sh_size >= sh.sh_addr)
			ranges[i] = (struct range){sh.sh_addr, sh.sh_addr + sh.sh_size};
	return ranges;
}

static enum rank rank_of(const GElf_Sym *sym)
{
	if (GELF_ST_TYPE(sym->st_info) == STT_NOTYPE)
		return LABEL;
	switch (GELF_ST_BIND(sym->st_info)) {
	case STB_LOCAL:
		return LOCAL;
	case STB_WEAK:
		return WEAK;
	default:
		return GLOBAL;
	}
}

/* Returns whether the machine's local labels (ARM, RISC-V) only mark the kind of code that
 * follows. */
static bool has_mapping_labels(Elf *elf)
{
	GElf_Ehdr eh;

	return gelf_getehdr(elf, &eh) &&
	       (eh.e_machine == EM_ARM || eh.e_machine == EM_AARCH64 || eh.e_machine == EM_RISCV);
}

static bool is_in(const GElf_Sym *sym, const struct range *section)
{
	return sym->st_value >= section->start && sym->st_value < section->end;
}

/* Returns whether a symbol names a variable of its section. */
static bool is_variable(const GElf_Sym *sym, const struct range *section)
{
	return GELF_ST_TYPE(sym->st_info) == STT_OBJECT && sym->st_size && is_in(sym, section);
}

/* Returns whether a symbol names code of its section. */
static bool is_code(const GElf_Sym *sym, const struct range *section, bool mapping_labels)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (type == STT_NOTYPE && mapping_labels && GELF_ST_BIND(sym->st_info) == STB_LOCAL)
		return false;
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	return is_in(sym, section);
}

static int make_room(struct symtab *t, size_t count)
{
	struct entry *entries;

	if (count > MAX_ENTRIES - t->nr_entries)
		return -EFBIG;
	entries = reallocarray(t->entries, t->nr_entries + count, sizeof(*entries));
	if (!entries && t->nr_entries + count)
		return -ENOMEM;
	t->entries = entries;
	return 0;
}

static int add_table(struct symtab *t, Elf *elf, Elf_Data *data, uint32_t source,
		     const struct range *sections, size_t nr_sections, uint64_t shift)
{
	size_t size = gelf_fsize(elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t count = size ? data->d_size / size : 0;
	bool mapping_labels = has_mapping_labels(elf);
	int ret = make_room(t, count);

	for (size_t i = 0; !ret && i < count; i++) {
		const struct range *section;
		GElf_Sym sym;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx >= nr_sections || !sym.st_name)
			continue;
		section = &sections[sym.st_shndx];
		if (t->data ? !is_variable(&sym, section) : !is_code(&sym, section, mapping_labels))
			continue;
		if (sym.st_size > section->end - sym.st_value)
			sym.st_size = section->end - sym.st_value;
		t->entries[t->nr_entries++] = (struct entry){
			.addr = sym.st_value + shift,
			.size = sym.st_size < MAX_SIZE ? (uint32_t)sym.st_size : MAX_SIZE,
			.source = source,
			.rank = rank_of(&sym),
			.name = sym.st_name,
		};
	}
	return ret;
}

static int add_stubs(struct symtab *t, Elf *elf, Elf_Scn *dynsym, uint32_t source, uint64_t shift)
{
	size_t count;
	struct plt_stub *stubs = plt_read(elf, dynsym, &count);
	int ret = make_room(t, count);

	for (size_t i = 0; !ret && i < count; i++)
		t->entries[t->nr_entries++] = (struct entry){
			.addr = stubs[i].addr + shift,
			.size = stubs[i].size,
			.source = source,
			.rank = STUB,
			.name = stubs[i].name,
		};
	free(stubs);
	return ret;
}

/* Adds the first table of this type in elf, if there is one. */
static int add_tables(struct symtab *t, Elf *elf, uint32_t type, const struct symtab_names *names,
		      const struct range *sections, size_t nr_sections, uint64_t shift)
{
	uint32_t source = t->nr_files - 1 + (type == SHT_SYMTAB ? 0 : MAX_FILES);
	Elf_Scn *scn = NULL;
	Elf_Data *data;
	GElf_Shdr sh, strings;
	int ret;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			break;
	if (!scn || (sh.sh_flags & SHF_COMPRESSED) ||
	    !gelf_getshdr(elf_getscn(elf, sh.sh_link), &strings) || strings.sh_type != SHT_STRTAB ||
	    (strings.sh_flags & SHF_COMPRESSED))
		return 0;
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_size)
		return 0;
	ret = add_table(t, elf, data, source, sections, nr_sections, shift);
	if (!ret && type == SHT_DYNSYM && !t->data)
		ret = add_stubs(t, elf, scn, source, shift);
	if (ret)
		return ret;
	if (names->memory &&
	    (strings.sh_offset > names->size || strings.sh_size > names->size - strings.sh_offset))
		strings.sh_size = 0;
	t->sources[source] =
		(struct source){names->fd, names->memory, strings.sh_offset, strings.sh_size};
	return 1;
}

static int compare_ranges(const void *pa, const void *pb)
{
	const struct range *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

static int add_sections(struct symtab *t, const struct range *sections, size_t count,
			uint64_t shift)
{
	struct range *all = reallocarray(t->sections, t->nr_sections + count + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	t->sections = all;
	for (size_t i = 0; i < count; i++)
		if (sections[i].end > sections[i].start)
			all[t->nr_sections++] =
				(struct range){sections[i].start + shift, sections[i].end + shift};
	return 0;
}

int symtab_add(struct symtab *t, Elf *elf, const struct symtab_names *names)
{
	uint64_t base = t->base, shift;
	struct range *sections;
	int full = 0, ret = 0;
	size_t count;

	if (t->nr_files == MAX_FILES) {
		release(names);
		return -ENOSPC;
	}
	t->files[t->nr_files++] = *names;
	sections = read_sections(t, elf, &count);
	if (!sections)
		return 0;
	first_address(elf, &base);
	shift = t->base - base;
	full = add_tables(t, elf, SHT_SYMTAB, names, sections, count, shift);
	if (full >= 0)
		ret = add_tables(t, elf, SHT_DYNSYM, names, sections, count, shift);
	if (full >= 0 && ret >= 0)
		ret = add_sections(t, sections, count, shift);
	free(sections);
	return full < 0 ? full : ret < 0 ? ret : full;
}

static int compare_entries(const void *pa, const void *pb)
{
	const struct entry *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->source < b->source ? -1 : a->source > b->source;
}

static uint64_t end_of(const struct entry *e)
{
	return e->addr + e->size;
}

/* Ends the functions without size that were kept since entry `first`: at next, or at the end of
 * their section. */
static void close_open(struct symtab *t, uint32_t first, uint64_t next, uint32_t *section)
{
	for (uint32_t i = first; i < t->nr_entries; i++) {
		struct entry *e = &t->entries[i];
		uint64_t end = next;

		while (*section < t->nr_sections && t->sections[*section].end <= e->addr)
			++*section;
		if (*section < t->nr_sections && t->sections[*section].end < end)
			end = t->sections[*section].end;
		e->size = end - e->addr < MAX_SIZE ? (uint32_t)(end - e->addr) : MAX_SIZE;
	}
}

/* Returns whether the entry is the same function in a later source. */
static bool is_repeated(const struct symtab *t, const struct entry *e)
{
	const struct entry *last = t->nr_entries ? &t->entries[t->nr_entries - 1] : NULL;

	return last && last->addr == e->addr && last->size == e->size && last->source != e->source;
}

/*
 * Drops duplicates and labels inside of functions, ends functions without size at the next one, and
 * finds the parents. open: the first of those without size at the last address.
 */
static void arrange(struct symtab *t, uint32_t count)
{
	uint32_t top = NONE, open = NONE, section = 0;

	t->nr_entries = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct entry e = t->entries[i];

		if (open != NONE && t->entries[open].addr < e.addr) {
			close_open(t, open, e.addr, &section);
			open = NONE;
		}
		while (top != NONE && end_of(&t->entries[top]) <= e.addr)
			top = t->parents[top];
		if (is_repeated(t, &e) || (!e.size && top != NONE))
			continue;
		t->parents[t->nr_entries] = top;
		t->entries[t->nr_entries] = e;
		if (e.size)
			top = t->nr_entries;
		else if (open == NONE)
			open = t->nr_entries;
		t->nr_entries++;
	}
	if (open != NONE)
		close_open(t, open, UINT64_MAX, &section);
}

int symtab_finish(struct symtab *t)
{
	struct entry *entries;

	t->parents = calloc(t->nr_entries + 1, sizeof(*t->parents));
	if (!t->parents)
		return -ENOMEM;
	if (t->nr_entries) {
		qsort(t->entries, t->nr_entries, sizeof(*t->entries), compare_entries);
		qsort(t->sections, t->nr_sections, sizeof(*t->sections), compare_ranges);
		arrange(t, t->nr_entries);
		entries = reallocarray(t->entries, t->nr_entries, sizeof(*entries));
		t->entries = entries ? entries : t->entries;
	}
	free(t->sections);
	t->sections = NULL;
	return 0;
}

/* The wanted segments first: the last page of another segment may be mapped with them. So may
 * memory behind the file's part of a segment, where another one begins in the file. */
static bool find_address(const struct symtab *t, uint64_t file_offset, uint64_t *addr)
{
	bool found = false;

	for (uint32_t i = 0; i < t->nr_segments; i++) {
		const struct segment *s = &t->segments[i];

		uint64_t at = file_offset - s->offset;
		bool best = s->wanted && at < s->size;

		if (file_offset < s->offset || at >= s->memory || (found && !best))
			continue;
		*addr = at + s->addr;
		found = true;
		if (best)
			break;
	}
	return found;
}

/* Returns the number of the innermost entry that covers addr, the last one of its aliases. */
static uint32_t find_entry(const struct symtab *t, uint64_t addr)
{
	uint32_t low = 0, high = t->nr_entries;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (t->entries[mid].addr <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NONE;
	low--;
	while (low != NONE && addr - t->entries[low].addr >= t->entries[low].size)
		low = t->parents[low];
	return low;
}

/* Reads a name; "" if the file is malformed. */
static void read_name(const struct symtab *t, const struct entry *e, char *name)
{
	const struct source *s = &t->sources[e->source];
	uint64_t left = e->name < s->size ? s->size - e->name : 0;
	size_t size = left < MAX_NAME - 1 ? left : MAX_NAME - 1;
	ssize_t n = 0;

	if (s->memory) {
		memcpy(name, s->memory + s->offset + e->name, size);
		n = (ssize_t)size;
	} else {
		/* Most names are short: one short read is enough. */
		size_t first = size < 256 ? size : 256;

		n = pread(s->fd, name, first, (off_t)(s->offset + e->name));
		if (n == 256 && size > 256 && !memchr(name, '\0', 256))
			n = pread(s->fd, name, size, (off_t)(s->offset + e->name));
	}
	name[n > 0 ? n : 0] = '\0';
}

/* Among names of the same rank perf takes the one with fewer leading underscores, then the
 * longest. */
static int compare_names(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	size_t len_a = strlen(a), len_b = strlen(b);

	if (!len_a || !len_b)
		return len_a ? -1 : len_b != 0;
	if (under_a != under_b)
		return under_a < under_b ? -1 : 1;
	if (len_a != len_b)
		return len_a > len_b ? -1 : 1;
	return strcmp(a, b);
}

/* Returns the best name of entry i and the aliases before it, without a version after '@'. */
static char *best_name(struct symtab *t, uint32_t i)
{
	const struct entry *best = &t->entries[i], *e = best;
	uint32_t kept = 0;

	read_name(t, best, t->name[0]);
	for (int k = 1; k < MAX_ALIASES && i-- > 0; k++) {
		e = &t->entries[i];
		if (e->addr != best->addr || e->size != best->size)
			break;
		if (e->rank > best->rank)
			continue;
		read_name(t, e, t->name[!kept]);
		if (e->rank < best->rank || compare_names(t->name[!kept], t->name[kept]) < 0) {
			kept = !kept;
			best = e;
		}
	}
	t->name[kept][strcspn(t->name[kept], "@")] = '\0';
	if (best->rank == STUB)
		strcpy(t->name[kept] + strnlen(t->name[kept], MAX_NAME - sizeof("@plt")), "@plt");
	return t->name[kept][0] ? t->name[kept] : NULL;
}

char *symtab_find(struct symtab *t, uint64_t file_offset, uint64_t *offset)
{
	uint64_t addr = 0;
	uint32_t i;

	if (!find_address(t, file_offset, &addr))
		return NULL;
	i = find_entry(t, addr);
	if (i == NONE)
		return NULL;
	*offset = addr - t->entries[i].addr;
	return best_name(t, i);
}
