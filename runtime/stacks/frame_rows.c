/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * DWARF 5, section 6.4, and for .eh_frame "Exception Frames" in the Linux Standard Base. Each
 * function's instructions are executed once, and a row is added where a rule changes.
 */
#include "stacks/frame_rows.h"

#include <dwarf.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "stacks/cursor.h"

enum {
	BP = 6, /* DWARF's numbers of registers */
	SP = 7,
	PC = 16,
	MAX_ROWS = 1 << 22,
	MAX_REMEMBERED = 16,
	MAX_CIE = 4096, /* bytes: it is read again for each FDE that follows one of another CIE */
	PLT_SIZE = 11,
};

enum { CFA_GNU_NEGATIVE_OFFSET = 0x2f }; /* <dwarf.h> lacks it */

enum where { SAME, AT_CFA, UNDEFINED, EXPRESSION };

struct saved {
	enum where where;
	int64_t offset;		/* from the CFA */
	uint8_t register_, low; /* of an expression "register + low"; 0xff: another one */
};

struct state {
	enum frame_kind kind; /* FRAME_SP: register + offset */
	uint64_t reg;
	int64_t offset;
	struct saved bp, pc, other;
};

struct cie {
	const uint8_t *at; /* NULL: none */
	uint64_t code_align, pc;
	int64_t data_align;
	uint8_t encoding;
	bool has_length, is_signal, is_known;
	struct state state;
};

struct reader {
	struct frame_rows *out;
	bool is_debug; /* .debug_frame */
	struct cie cie;
	struct state remembered[MAX_REMEMBERED];
	uint32_t nr_remembered;
	uint32_t function; /* its first row */
	int error;
};

/* Rules ------------------------------------------------------------------------------------------
 */

static uint32_t pack(enum frame_kind kind, int64_t offset, int64_t saved)
{
	if (offset % 8 || saved % 8 || offset / 8 != (int16_t)(offset / 8) || saved / 8 < -4096 ||
	    saved / 8 > 4095)
		return FRAME_OTHER;
	return (uint32_t)kind | ((uint32_t)(saved / 8) & 0x1fff) << 3 |
	       (uint32_t)(offset / 8) << 16;
}

static bool is_at(const struct saved *s, uint8_t reg, uint8_t low)
{
	return s->where == EXPRESSION && s->register_ == reg && s->low == low;
}

static uint32_t rule_of(const struct state *s, bool is_signal)
{
	enum frame_kind kind = s->kind;
	int64_t saved = s->bp.where == AT_CFA ? s->bp.offset : 0;

	if (s->pc.where == UNDEFINED)
		return FRAME_OUTERMOST;
	if (kind == FRAME_SIGNAL) /* struct rt_sigframe: rbp, rsp and rip of its sigcontext */
		return is_signal && s->offset == 160 && is_at(&s->bp, SP, 120) &&
				       is_at(&s->pc, SP, 168)
			       ? FRAME_SIGNAL
			       : FRAME_OTHER;
	if (s->pc.where != AT_CFA || s->pc.offset != -8)
		return FRAME_OTHER;
	if (kind == FRAME_PLT)
		return s->bp.where == SAME ? pack(kind, 8 * s->offset, 0) : FRAME_OTHER;
	if (kind == FRAME_BP_DEREF)
		return is_at(&s->bp, BP, 0) ? pack(kind, s->offset, 0) : FRAME_OTHER;
	if (kind != FRAME_SP || s->bp.where == EXPRESSION || (s->reg != SP && s->reg != BP))
		return FRAME_OTHER;
	return pack(s->reg == SP ? FRAME_SP : FRAME_BP, s->offset, saved);
}

static void add_row(struct reader *r, uint64_t addr, uint32_t rule)
{
	struct frame_rows *out = r->out;
	struct frame_row *rows;

	if (addr > UINT32_MAX || r->error)
		return;
	if (out->count > r->function) {
		rows = &out->rows[out->count - 1];
		if (rows->rule == rule)
			return;
		if (rows->addr == addr) {
			rows->rule = rule;
			return;
		}
	}
	if (out->count == out->room) {
		uint32_t room = out->room ? 2 * out->room : 1024;

		rows = room <= MAX_ROWS ? realloc(out->rows, room * sizeof(*rows)) : NULL;
		if (!rows) {
			r->error = room <= MAX_ROWS ? -ENOMEM : -EFBIG;
			return;
		}
		out->rows = rows;
		out->room = room;
	}
	out->rows[out->count++] = (struct frame_row){(uint32_t)addr, rule};
}

/* Instructions -----------------------------------------------------------------------------------
 */

