/* SPDX-License-Identifier: GPL-2.0-only */
#include "formats/symbol_pieces.h"
#include <stdlib.h>
#include <string.h>
#include "formats/addresses.h"

/* A kernel has 5 MiB of functions, in 100,000 lines. */
enum { TEXT_MAX = 32 << 20, TOTAL_MAX = 64 << 20, LINES_MAX = 1 << 20, ROOM_MIN = 1 << 16 };

void symbol_pieces_begin(struct symbol_pieces *p)
{
	free(p->text);
	p->text = NULL;
	p->size = p->room = p->lines = 0;
	p->is_refused = false;
}

static bool grow(struct symbol_pieces *p, size_t size)
{
	size_t room = p->room ? p->room : ROOM_MIN;
	char *grown;

	while (room < size)
		room *= 2;
	if (room == p->room)
		return true;
	grown = realloc(p->text, room);
	if (!grown)
		return false;
	p->text = grown;
	p->room = room;
	return true;
}

/* Adds the lines of a piece without the empty ones, which pad it. A 0 would end the text. */
static void copy_lines(struct symbol_pieces *p, const char *piece, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		char c = piece[i] ? piece[i] : '?';

		if (c == '\n' && (!p->size || p->text[p->size - 1] == '\n'))
			continue;
		p->lines += c == '\n';
		p->text[p->size++] = c;
	}
}

static uint64_t checksum_of(const struct symbol_pieces *p)
{
	uint64_t sum = 0xcbf29ce484222325;

	for (size_t i = 0; i < p->size; i++)
		sum = (sum ^ (uint8_t)p->text[i]) * 0x100000001b3;
	return sum;
}

/* Names of an earlier text are still in use, so the table keeps it. */
static void complete(struct symbol_pieces *p, struct addresses *table)
{
	uint64_t checksum = checksum_of(p);

	if (p->size && !p->is_refused && p->total + p->size <= TOTAL_MAX &&
	    !(p->total && checksum == p->checksum) &&
	    !addresses_replace_text(table, p->text, p->size)) {
		p->total += p->size;
		p->checksum = checksum;
	}
	symbol_pieces_begin(p);
}

void symbol_pieces_add(struct symbol_pieces *p, struct addresses *table, const char *piece,
		       size_t size)
{
	if (!size) {
		complete(p, table);
	} else if (p->is_refused || p->size + size > TEXT_MAX || p->lines > LINES_MAX ||
		   !grow(p, p->size + size)) {
		symbol_pieces_begin(p);
		p->is_refused = true;
	} else {
		copy_lines(p, piece, size);
	}
}
