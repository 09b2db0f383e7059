/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reads the numbers of DWARF's sections one after the other. What is beyond the end is 0, and marks
 * the cursor as bad.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct cursor {
	const uint8_t *at, *end;
	const uint8_t *section;
	uint64_t addr; /* of the section */
	bool is_bad;
};

/* Takes a number of 1 to 8 bytes. */
uint64_t cursor_take(struct cursor *c, uint32_t size);
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);
/* Takes the next n bytes as a cursor of their own. */
struct cursor cursor_part(struct cursor *c, uint64_t n);
/* Takes an address. encoding: DW_EH_PE_*, section 10.5.1 of the Linux Standard Base; one that is
 * relative to anything but its own place is bad. */
uint64_t cursor_pointer(struct cursor *c, uint8_t encoding);