/* Reads "register + low", a signed byte. */
static void take_address(struct cursor expr, struct saved *s)
{
	uint64_t op = cursor_take(&expr, 1);
	int64_t low = cursor_sleb(&expr);

	s->where = EXPRESSION;
	s->register_ = 0xff;
	if (op < DW_OP_breg0 || op > DW_OP_breg31 || expr.is_bad || low < 0 || low > 255)
		return;
	if (expr.at == expr.end) {
		s->register_ = (uint8_t)(op - DW_OP_breg0);
		s->low = (uint8_t)low;
	}
}

static void set_cfa_expression(struct state *s, struct cursor expr)
{
	/* sp + 8 + ((pc & 15) >= n) * 8, as linkers write it for stubs; n is in the 7th byte */
	static const uint8_t plt[PLT_SIZE] = {0x77, 8,	  0x80, 0,    0x3f, 0x1a,
					      0,    0x2a, 0x33, 0x24, 0x22};
	const uint8_t *at = expr.at;
	uint64_t op;
	int64_t low;

	s->kind = FRAME_OTHER;
	if (expr.end - at == PLT_SIZE && !memcmp(at, plt, 6) &&
	    !memcmp(at + 7, plt + 7, PLT_SIZE - 7) && at[6] >= DW_OP_lit0 && at[6] <= DW_OP_lit31) {
		s->kind = FRAME_PLT;
		s->offset = at[6] - DW_OP_lit0;
		return;
	}
	op = cursor_take(&expr, 1);
	low = cursor_sleb(&expr);
	if (expr.is_bad || expr.end - expr.at != 1 || *expr.at != DW_OP_deref)
		return;
	if (op == DW_OP_breg6)
		s->kind = FRAME_BP_DEREF;
	else if (op == DW_OP_breg7)
		s->kind = FRAME_SIGNAL;
	s->offset = low;
}

static struct saved *saved_of(const struct reader *r, struct state *s, uint64_t reg)
{
	return reg == BP ? &s->bp : reg == r->cie.pc ? &s->pc : &s->other;
}

static void set_saved(const struct reader *r, struct state *s, uint64_t reg, enum where where,
		      int64_t offset)
{
	*saved_of(r, s, reg) = (struct saved){.where = where, .offset = offset};
}

static void restore(const struct reader *r, struct state *s, uint64_t reg)
{
	struct state initial = r->cie.state;

	*saved_of(r, s, reg) = *saved_of(r, &initial, reg);
}

static void set_cfa(struct state *s, uint64_t reg, int64_t offset)
{
	s->kind = FRAME_SP;
	s->reg = reg;
	s->offset = offset;
}

/* Changes the register or its offset. An expression has neither. */
static void change_cfa(struct state *s, uint64_t reg, int64_t offset)
{
	if (s->kind == FRAME_SP)
		set_cfa(s, reg, offset);
	else
		s->kind = FRAME_OTHER;
}

static int64_t factored(const struct reader *r, int64_t value)
{
	return (int64_t)((uint64_t)value * (uint64_t)r->cie.data_align);
}

/* Executes an instruction that sets a rule. */
static void set_rule(struct reader *r, struct cursor *c, struct state *s, uint8_t op)
{
	uint64_t reg = 0;

	if (op != DW_CFA_def_cfa_offset && op != DW_CFA_def_cfa_offset_sf &&
	    op != DW_CFA_def_cfa_expression)
		reg = cursor_uleb(c);
	switch (op) {
	case DW_CFA_def_cfa:
		set_cfa(s, reg, (int64_t)cursor_uleb(c));
		break;
	case DW_CFA_def_cfa_sf:
		set_cfa(s, reg, factored(r, cursor_sleb(c)));
		break;
	case DW_CFA_def_cfa_register:
		change_cfa(s, reg, s->offset);
		break;
	case DW_CFA_def_cfa_offset:
		change_cfa(s, s->reg, (int64_t)cursor_uleb(c));
		break;
	case DW_CFA_def_cfa_offset_sf:
		change_cfa(s, s->reg, factored(r, cursor_sleb(c)));
		break;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(s, cursor_part(c, cursor_uleb(c)));
		break;
	case DW_CFA_offset_extended:
		set_saved(r, s, reg, AT_CFA, factored(r, (int64_t)cursor_uleb(c)));
		break;
	case DW_CFA_offset_extended_sf:
		set_saved(r, s, reg, AT_CFA, factored(r, cursor_sleb(c)));
		break;
	case CFA_GNU_NEGATIVE_OFFSET:
		set_saved(r, s, reg, AT_CFA, factored(r, (int64_t)-cursor_uleb(c)));
		break;
	case DW_CFA_restore_extended:
		restore(r, s, reg);
		break;
	case DW_CFA_undefined:
	case DW_CFA_same_value:
		set_saved(r, s, reg, op == DW_CFA_undefined ? UNDEFINED : SAME, 0);
		break;
	case DW_CFA_expression:
		take_address(cursor_part(c, cursor_uleb(c)), saved_of(r, s, reg));
		break;
	default: /* another register, or a value instead of a place */
		if (op == DW_CFA_val_expression)
			cursor_part(c, cursor_uleb(c));
		else
			cursor_uleb(c);
		*saved_of(r, s, reg) = (struct saved){.where = EXPRESSION, .register_ = 0xff};
	}
}

