/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Call frame information of one ELF file (.eh_frame): how the registers of a function's caller are
 * found from those of the function, without frame pointers. x86-64; libdw reads the tables, and
 * what it finds for an address is kept, so that a known frame costs a look-up and some additions.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct cfi;

enum { CFI_REGISTERS = 17, CFI_BP = 6, CFI_SP = 7, CFI_PC = 16 }; /* in DWARF's numbers */

struct cfi_frame {
	uint64_t reg[CFI_REGISTERS];
	uint32_t known; /* bit set */
};

/* Reads a word of the stack; false: it is not there. */
struct cfi_memory {
	bool (*read)(const struct cfi_memory *m, uint64_t addr, uint64_t *word);
};

enum cfi_result {
	CFI_CALLER,	/* the frame is now the caller's */
	CFI_OUTERMOST,	/* it has none */
	CFI_UNKNOWN,	/* nothing is known of this address */
	CFI_UNREADABLE, /* a word of the stack was not there */
};

/* Takes over the descriptor in any case. NULL: no such file, or no memory. */
struct cfi *cfi_open(int fd);
void cfi_free(struct cfi *c);
uint64_t cfi_bytes(const struct cfi *c);

/* One step out of the function that has the byte at this offset of the file. *is_signal: the frame
 * it was is the kernel's for a signal, whose caller was interrupted and did not call. */
enum cfi_result cfi_step(struct cfi *c, uint64_t offset, struct cfi_frame *frame,
			 const struct cfi_memory *memory, bool *is_signal);
