/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The code is read instead of counting entries: linkers omit entries, order them freely, and split
 * them in two for indirect branch tracking.
 */
#include "symbols/plt.h"

#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
	STUB_SIZE = 16,
	SHORT_SIZE = 8, /* some entries of .plt.got */
	MAX_STUBS = 1 << 18,
	MAX_RELOCATIONS = 4 << 20,
	JUMP_LEN = 6, /* ff 25, and the distance of the slot */
};

/* Where the dynamic linker stores the address of a function. */
struct slot {
	uint64_t addr;
	uint32_t name;
};

struct slots {
	struct slot *slots;
	size_t count, room;
};

static bool add_slot(struct slots *s, uint64_t addr, uint32_t name)
{
	if (s->count == s->room) {
		size_t room = s->room ? 2 * s->room : 256;
		struct slot *slots = reallocarray(s->slots, room, sizeof(*slots));

		if (!slots || s->count >= MAX_STUBS) {
			s->slots = slots ? slots : s->slots;
			return false;
		}
		s->slots = slots;
		s->room = room;
	}
	s->slots[s->count++] = (struct slot){addr, name};
	return true;
}

static void read_relocations(struct slots *s, Elf_Data *data, size_t count, Elf_Data *symbols)
{
	for (size_t i = 0; i < count && i < MAX_RELOCATIONS; i++) {
		GElf_Rela rela;
		GElf_Sym sym;
		uint64_t type;

		if (!gelf_getrela(data, (int)i, &rela))
			break;
		type = GELF_R_TYPE(rela.r_info);
		if ((type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT) ||
		    GELF_R_SYM(rela.r_info) > INT32_MAX ||
		    !gelf_getsym(symbols, (int)GELF_R_SYM(rela.r_info), &sym) || !sym.st_name)
			continue;
		if (!add_slot(s, rela.r_offset, sym.st_name))
			break;
	}
}

static int compare(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void read_slots(struct slots *s, Elf *elf, Elf_Scn *dynsym)
{
	Elf_Data *symbols = elf_getdata(dynsym, NULL);
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while (symbols && (scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA || !sh.sh_entsize ||
		    sh.sh_link != elf_ndxscn(dynsym))
			continue;
		data = elf_getdata(scn, NULL);
		if (data)
			read_relocations(s, data, data->d_size / sh.sh_entsize, symbols);
	}
	if (s->count)
		qsort(s->slots, s->count, sizeof(*s->slots), compare);
}

/* Returns the slot that a stub jumps through; 0 if it is not a stub. It may begin with endbr64 and
 * bnd. */
static uint64_t jump_target(const uint8_t *code, size_t size, uint64_t addr)
{
	static const uint8_t endbr[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	int32_t distance;

	if (size >= sizeof(endbr) && memcmp(code, endbr, sizeof(endbr)) == 0)
		at += sizeof(endbr);
	if (at < size && code[at] == 0xf2)
		at++;
	if (size - at < JUMP_LEN || code[at] != 0xff || code[at + 1] != 0x25)
		return 0;
	memcpy(&distance, code + at + 2, sizeof(distance));
	return addr + at + JUMP_LEN + (uint64_t)(int64_t)distance;
}

static size_t read_stubs(const struct slots *s, const GElf_Shdr *sh, Elf_Data *data,
			 struct plt_stub *out, size_t room)
{
	uint32_t stub_size = sh->sh_entsize == SHORT_SIZE ? SHORT_SIZE : STUB_SIZE;
	size_t n = 0;

	for (size_t at = 0; data->d_size - at >= stub_size && n < room; at += stub_size) {
		uint64_t addr = sh->sh_addr + at;
		struct slot wanted = {jump_target((uint8_t *)data->d_buf + at, stub_size, addr), 0};
		const struct slot *slot =
			bsearch(&wanted, s->slots, s->count, sizeof(*s->slots), compare);

		if (slot)
			out[n++] = (struct plt_stub){addr, stub_size, slot->name};
	}
	return n;
}

static bool has_stubs(const char *section)
{
	return strcmp(section, ".plt") == 0 || strcmp(section, ".plt.sec") == 0 ||
	       strcmp(section, ".plt.got") == 0;
}

struct plt_stub *plt_read(Elf *elf, Elf_Scn *dynsym, size_t *count)
{
	struct plt_stub *stubs = NULL;
	struct slots slots = {0};
	Elf_Scn *scn = NULL;
	size_t strings;
	GElf_Ehdr eh;
	GElf_Shdr sh;

	*count = 0;
	if (!gelf_getehdr(elf, &eh) || eh.e_machine != EM_X86_64 ||
	    elf_getshdrstrndx(elf, &strings))
		return NULL;
	read_slots(&slots, elf, dynsym);
	if (slots.count)
		stubs = calloc(2 * slots.count, sizeof(*stubs));
	while (stubs && (scn = elf_nextscn(elf, scn))) {
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, strings, sh.sh_name) : NULL;
		Elf_Data *data = name && has_stubs(name) && sh.sh_type == SHT_PROGBITS
					 ? elf_getdata(scn, NULL)
					 : NULL;

		if (data && data->d_buf)
			*count += read_stubs(&slots, &sh, data, stubs + *count,
					     2 * slots.count - *count);
	}
	free(slots.slots);
	return stubs;
}
