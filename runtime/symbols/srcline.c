/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * There is one Dwfl per file, with the file as its only module; the most recently used ones are
 * kept. Debug files are searched as for symbols.
 */
#include "symbols/srcline.h"

#include <dwarf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "symbols/debugfile.h"
#include "symbols/string_pool.h"
#include "symbols/symbols.h"

enum {
	MAX_MODULES = 16,
	MAX_SCOPES = 64,
	NAME_MAX_BYTES = 4096,
};

struct module {
	uint32_t file; /* 0: free */
	uint64_t used;
	Dwfl *dwfl; /* NULL: the file is not readable */
	Dwfl_Module *module;
	char path[NAME_MAX_BYTES]; /* in the process */
	int32_t pid;
};

struct srclines {
	struct symbols *symbols;
	struct string_pool *names;
	uint64_t questions;
	struct module modules[MAX_MODULES];
	char name[NAME_MAX_BYTES];
};

struct srclines *srclines_new(struct symbols *symbols)
{
	struct srclines *s = calloc(1, sizeof(*s));

	if (s) {
		s->symbols = symbols;
		s->names = symbols_names(symbols);
	}
	return s;
}

static void close_module(struct module *m)
{
	if (m->dwfl)
		dwfl_end(m->dwfl);
	memset(m, 0, sizeof(*m));
}

void srclines_free(struct srclines *s)
{
	if (!s)
		return;
	for (int i = 0; i < MAX_MODULES; i++)
		close_module(&s->modules[i]);
	free(s);
}

static int find_debuginfo(Dwfl_Module *module, void **userdata, const char *modname,
			  Dwarf_Addr base, const char *file_name, const char *link, GElf_Word crc,
			  char **debug_name)
{
	const struct module *m = *userdata;
	Elf *elf = dwfl_module_getelf(module, &(Dwarf_Addr){0});
	char root[32];
	int fd;

	(void)modname;
	(void)base;
	(void)file_name;
	(void)link;
	(void)crc;
	snprintf(root, sizeof(root), "/proc/%d/root", m->pid);
	fd = elf ? debugfile_open(elf, m->pid ? root : NULL, m->path) : -1;
	*debug_name = NULL;
	return fd < 0 ? -1 : fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

static void open_module(struct srclines *s, struct module *m, uint32_t file)
{
	void **userdata;
	int fd;

	m->file = file;
	fd = symbols_dup(s->symbols, file);
	if (fd < 0)
		return;
	m->pid = symbols_pid(s->symbols, file);
	snprintf(m->path, sizeof(m->path), "%s", symbols_path(s->symbols, file));
	m->dwfl = dwfl_begin(&callbacks);
	if (m->dwfl)
		m->module = dwfl_report_offline(m->dwfl, m->path, m->path, fd);
	if (!m->module) {
		close(fd);
		return;
	}
	dwfl_report_end(m->dwfl, NULL, NULL);
	dwfl_module_info(m->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = m;
}

/* A new one replaces the least recently used. */
static struct module *get_module(struct srclines *s, uint32_t file)
{
	struct module *oldest = &s->modules[0];

	for (int i = 0; i < MAX_MODULES; i++) {
		struct module *m = &s->modules[i];

		if (m->file == file) {
			m->used = ++s->questions;
			return m;
		}
		if (m->used < oldest->used)
			oldest = m;
	}
	close_module(oldest);
	open_module(s, oldest, file);
	oldest->used = ++s->questions;
	return oldest;
}

/* Gets the address in the module of a byte of the file. */
static bool find_address(const struct module *m, uint64_t offset, Dwarf_Addr *addr)
{
	Dwarf_Addr bias;
	Elf *elf = dwfl_module_getelf(m->module, &bias);
	size_t count;
	GElf_Phdr ph;

	if (!elf || elf_getphdrnum(elf, &count))
		return false;
	for (size_t i = 0; i < count && i < INT32_MAX; i++)
		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && (ph.p_flags & PF_X) &&
		    offset >= ph.p_offset && offset - ph.p_offset < ph.p_filesz) {
			*addr = offset - ph.p_offset + ph.p_vaddr + bias;
			return true;
		}
	return false;
}

/* Returns the unit with the address, even if there is no index of units. */
static Dwarf_Die *find_unit(const struct module *m, Dwarf_Addr addr, Dwarf_Addr *bias)
{
	Dwarf_Die *unit = dwfl_module_addrdie(m->module, addr, bias);

	while (!unit && (unit = dwfl_module_nextcu(m->module, unit, bias)))
		if (dwarf_haspc(unit, addr - *bias) > 0)
			return unit;
	return unit;
}

static const char *keep(struct srclines *s, const char *text)
{
	return text ? string_pool_add(s->names, text, strlen(text)) : NULL;
}

/* Returns the readable name of a function, with its scopes if it has a linkage name. */
static const char *function_name(struct srclines *s, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *linkage = NULL, *name = dwarf_diename(die);

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		linkage = dwarf_formstring(&attr);
	if (linkage && demangle(linkage, NAMES_SHORT, s->name, sizeof(s->name)))
		name = s->name;
	return keep(s, name ? name : "??");
}

static uint32_t number_of(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value = 0;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value))
		return 0;
	return (uint32_t)value;
}

/* Returns the file that an inlined function was called from. */
static const char *call_file(Dwarf_Die *unit, Dwarf_Die *die)
{
	Dwarf_Files *files;
	size_t count;
	uint32_t number = number_of(die, DW_AT_call_file);

	if (!number || dwarf_getsrcfiles(unit, &files, &count) || number >= count)
		return NULL;
	return dwarf_filesrc(files, number, NULL, NULL);
}

/* Each inlined function says where it was called; that is the line of the next function. */
static uint32_t add_inlined(struct srclines *s, Dwarf_Die *unit, Dwarf_Addr pc, struct srcline *out,
			    uint32_t max)
{
	Dwarf_Die *around = NULL, *scopes = NULL;
	int count = dwarf_getscopes(unit, pc, &around);
	uint32_t n = 1;

	/* These scopes are where an inlined function is defined; those around its code are
	 * needed. */
	if (count > 0)
		count = dwarf_getscopes_die(&around[0], &scopes);
	free(around);

	for (int i = 0; i < count && i < MAX_SCOPES && n < max; i++) {
		int tag = dwarf_tag(&scopes[i]);

		if (tag == DW_TAG_subprogram)
			break;
		if (tag != DW_TAG_inlined_subroutine)
			continue;
		out[n - 1].function = function_name(s, &scopes[i]);
		out[n++] = (struct srcline){
			.path = keep(s, call_file(unit, &scopes[i])),
			.line = number_of(&scopes[i], DW_AT_call_line),
		};
	}
	free(scopes);
	return n;
}

uint32_t srclines_find(struct srclines *s, uint32_t file, uint64_t offset, struct srcline *out,
		       uint32_t max)
{
	struct module *m = file ? get_module(s, file) : NULL;
	Dwarf_Addr addr, bias;
	Dwarf_Die *unit;
	Dwfl_Line *line;
	int number = 0;

	if (!max || !m || !m->module || !find_address(m, offset, &addr))
		return 0;
	line = dwfl_module_getsrc(m->module, addr);
	if (!line)
		return 0;
	out[0] = (struct srcline){
		.path = keep(s, dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL))};
	out[0].line = (uint32_t)number;
	unit = find_unit(m, addr, &bias);
	return unit ? add_inlined(s, unit, addr - bias, out, max) : 1;
}
