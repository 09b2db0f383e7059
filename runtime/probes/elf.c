/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Symbols are looked up by walking the tables, because a run looks up few. libelf reads the file
 * instead of mapping it, so a file that is truncated meanwhile causes an error and not a SIGBUS.
 */
#include "probes/elf.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbols/demangle.h"
#include "error.h"
#include "nearest.h"

enum {
	READABLE_MAX = 4096,	/* bytes of a C++ name */
	TABLES_MAX = 16,	/* a linked file has two; libelf keeps a copy of each */
	VERSION_HIDDEN = 0x8000 /* in .gnu.version: not the default version */
};

struct elf_file {
	char *path;
	int fd;
	Elf *elf;
};

struct symbol {
	const char *name; /* may end in @VERSION or @@VERSION */
	GElf_Sym sym;
	bool old_version; /* not the default version of its name */
};

static int open_regular(const char *path, struct error *err)
{
	/* O_NONBLOCK: opening a FIFO without a writer would block. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code;
	struct stat st;

	if (fd < 0) {
		code = errno;
		return error_set(err, -code, "cannot read %s: %s", path, strerror(code));
	}
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return error_set(err, -EINVAL, "%s is not a regular file", path);
	}
	return fd;
}

struct elf_file *elf_file_open(const char *path, struct error *err)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	char *copy = strdup(path);

	if (!f || !copy) {
		error_set(err, -ENOMEM, "out of memory");
		free(copy);
		free(f);
		return NULL;
	}
	elf_version(EV_CURRENT);
	f->path = copy;
	f->fd = open_regular(path, err);
	if (f->fd >= 0) {
		f->elf = elf_begin(f->fd, ELF_C_READ, NULL);
		if (f->elf && elf_kind(f->elf) == ELF_K_ELF)
			return f;
		error_set(err, -ENOEXEC, "%s is not an ELF file", path);
	}
	elf_file_free(f);
	return NULL;
}

void elf_file_free(struct elf_file *f)
{
	if (!f)
		return;
	elf_end(f->elf);
	if (f->fd >= 0)
		close(f->fd);
	free(f->path);
	free(f);
}

struct Elf *elf_file_handle(struct elf_file *f)
{
	return f->elf;
}

int elf_file_offset(struct elf_file *f, uint64_t addr, int32_t executable, uint64_t *offset)
{
	size_t count;

	if (elf_getphdrnum(f->elf, &count))
		return -ENOENT;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(f->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    (executable && !(ph.p_flags & PF_X)))
			continue;
		if (addr >= ph.p_vaddr && addr - ph.p_vaddr < ph.p_filesz) {
			*offset = addr - ph.p_vaddr + ph.p_offset;
			return 0;
		}
	}
	return -ENOENT;
}

/* strip(1) leaves these sections, without which the program does not run or has no version. */
int32_t elf_file_is_go(struct elf_file *f)
{
	static const char *const names[] = {".go.buildinfo", ".note.go.buildid", ".gopclntab"};
	Elf_Scn *scn = NULL;
	const char *name;
	size_t strings;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(f->elf, &strings))
		return 0;
	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &sh))
			continue;
		name = elf_strptr(f->elf, strings, sh.sh_name);
		for (size_t i = 0; name && i < sizeof(names) / sizeof(names[0]); i++)
			if (strstr(name, names[i]))
				return 1;
	}
	return 0;
}

static Elf_Data *section_of_type(Elf *elf, uint32_t type)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			return elf_getdata(scn, NULL);
	return NULL;
}

/* Calls call() for each named symbol of a table. */
static void walk_table(struct elf_file *f, Elf_Scn *scn, const GElf_Shdr *sh,
		       void (*call)(const struct symbol *s, void *arg), void *arg)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Data *versions =
		sh->sh_type == SHT_DYNSYM ? section_of_type(f->elf, SHT_GNU_versym) : NULL;
	size_t size = gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
	size_t count = data && size ? data->d_size / size : 0;

	for (size_t i = 0; i < count && i < INT32_MAX; i++) {
		struct symbol s = {0};
		GElf_Versym version = 0;
		const char *at;

		if (!gelf_getsym(data, (int)i, &s.sym))
			break;
		s.name = elf_strptr(f->elf, sh->sh_link, s.sym.st_name);
		if (!s.name || !s.name[0])
			continue;
		at = strchr(s.name, '@');
		s.old_version = at ? at[1] != '@'
				   : versions && gelf_getversym(versions, (int)i, &version) &&
						(version & VERSION_HIDDEN);
		call(&s, arg);
	}
}

