/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Nearly every rule is "the word at this offset from the CFA" or "unchanged": those are stored in a
 * few bytes. Others are expressions, which are evaluated each time. The file is not trusted, so
 * their steps and their stack are bounded.
 */
#include "stacks/cfi.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <elfutils/libdw.h>

enum {
	MAX_SEGMENTS = 64,
	MAX_ROWS = 1 << 16,
	FIRST_ROWS = 64,
	MAX_STEPS = 256,
	MAX_STACK = 64,
};

enum rule { SAME, UNDEFINED, AT_CFA, IS_CFA, REGISTER, EXPRESSION };

/* How to find the registers of the caller at one address. */
struct row {
	uint64_t addr;	    /* 0: free */
	Dwarf_Frame *frame; /* kept if there are expressions */
	int64_t cfa_offset;
	uint8_t cfa_register; /* CFI_REGISTERS: the CFA is an expression */
	uint8_t return_register;
	bool known, is_signal;
	uint8_t rule[CFI_REGISTERS];
	int32_t offset[CFI_REGISTERS]; /* from the CFA; or the number of a register */
};

struct segment {
	uint64_t offset, size, addr;
};

struct cfi {
	int fd;
	Elf *elf;
	Dwarf_CFI *dwarf; /* NULL: the file has no tables */
	struct segment segments[MAX_SEGMENTS];
	uint32_t nr_segments;
	struct row *rows; /* hash table by address */
	uint32_t nr_rows, mask;
	uint64_t table_bytes;
};

static void read_segments(struct cfi *c)
{
	size_t count;
	GElf_Phdr ph;

	if (elf_getphdrnum(c->elf, &count))
		return;
	for (size_t i = 0; i < count && c->nr_segments < MAX_SEGMENTS; i++) {
		if (!gelf_getphdr(c->elf, (int)i, &ph))
			break;
		if (ph.p_type == PT_LOAD && (ph.p_flags & PF_X))
			c->segments[c->nr_segments++] =
				(struct segment){ph.p_offset, ph.p_filesz, ph.p_vaddr};
		if (ph.p_type == PT_LOAD && !(ph.p_flags & PF_X))
			c->table_bytes =
				ph.p_filesz; /* at most: one of the segments contains .eh_frame */
	}
}

struct cfi *cfi_open(int fd)
{
	struct cfi *c = calloc(1, sizeof(*c));
	GElf_Ehdr eh;

	elf_version(EV_CURRENT);
	if (c) {
		c->fd = fd;
		c->elf = elf_begin(fd, ELF_C_READ, NULL);
		c->rows = calloc(FIRST_ROWS, sizeof(*c->rows));
		c->mask = FIRST_ROWS - 1;
	} else if (fd >= 0) {
		close(fd);
	}
	if (!c || !c->rows || !c->elf || !gelf_getehdr(c->elf, &eh) || eh.e_machine != EM_X86_64) {
		cfi_free(c);
		return NULL;
	}
	read_segments(c);
	c->dwarf = dwarf_getcfi_elf(c->elf);
	return c;
}

static void forget_rows(struct cfi *c)
{
	for (uint32_t i = 0; i <= c->mask; i++)
		free(c->rows[i].frame);
	memset(c->rows, 0, ((size_t)c->mask + 1) * sizeof(*c->rows));
	c->nr_rows = 0;
}

void cfi_free(struct cfi *c)
{
	if (!c)
		return;
	if (c->rows)
		forget_rows(c);
	free(c->rows);
	if (c->dwarf)
		dwarf_cfi_end(c->dwarf);
	elf_end(c->elf);
	if (c->fd >= 0)
		close(c->fd);
	free(c);
}

uint64_t cfi_bytes(const struct cfi *c)
{
	return sizeof(*c) + ((uint64_t)c->mask + 1) * sizeof(*c->rows) +
	       (c->dwarf ? c->table_bytes : 0);
}

static bool find_address(const struct cfi *c, uint64_t offset, uint64_t *addr)
{
	for (uint32_t i = 0; i < c->nr_segments; i++) {
		const struct segment *s = &c->segments[i];

		if (offset >= s->offset && offset - s->offset < s->size) {
			*addr = offset - s->offset + s->addr;
			return true;
		}
	}
	return false;
}

/* Returns whether the expression is "register + offset". */
static bool is_register_offset(const Dwarf_Op *op, uint8_t *number, int64_t *offset)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*number = op->atom - DW_OP_breg0;
		*offset = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx && op->number < CFI_REGISTERS) {
		*number = (uint8_t)op->number;
		*offset = (int64_t)op->number2;
	} else {
		return false;
	}
	return *number < CFI_REGISTERS;
}

