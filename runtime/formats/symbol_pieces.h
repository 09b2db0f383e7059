/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Symbol pieces: the kernel symbols of a stream, which arrive as pieces of text and become part of
 * a table when they are complete. A stream that begins again brings the same symbols, unless its
 * kernel was booted in between. The memory is bounded, whatever a stream brings.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct addresses;

struct symbol_pieces {
	char *text;
	size_t size, room, lines;
	bool is_refused;   /* too much, or no memory */
	size_t total;	   /* bytes of all texts that the table got */
	uint64_t checksum; /* of the last of them */
};

/* The stream begins (again), or has ended: frees what is not complete. */
void symbol_pieces_begin(struct symbol_pieces *p);
/* Adds a piece. The last one is empty, and sets the text of the table. */
void symbol_pieces_add(struct symbol_pieces *p, struct addresses *table, const char *piece,
		       size_t size);