/* Executes an instruction that goes on to another address. Returns false if it is none. */
static bool advance(struct reader *r, struct cursor *c, uint8_t op, uint64_t *addr)
{
	static const uint8_t sizes[] = {[DW_CFA_advance_loc1] = 1,
					[DW_CFA_advance_loc2] = 2,
					[DW_CFA_advance_loc4] = 4,
					[DW_CFA_MIPS_advance_loc8] = 8};
	uint8_t size = op < sizeof(sizes) ? sizes[op] : 0;

	if (op == DW_CFA_set_loc)
		*addr = cursor_pointer(c, r->cie.encoding);
	else if (size || op >> 6 == 1)
		*addr += (size ? cursor_take(c, size) : op & 0x3f) * r->cie.code_align;
	else
		return false;
	return true;
}

static void execute(struct reader *r, struct cursor *c, struct state *s, uint64_t addr,
		    uint64_t end, bool has_rows)
{
	while (c->at < c->end && !c->is_bad) {
		uint8_t op = (uint8_t)cursor_take(c, 1);
		uint64_t next = addr;

		if (advance(r, c, op, &next)) {
			if (has_rows && next > addr)
				add_row(r, addr, rule_of(s, r->cie.is_signal));
			if (next < addr || next >= end)
				return;
			addr = next;
		} else if (op >> 6 == 2) {
			set_saved(r, s, op & 0x3f, AT_CFA, factored(r, (int64_t)cursor_uleb(c)));
		} else if (op >> 6 == 3) {
			restore(r, s, op & 0x3f);
		} else if (op == DW_CFA_remember_state) {
			if (r->nr_remembered == MAX_REMEMBERED)
				c->is_bad = true;
			else
				r->remembered[r->nr_remembered++] = *s;
		} else if (op == DW_CFA_restore_state) {
			if (r->nr_remembered)
				*s = r->remembered[--r->nr_remembered];
			else
				c->is_bad = true;
		} else if (op == DW_CFA_GNU_args_size) {
			cursor_uleb(c);
		} else if ((op >= DW_CFA_offset_extended && op <= DW_CFA_val_expression) ||
			   op == CFA_GNU_NEGATIVE_OFFSET) {
			set_rule(r, c, s, op);
		} else if (op != DW_CFA_nop && op != DW_CFA_GNU_window_save) {
			c->is_bad = true;
		}
	}
	if (has_rows)
		add_row(r, addr, c->is_bad ? (uint32_t)FRAME_OTHER : rule_of(s, r->cie.is_signal));
}

/* Entries ----------------------------------------------------------------------------------------
 */

/* Reads what the letters of a CIE's augmentation stand for. */
static void read_augmentation(struct cie *cie, struct cursor *c, const char *letters)
{
	struct cursor part;

	if (letters[0] != 'z') {
		cie->is_known = !letters[0];
		return;
	}
	cie->has_length = true;
	part = cursor_part(c, cursor_uleb(c));
	for (letters++; *letters && !part.is_bad; letters++) {
		uint8_t encoding = strchr("RPL", *letters) ? (uint8_t)cursor_take(&part, 1) : 0;

		if (*letters == 'R')
			cie->encoding = encoding;
		else if (*letters == 'P')
			cursor_pointer(&part, encoding & 0x0f);
		else if (*letters == 'S')
			cie->is_signal = true;
		else if (!strchr("LB", *letters))
			return; /* what follows has an unknown meaning, but also a known length */
	}
	cie->is_known = !part.is_bad;
}

/* Reads the CIE that begins at c. */
static void read_cie(struct reader *r, struct cursor c)
{
	struct cie *cie = &r->cie;
	const char *letters;
	uint64_t size, version;
	const uint8_t *nul;
	bool is_long;

	*cie = (struct cie){.at = c.at, .encoding = DW_EH_PE_absptr};
	size = cursor_take(&c, 4);
	is_long = size == UINT32_MAX;
	if (is_long)
		size = cursor_take(&c, 8);
	if (size > MAX_CIE)
		return;
	c = cursor_part(&c, size);
	cursor_take(&c, is_long && r->is_debug ? 8 : 4);
	version = cursor_take(&c, 1);
	nul = c.at < c.end ? memchr(c.at, 0, (size_t)(c.end - c.at)) : NULL;
	if (!nul || (version != 1 && version != 3 && version != 4))
		return;
	letters = (const char *)c.at;
	c.at = nul + 1;
	if (version == 4)
		cursor_take(&c, 2);
	cie->code_align = cursor_uleb(&c);
	cie->data_align = cursor_sleb(&c);
	cie->pc = version == 1 ? cursor_take(&c, 1) : cursor_uleb(&c);
	read_augmentation(cie, &c, letters);
	cie->state = (struct state){.kind = FRAME_OTHER};
	r->nr_remembered = 0;
	execute(r, &c, &cie->state, 0, UINT64_MAX, false);
	cie->is_known &= !c.is_bad;
}

