/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call frame information of an ELF file (.eh_frame): how to get the registers of a function's
 * caller from those of the function, without frame pointers. x86-64 only. libdw reads the tables,
 * and its results are kept, so that a known frame costs a lookup and a few additions.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct cfi;

enum { CFI_REGISTERS = 17, CFI_BP = 6, CFI_SP = 7, CFI_PC = 16 }; /* DWARF's numbers */

#define CFI_RESTORED_BP (1u << 31) /* in used: the frame pointer is not that of the first frame */

struct cfi_frame {
	uint64_t reg[CFI_REGISTERS];
	uint32_t known; /* bit set */
	uint32_t used;	/* bit set: on which registers the frames up to here depend */
};

/* Reads a word of the stack, the saved value of a register or another one that the frames depend
 * on. Returns false if it is not there. */
struct cfi_memory {
	bool (*read)(const struct cfi_memory *m, uint64_t addr, int number, uint64_t *word);
};

enum cfi_result {
	CFI_CALLER,	/* the frame is now the caller's */
	CFI_OUTERMOST,	/* there is no caller */
	CFI_UNKNOWN,	/* nothing is known about this address */
	CFI_UNREADABLE, /* a word of the stack is missing */
};

/* Takes over the descriptor in any case. Returns NULL if it is not an ELF file, or without
 * memory. */
struct cfi *cfi_open(int fd);
void cfi_free(struct cfi *c);
uint64_t cfi_bytes(const struct cfi *c);

/* Steps out of the function with the byte at this offset of the file. *is_signal: the frame was
 * made by the kernel for a signal, so its caller was interrupted and did not call. */
enum cfi_result cfi_step(struct cfi *c, uint64_t offset, struct cfi_frame *frame,
			 const struct cfi_memory *memory, bool *is_signal);
/* Returns whether the function with this byte has set up a frame pointer there. */
bool cfi_has_pointer(struct cfi *c, uint64_t offset);
