/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A note has addresses of link time. If the file was prelinked later, the section .stapsdt.base
 * moved with the rest and tells by how much. Probes outside of the file's segments are ignored.
 */
#include "probes/usdt.h"

#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "probes/elf.h"
#include "error.h"

enum { NT_STAPSDT = 3, OPERAND_MAX = 128, SECTIONS_MAX = 16 };

struct usdt {
	struct elf_file *file;
	Elf *elf;
	uint16_t machine;
	bool has_base;
	uint64_t base; /* address of .stapsdt.base */
	struct usdt_probe *probes;
	uint32_t count;
};

/* Returns the next string of a note; NULL if it does not end within the note. */
static const char *next_string(const char **at, const char *end)
{
	const char *from = *at, *nul = memchr(from, 0, end - from);

	if (nul)
		*at = nul + 1;
	return nul ? from : NULL;
}

/* Returns how far the file was moved since the note was written. */
static uint64_t moved(const struct usdt *u, const struct usdt_probe *p)
{
	return u->has_base && p->base ? u->base - p->base : 0;
}

/* Fills p from a note. Returns false if the note is damaged or its place is not in the file. */
static bool parse_note(struct usdt *u, const char *at, size_t size, struct usdt_probe *p)
{
	size_t width = gelf_fsize(u->elf, ELF_T_ADDR, 1, EV_CURRENT);
	uint64_t *addrs[] = {&p->addr, &p->base, &p->semaphore};
	const char *end = at + size;

	if (!width || size < 3 * width)
		return false;
	for (int i = 0; i < 3; i++, at += width) {
		uint32_t narrow;

		memcpy(width == sizeof(narrow) ? (void *)&narrow : addrs[i], at, width);
		if (width == sizeof(narrow))
			*addrs[i] = narrow;
	}
	p->provider = next_string(&at, end);
	p->name = p->provider ? next_string(&at, end) : NULL;
	p->args = p->name ? next_string(&at, end) : NULL;
	if (!p->args || elf_file_offset(u->file, p->addr + moved(u, p), 1, &p->offset))
		return false;
	return !p->semaphore ||
	       !elf_file_offset(u->file, p->semaphore + moved(u, p), 0, &p->semaphore_offset);
}

static int add_probe(struct usdt *u, const struct usdt_probe *p)
{
	struct usdt_probe *grown = realloc(u->probes, (u->count + 1) * sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	u->probes = grown;
	grown[u->count++] = *p;
	return 0;
}

static int read_notes(struct usdt *u, Elf_Data *data)
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && at < data->d_size) {
		size_t next = gelf_getnote(data, at, &note, &name, &desc);
		const char *bytes = data->d_buf;
		struct usdt_probe p = {0};

		if (next <= at)
			break;
		at = next;
		if (note.n_type == NT_STAPSDT && note.n_namesz == sizeof("stapsdt") &&
		    memcmp(bytes + name, "stapsdt", sizeof("stapsdt")) == 0 &&
		    parse_note(u, bytes + desc, note.n_descsz, &p) && add_probe(u, &p))
			return -ENOMEM;
	}
	return 0;
}

/* Returns the next section of that name after scn. */
static Elf_Scn *next_section(struct usdt *u, Elf_Scn *scn, const char *want, GElf_Shdr *sh)
{
	size_t strings;

	if (elf_getshdrstrndx(u->elf, &strings))
		return NULL;
	while ((scn = elf_nextscn(u->elf, scn))) {
		const char *name =
			gelf_getshdr(scn, sh) ? elf_strptr(u->elf, strings, sh->sh_name) : NULL;

		if (name && strcmp(name, want) == 0)
			return scn;
	}
	return NULL;
}

static int read_sections(struct usdt *u)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;
	int ret = 0;

	if (next_section(u, NULL, ".stapsdt.base", &sh)) {
		u->has_base = true;
		u->base = sh.sh_addr;
	}
	/* A linked file has one; many that overlap would multiply the memory used. */
	for (int i = 0; i < SECTIONS_MAX && !ret; i++) {
		scn = next_section(u, scn, ".note.stapsdt", &sh);
		if (!scn)
			break;
		if (sh.sh_type == SHT_NOTE)
			ret = read_notes(u, elf_getdata(scn, NULL));
	}
	return ret;
}

struct usdt *usdt_open(const char *path, struct error *err)
{
	struct elf_file *file = elf_file_open(path, err);
	struct usdt *u = file ? calloc(1, sizeof(*u)) : NULL;
	GElf_Ehdr header;