static void read_fde(struct reader *r, struct cursor c)
{
	const struct cie *cie = &r->cie;
	struct state s = cie->state;
	uint64_t addr = cursor_pointer(&c, cie->encoding);
	uint64_t size = cursor_pointer(&c, cie->encoding & 0x0f);

	if (cie->has_length)
		cursor_part(&c, cursor_uleb(&c));
	if (c.is_bad || !size || addr + size > UINT32_MAX || addr + size < addr)
		return;
	r->nr_remembered = 0;
	r->function = r->out->count;
	execute(r, &c, &s, addr, addr + size, true);
	add_row(r, addr + size, FRAME_NONE);
}

/* Reads the entry at c, and goes on to the next one. Returns false at the end. */
static bool read_entry(struct reader *r, struct cursor *c)
{
	uint64_t size = cursor_take(c, 4), id, cie;
	const uint8_t *field;
	struct cursor entry;
	bool is_long = size == UINT32_MAX;

	if (is_long)
		size = cursor_take(c, 8);
	if (c->is_bad || (!size && !r->is_debug))
		return false;
	entry = cursor_part(c, size);
	field = entry.at;
	id = cursor_take(&entry, is_long && r->is_debug ? 8 : 4);
	if (entry.is_bad || c->is_bad)
		return !c->is_bad;
	if (r->is_debug ? id == (is_long ? UINT64_MAX : UINT32_MAX) : !id)
		return true;
	cie = r->is_debug ? id : (uint64_t)(field - c->section) - id;
	if (cie >= (uint64_t)(c->end - c->section))
		return true;
	if (r->cie.at != c->section + cie) {
		struct cursor at = *c;

		at.at = c->section + cie;
		read_cie(r, at);
	}
	if (r->cie.is_known)
		read_fde(r, entry);
	return !r->error;
}

static int by_address(const void *a, const void *b)
{
	const struct frame_row *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return (frame_kind(x->rule) != FRAME_NONE) - (frame_kind(y->rule) != FRAME_NONE);
}

/* Sorts the rows, and leaves one for each address at which something changes. */
static void sort(struct frame_rows *out)
{
	uint32_t n = 0;
	bool is_sorted = true;

	for (uint32_t i = 1; i < out->count && is_sorted; i++)
		is_sorted = by_address(&out->rows[i - 1], &out->rows[i]) <= 0;
	if (!is_sorted)
		qsort(out->rows, out->count, sizeof(*out->rows), by_address);
	for (uint32_t i = 0; i < out->count; i++) {
		if (i + 1 < out->count && out->rows[i + 1].addr == out->rows[i].addr)
			continue;
		if (n && out->rows[n - 1].rule == out->rows[i].rule)
			continue;
		out->others += frame_kind(out->rows[i].rule) == FRAME_OTHER;
		out->rows[n++] = out->rows[i];
	}
	out->count = n;
}

static Elf_Data *find_section(Elf *elf, const char *name, uint64_t *addr)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;
		const char *its;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
			continue;
		its = elf_strptr(elf, names, sh.sh_name);
		if (!its || strcmp(its, name))
			continue;
		if (sh.sh_flags & SHF_COMPRESSED && elf_compress(scn, 0, 0) < 0)
			return NULL;
		*addr = sh.sh_addr;
		return elf_rawdata(scn, NULL);
	}
	return NULL;
}

int frame_rows_read(void *elf, struct frame_rows *out)
{
	struct reader r = {.out = out};
	uint64_t addr = 0;
	Elf_Data *data = find_section(elf, ".eh_frame", &addr);
	struct cursor c;

	*out = (struct frame_rows){0};
	if (!data || data->d_size <= 4) {
		r.is_debug = true;
		data = find_section(elf, ".debug_frame", &addr);
	}
	if (!data || !data->d_buf)
		return -ENOENT;
	c = (struct cursor){.at = data->d_buf, .section = data->d_buf, .addr = addr};
	c.end = c.at + data->d_size;
	while (c.at < c.end && read_entry(&r, &c))
		;
	if (!r.error && out->count)
		sort(out);
	if (!r.error && out->count)
		return 0;
	free(out->rows);
	out->rows = NULL;
	return r.error ? r.error : -ENOENT;
}