static void walk(struct elf_file *f, void (*call)(const struct symbol *s, void *arg), void *arg)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int tables = 0;

	while (tables < TABLES_MAX && (scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, &sh) &&
		    (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)) {
			walk_table(f, scn, &sh, call, arg);
			tables++;
		}
}

static bool is_function(const struct symbol *s)
{
	int type = GELF_ST_TYPE(s->sym.st_info);

	return type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE;
}

static bool is_defined(const struct symbol *s)
{
	return s->sym.st_shndx != SHN_UNDEF && s->sym.st_shndx != SHN_ABS &&
	       GELF_ST_TYPE(s->sym.st_info) != STT_TLS;
}

static size_t name_len(const struct symbol *s)
{
	return strcspn(s->name, "@");
}

/* Finds the best symbol of a name: default versions before old ones, those before local symbols. */
struct search {
	const char *name;
	bool functions;
	bool readable; /* name is as in C++ or Rust source, with or without parameters */
	GElf_Sym best;
	int rank;	 /* 0: none was found */
	uint32_t places; /* different addresses with that rank */
	bool imported, any;
};

static bool has_name(const struct search *search, const struct symbol *s)
{
	size_t len = name_len(s);
	char text[READABLE_MAX];

	if (!search->readable)
		return !strncmp(s->name, search->name, len) && !search->name[len];
	return (demangle(s->name, NAMES_SHORT, text, sizeof(text)) &&
		!strcmp(text, search->name)) ||
	       (demangle(s->name, NAMES_FULL, text, sizeof(text)) && !strcmp(text, search->name));
}

static void match(const struct symbol *s, void *arg)
{
	struct search *search = arg;
	int rank = GELF_ST_BIND(s->sym.st_info) == STB_LOCAL ? 1 : s->old_version ? 2 : 3;

	search->any = true;
	if ((search->functions && !is_function(s)) || !has_name(search, s))
		return;
	if (!is_defined(s)) {
		search->imported = true;
	} else if (rank > search->rank) {
		search->rank = rank;
		search->best = s->sym;
		search->places = 1;
	} else if (rank == search->rank && s->sym.st_value != search->best.st_value) {
		search->places++;
	}
}

static void try_function_name(const struct symbol *s, void *arg)
{
	if (is_function(s) && is_defined(s))
		nearest_try(arg, s->name, name_len(s));
}

static int not_found(struct elf_file *f, const struct search *search, struct error *err)
{
	struct nearest near;

	if (!search->any)
		return error_set(err, -ENOENT,
				 "%s has no symbols; give an offset in the file, such as 0x1234",
				 f->path);
	if (search->imported)
		return error_set(err, -ENOENT,
				 "%s only imports '%s'; probe the library that defines it", f->path,
				 search->name);
	nearest_start(&near, search->name);
	walk(f, try_function_name, &near);
	return error_set(err, -ENOENT, "no function '%s' in %s%s", search->name, f->path,
			 nearest_hint(&near));
}

int elf_file_function(struct elf_file *f, const char *name, uint64_t offset, uint64_t *file_offset,
		      struct error *err)
{
	struct search search = {.name = name, .functions = true};
	uint64_t size;

	walk(f, match, &search);
	if (!search.rank) {
		search.readable = true;
		walk(f, match, &search);
	}
	if (!search.rank)
		return not_found(f, &search, err);
	if (search.places > 1)
		return error_set(err, -EINVAL,
				 "%s has several functions '%s'; give an offset in the file, such "
				 "as 0x1234",
				 f->path, name);
	if (GELF_ST_TYPE(search.best.st_info) == STT_GNU_IFUNC)
		return error_set(err, -EINVAL,
				 "'%s' in %s is an indirect function; probe one of its "
				 "implementations, or give an offset in the file, such as 0x1234",
				 name, f->path);
	size = search.best.st_size;
	if (size && offset >= size)
		return error_set(err, -EINVAL, "'%s' in %s has only %llu bytes", name, f->path,
				 (unsigned long long)size);
	if (elf_file_offset(f, search.best.st_value + offset, 1, file_offset))
		return error_set(err, -EINVAL, "'%s' in %s is not in executable memory", name,
				 f->path);
	return 0;
}

int elf_file_address(struct elf_file *f, const char *name, uint64_t *addr)
{
	struct search search = {.name = name};

	walk(f, match, &search);
	if (!search.rank || search.places > 1)
		return -ENOENT;
	*addr = search.best.st_value;
	return 0;
}
