/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call frame information of an ELF file (.eh_frame, else .debug_frame) as rows of eight bytes,
 * which programs in the kernel can search: from this address on, the caller's frame is found by
 * this rule. x86-64 only. The file is not trusted.
 */
#pragma once
#include <stdint.h>

/* How to find the CFA, which is the stack pointer of the caller. The return address is right below
 * it, but in FRAME_SIGNAL. */
enum frame_kind {
	FRAME_NONE,	 /* nothing is known: there may be a frame pointer */
	FRAME_SP,	 /* stack pointer + offset */
	FRAME_BP,	 /* frame pointer + offset */
	FRAME_PLT,	 /* stack pointer + 8, and + 16 from byte `offset` of 16 on */
	FRAME_BP_DEREF,	 /* the word at frame pointer + offset; the caller's pointer is at the
			    pointer */
	FRAME_SIGNAL,	 /* registers are where the kernel puts them for a signal */
	FRAME_OUTERMOST, /* there is no caller */
	FRAME_OTHER,	 /* a rule that has no form here */
};

/* Bits of a rule: 3 of the kind; 13: where the caller's frame pointer was saved, in words from the
 * CFA, 0: it is unchanged; 16: the offset, in words, in FRAME_PLT the byte. Both are signed. */
struct frame_row {
	uint32_t addr; /* in the file's address space */
	uint32_t rule;
};

struct frame_rows {
	struct frame_row *rows; /* sorted by address; to be freed by the caller */
	uint32_t count, room;
	uint32_t others; /* rows of FRAME_OTHER */
};

/* Reads the tables of a file. elf: an Elf *. Returns 0, or a negative errno: -ENOENT if it has
 * none, -EFBIG if there are too many rows. A part that cannot be read is left out. */
int frame_rows_read(void *elf, struct frame_rows *out);

static inline enum frame_kind frame_kind(uint32_t rule)
{
	return (enum frame_kind)(rule & 7);
}

/* Returns where the caller's frame pointer was saved, in bytes from the CFA. */
static inline int32_t frame_saved_bp(uint32_t rule)
{
	return ((int32_t)(rule << 16) >> 19) * 8;
}

/* Returns the offset in bytes; in FRAME_PLT divided by 8, it is the byte. */
static inline int32_t frame_offset(uint32_t rule)
{
	return ((int32_t)rule >> 16) * 8;
}