	if (!u) {
		if (file)
			error_set(err, -ENOMEM, "out of memory");
		elf_file_free(file);
		return NULL;
	}
	u->file = file;
	u->elf = elf_file_handle(file);
	u->machine = gelf_getehdr(u->elf, &header) ? header.e_machine : EM_NONE;
	if (read_sections(u)) {
		error_set(err, -ENOMEM, "out of memory");
		usdt_free(u);
		return NULL;
	}
	return u;
}

void usdt_free(struct usdt *u)
{
	if (!u)
		return;
	elf_file_free(u->file);
	free(u->probes);
	free(u);
}

uint32_t usdt_count(const struct usdt *u)
{
	return u->count;
}

const struct usdt_probe *usdt_probe(const struct usdt *u, uint32_t index)
{
	return index < u->count ? &u->probes[index] : NULL;
}

/* An argument of a note. */
struct operand {
	char size[8];		/* "-4", "8f" */
	char text[OPERAND_MAX]; /* in assembler syntax */
};

/* Finds argument n. Arguments are separated by blanks outside of brackets. */
static int find_operand(const char *args, uint32_t n, struct operand *op)
{
	for (uint32_t i = 0;; i++) {
		const char *from, *at;
		int depth = 0;

		args += strspn(args, " ");
		if (!*args)
			return -ENOENT;
		for (from = args; *args && (depth > 0 || *args != ' '); args++)
			depth += (*args == '(' || *args == '[') - (*args == ')' || *args == ']');
		if (i != n)
			continue;
		at = memchr(from, '@', args - from);
		op->size[0] = 0;
		if (at && at - from < (int)sizeof(op->size))
			snprintf(op->size, sizeof(op->size), "%.*s", (int)(at - from), from);
		from = at ? at + 1 : from;
		snprintf(op->text, sizeof(op->text), "%.*s", (int)(args - from), from);
		return args - from < OPERAND_MAX ? 0 : -EOPNOTSUPP;
	}
}

/* Returns the kernel's type of such an argument; NULL if there is none, as for floating point. */
static const char *type_of(const char *size)
{
	static const char *const types[][2] = {
		{"1", ":u8"},  {"2", ":u16"},  {"4", ":u32"},  {"8", ":u64"},
		{"-1", ":s8"}, {"-2", ":s16"}, {"-4", ":s32"}, {"-8", ":s64"},
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(size, types[i][0]) == 0)
			return types[i][1];
	return NULL;
}