/* libdw describes rules as expressions; the simple ones always have the same form. */
static enum rule compile_rule(const Dwarf_Op *ops, size_t n, const Dwarf_Op *simple,
			      int32_t *offset)
{
	bool is_value = n && ops[n - 1].atom == DW_OP_stack_value;
	int64_t distance = 0;

	if (!n)
		return ops == simple ? UNDEFINED : SAME;
	if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < CFI_REGISTERS) {
		*offset = (int32_t)ops[0].number;
		return REGISTER;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa || n - is_value > 2)
		return EXPRESSION;
	if (n - is_value == 2) {
		if (ops[1].atom != DW_OP_plus_uconst)
			return EXPRESSION;
		distance = (int64_t)ops[1].number;
	}
	if (distance != (int32_t)distance)
		return EXPRESSION;
	*offset = (int32_t)distance;
	return is_value ? IS_CFA : AT_CFA;
}

static void compile_row(struct cfi *c, struct row *row)
{
	Dwarf_Op simple[3], *ops;
	bool expressions = false;
	size_t n;
	int number;

	if (!c->dwarf || dwarf_cfi_addrframe(c->dwarf, row->addr, &row->frame)) {
		row->frame = NULL;
		return;
	}
	number = dwarf_frame_info(row->frame, NULL, NULL, &row->is_signal);
	row->known = number >= 0 && number < CFI_REGISTERS &&
		     dwarf_frame_cfa(row->frame, &ops, &n) == 0 && n > 0;
	row->return_register = (uint8_t)number;
	if (row->known &&
	    (n != 1 || !is_register_offset(ops, &row->cfa_register, &row->cfa_offset))) {
		row->cfa_register = CFI_REGISTERS;
		expressions = true;
	}
	for (int i = 0; row->known && i < CFI_REGISTERS; i++) {
		row->known = dwarf_frame_register(row->frame, i, simple, &ops, &n) == 0;
		row->rule[i] =
			row->known ? compile_rule(ops, n, simple, &row->offset[i]) : UNDEFINED;
		expressions |= row->rule[i] == EXPRESSION;
	}
	if (!row->known || !expressions) {
		free(row->frame);
		row->frame = NULL;
	}
}

static struct row *find_slot(const struct cfi *c, uint64_t addr)
{
	uint32_t at = (uint32_t)(addr * 0x9e3779b97f4a7c15ULL >> 32) & c->mask;

	while (c->rows[at].addr && c->rows[at].addr != addr)
		at = (at + 1) & c->mask;
	return &c->rows[at];
}

static void grow(struct cfi *c)
{
	uint32_t count = c->mask + 1;
	struct row *old = c->rows, *rows = calloc(2 * (size_t)count, sizeof(*rows));

	if (!rows) {
		forget_rows(c);
		return;
	}
	c->rows = rows;
	c->mask = 2 * count - 1;
	for (uint32_t i = 0; i < count; i++)
		if (old[i].addr)
			*find_slot(c, old[i].addr) = old[i];
	free(old);
}

static const struct row *get_row(struct cfi *c, uint64_t addr)
{
	struct row *row = find_slot(c, addr);

	if (row->addr)
		return row;
	if (c->nr_rows >= MAX_ROWS)
		forget_rows(c);
	else if (c->nr_rows > c->mask / 2)
		grow(c);
	row = find_slot(c, addr);
	row->addr = addr;
	c->nr_rows++;
	compile_row(c, row);
	return row;
}

struct evaluation {
	struct cfi_frame *frame;
	const struct cfi_memory *memory;
	uint64_t cfa, stack[MAX_STACK];
	int depth;
	bool is_value; /* the result is the value itself, not its address */
	int number;    /* of the register that is looked for; CFI_PC: the CFA */
};

static bool push(struct evaluation *e, uint64_t value)
{
	if (e->depth == MAX_STACK)
		return false;
	e->stack[e->depth++] = value;
	return true;
}

static bool push_register(struct evaluation *e, uint64_t number, uint64_t offset)
{
	if (number < CFI_REGISTERS)
		e->frame->used |= 1u << number;
	return number < CFI_REGISTERS && e->frame->known >> number & 1 &&
	       push(e, e->frame->reg[number] + offset);
}

/* Executes an operation on the two topmost values. */
static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *out)
{
	switch (atom) {
	case DW_OP_plus:
		*out = a + b;
		return true;
	case DW_OP_minus:
		*out = a - b;
		return true;
	case DW_OP_mul:
		*out = a * b;
		return true;
	case DW_OP_and:
		*out = a & b;
		return true;
	case DW_OP_or:
		*out = a | b;
		return true;
	case DW_OP_xor:
		*out = a ^ b;
		return true;
	case DW_OP_shl:
		*out = b < 64 ? a << b : 0;
		return true;
	case DW_OP_shr:
		*out = b < 64 ? a >> b : 0;
		return true;
	case DW_OP_eq:
		*out = a == b;
		return true;
	case DW_OP_ne:
		*out = a != b;
		return true;
	case DW_OP_ge:
		*out = (int64_t)a >= (int64_t)b;
		return true;
	case DW_OP_gt:
		*out = (int64_t)a > (int64_t)b;
		return true;
	case DW_OP_le:
		*out = (int64_t)a <= (int64_t)b;
		return true;
	case DW_OP_lt:
		*out = (int64_t)a < (int64_t)b;
		return true;
	default:
		return false;
	}
}