/* Returns the whole register; the type cuts it to the size of the argument. */
static const char *x86_register(const char *name, size_t len)
{
	static const char *const names[][5] = {
		{"ax", "rax", "eax", "ax", "al"},	{"bx", "rbx", "ebx", "bx", "bl"},
		{"cx", "rcx", "ecx", "cx", "cl"},	{"dx", "rdx", "edx", "dx", "dl"},
		{"si", "rsi", "esi", "si", "sil"},	{"di", "rdi", "edi", "di", "dil"},
		{"bp", "rbp", "ebp", "bp", "bpl"},	{"sp", "rsp", "esp", "sp", "spl"},
		{"r8", "r8", "r8d", "r8w", "r8b"},	{"r9", "r9", "r9d", "r9w", "r9b"},
		{"r10", "r10", "r10d", "r10w", "r10b"}, {"r11", "r11", "r11d", "r11w", "r11b"},
		{"r12", "r12", "r12d", "r12w", "r12b"}, {"r13", "r13", "r13d", "r13w", "r13b"},
		{"r14", "r14", "r14d", "r14w", "r14b"}, {"r15", "r15", "r15d", "r15w", "r15b"},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		for (size_t j = 1; j < 5; j++)
			if (strlen(names[i][j]) == len && memcmp(names[i][j], name, len) == 0)
				return names[i][0];
	return NULL;
}

/* Reads a whole number that ends at `end`. */
static bool number(const char *text, const char *end, long long *value)
{
	char *stop;

	errno = 0;
	*value = strtoll(text, &stop, 0);
	return stop == end && stop != text && !isspace((unsigned char)*text) && !errno;
}

static bool write_constant(const char *text, const char *end, char *out)
{
	long long value;

	if (!number(text, end, &value))
		return false;
	snprintf(out, OPERAND_MAX, "\\%lld", value);
	return true;
}

/* "symbol+8(%rip)". The kernel finds memory of the file by an offset, to which it adds the
 * difference between the probe's address and its offset. So that difference is subtracted here. */
static bool write_variable(struct usdt *u, const struct usdt_probe *p, const char *text,
			   const char *end, char *out)
{
	const char *sign = text + strcspn(text, "+-(");
	uint64_t addr;
	char name[OPERAND_MAX];
	long long addend = 0;

	snprintf(name, sizeof(name), "%.*s", (int)(sign - text), text);
	if ((sign != end && !number(sign, end, &addend)) || elf_file_address(u->file, name, &addr))
		return false;
	addr += addend - (p->addr + moved(u, p)) + p->offset;
	if ((int64_t)addr < 0)
		return false;
	snprintf(out, OPERAND_MAX, "@+0x%llx", (unsigned long long)addr);
	return true;
}

/* AT&T syntax: $5, %edi, 8(%rsp), variable(%rip). */
static bool fetch_x86(struct usdt *u, const struct usdt_probe *p, const char *text, char *out)
{
	const char *end = text + strlen(text), *open = strchr(text, '('), *reg;
	long long disp = 0;

	if (*text == '$')
		return write_constant(text + 1, end, out);
	if (*text == '%') {
		reg = x86_register(text + 1, strlen(text + 1));
		if (reg)
			snprintf(out, OPERAND_MAX, "%%%s", reg);
		return reg;
	}
	if (!open || open[1] != '%' || end[-1] != ')')
		return false;
	if (strcmp(open, "(%rip)") == 0)
		return write_variable(u, p, text, open, out);
	reg = x86_register(open + 2, end - open - 3);
	if (!reg || (open != text && !number(text, open, &disp)))
		return false;
	snprintf(out, OPERAND_MAX, "%+lld(%%%s)", disp, reg);
	return true;
}

static bool arm64_register(const char *name, int len, char *out, size_t size)
{
	char text[4];
	unsigned int n;
	int used = 0;

	snprintf(text, sizeof(text), "%.*s", len, name);
	if (strcmp(text, "sp") == 0)
		snprintf(out, size, "%%sp");
	else if (sscanf(text, "%*1[xw]%2u%n", &n, &used) == 1 && used == len && n <= 30)
		snprintf(out, size, "%%x%u", n);
	else
		return false;
	return true;
}

/* 5, x0, w0, sp, [sp], [sp, 8]. */
static bool fetch_arm64(const char *text, char *out)
{
	const char *end = text + strlen(text), *comma = strchr(text, ',');
	char base[8];
	long long disp = 0;

	if (*text != '[')
		return write_constant(text, end, out) ||
		       arm64_register(text, (int)(end - text), out, OPERAND_MAX);
	if (*--end != ']' ||
	    !arm64_register(text + 1, (int)((comma ? comma : end) - text - 1), base, sizeof(base)))
		return false;
	if (comma && !number(comma + 1 + strspn(comma + 1, " "), end, &disp))
		return false;
	snprintf(out, OPERAND_MAX, "%+lld(%s)", disp, base);
	return true;
}

static int apply_format(const char *format, const char *fetch, const char *type, char *out,
			size_t size, struct error *err)
{
	const char *hole = strstr(format, "%s");
	int len;

	if (!hole || strstr(hole + 2, "%s"))
		return error_set(err, -EINVAL, "'%s' needs exactly one %%s for the operand",
				 format);
	len = snprintf(out, size, "%.*s%s%s%s", (int)(hole - format), format, fetch, hole + 2,
		       strchr(format, ':') ? "" : type);
	return len < 0 || (size_t)len >= size ? error_set(err, -EINVAL, "'%s' is too long", format)
					      : 0;
}

int usdt_fetch_arg(struct usdt *u, uint32_t index, uint32_t arg, const char *format, char *out,
		   size_t size, struct error *err)
{
	const struct usdt_probe *p = usdt_probe(u, index);
	char fetch[OPERAND_MAX], plain[32];
	struct operand op;
	bool known = false;
	const char *type;
	int ret = p ? find_operand(p->args, arg, &op) : -ENOENT;

	if (ret == -ENOENT)
		return ret;
	type = type_of(op.size);
	if (!ret && type && (u->machine == EM_X86_64 || u->machine == EM_386))
		known = fetch_x86(u, p, op.text, fetch);
	else if (!ret && type && u->machine == EM_AARCH64)
		known = fetch_arm64(op.text, fetch);
	if (!known)
		return error_set(err, -EOPNOTSUPP,
				 "the kernel cannot fetch argument %u of %s:%s (%s@%s)", arg + 1,
				 p->provider, p->name, op.size, op.text);
	snprintf(plain, sizeof(plain), "arg%u=%%s", arg + 1);
	return apply_format(format ? format : plain, fetch, type, out, size, err);
}