static bool apply(struct evaluation *e, const Dwarf_Op *op)
{
	uint64_t *top;

	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(e, op->atom - DW_OP_lit0);
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31)
		return push_register(e, op->atom - DW_OP_breg0, op->number);
	switch (op->atom) {
	case DW_OP_call_frame_cfa:
		return push(e, e->cfa);
	case DW_OP_bregx:
		return push_register(e, op->number, op->number2);
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return push(e, op->number);
	case DW_OP_nop:
		return true;
	}
	if (!e->depth)
		return false;
	top = &e->stack[e->depth - 1];
	switch (op->atom) {
	case DW_OP_stack_value:
		e->is_value = true;
		return true;
	case DW_OP_plus_uconst:
		*top += op->number;
		return true;
	case DW_OP_deref:
		return e->memory->read(e->memory, *top, e->number, top);
	case DW_OP_dup:
		return push(e, *top);
	case DW_OP_drop:
		e->depth--;
		return true;
	}
	if (e->depth < 2 || !binary(op->atom, top[-1], top[0], &top[-1]))
		return false;
	e->depth--;
	return true;
}

static bool evaluate(struct evaluation *e, const Dwarf_Op *ops, size_t n, uint64_t *out)
{
	if (n > MAX_STEPS)
		return false;
	e->depth = 0;
	e->is_value = false;
	for (size_t i = 0; i < n; i++)
		if (!apply(e, &ops[i]))
			return false;
	if (!e->depth)
		return false;
	*out = e->stack[e->depth - 1];
	return true;
}

static bool find_cfa(const struct row *row, struct evaluation *e)
{
	Dwarf_Op *ops;
	size_t n;

	if (row->cfa_register == CFI_REGISTERS)
		return dwarf_frame_cfa(row->frame, &ops, &n) == 0 && evaluate(e, ops, n, &e->cfa);
	e->frame->used |= 1u << row->cfa_register;
	e->cfa = e->frame->reg[row->cfa_register] + (uint64_t)row->cfa_offset;
	return e->frame->known >> row->cfa_register & 1;
}

static bool evaluate_register(const struct row *row, int number, struct evaluation *e,
			      uint64_t *out)
{
	Dwarf_Op simple[3], *ops;
	size_t n;

	return dwarf_frame_register(row->frame, number, simple, &ops, &n) == 0 &&
	       evaluate(e, ops, n, out) &&
	       (e->is_value || e->memory->read(e->memory, *out, e->number, out));
}

/* Gets the caller's value of a register. Returns false if it is lost. */
static bool find_register(const struct row *row, int number, struct evaluation *e, uint64_t *out)
{
	uint64_t at = e->cfa + (uint64_t)(int64_t)row->offset[number];

	switch (row->rule[number]) {
	case AT_CFA:
		return e->memory->read(e->memory, at, e->number, out);
	case IS_CFA:
		*out = at;
		return true;
	case SAME:
		*out = e->frame->reg[number];
		return e->frame->known >> number & 1;
	case REGISTER:
		e->frame->used |= 1u << row->offset[number];
		*out = e->frame->reg[row->offset[number]];
		return e->frame->known >> row->offset[number] & 1;
	case EXPRESSION:
		return evaluate_register(row, number, e, out);
	default:
		return false;
	}
}

enum cfi_result cfi_step(struct cfi *c, uint64_t offset, struct cfi_frame *frame,
			 const struct cfi_memory *memory, bool *is_signal)
{
	struct evaluation e = {.frame = frame, .memory = memory, .number = CFI_PC};
	struct cfi_frame caller = {0};
	const struct row *row;
	uint64_t addr = 0;

	if (!find_address(c, offset, &addr))
		return CFI_UNKNOWN;
	row = get_row(c, addr);
	if (!row->known)
		return CFI_UNKNOWN;
	*is_signal = row->is_signal;
	if (row->rule[row->return_register] == UNDEFINED)
		return CFI_OUTERMOST;
	if (!find_cfa(row, &e))
		return CFI_UNREADABLE;
	for (int i = 0; i < CFI_REGISTERS; i++) {
		e.number = i == row->return_register ? CFI_PC : i;
		if (find_register(row, i, &e, &caller.reg[i]))
			caller.known |= 1u << i;
	}
	if (row->return_register != CFI_PC) {
		caller.reg[CFI_PC] = caller.reg[row->return_register];
		caller.known |= (caller.known >> row->return_register & 1) << CFI_PC;
	}
	if (!(caller.known >> CFI_PC & 1))
		return CFI_UNREADABLE;
	caller.used = frame->used | (row->rule[CFI_BP] == SAME ? 0 : CFI_RESTORED_BP);
	*frame = caller;
	return CFI_CALLER;
}

bool cfi_has_pointer(struct cfi *c, uint64_t offset)
{
	const struct row *row;
	uint64_t addr = 0;

	if (!find_address(c, offset, &addr))
		return false;
	row = get_row(c, addr);
	return row->known && row->cfa_register == CFI_BP && row->cfa_offset == 16;
}
