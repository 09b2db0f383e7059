/* SPDX-License-Identifier: GPL-2.0-only */
#include "push/kernel_symbols.h"
#include <stdio.h>
#include <string.h>
#include "wire/bytes.h"
#include "wire/own_records.h"

enum { PIECE = 60000, LINE_MAX_SIZE = 1024 };

/* Ends the piece that begins at `at`. */
static void end_piece(struct bytes *out, size_t at)
{
	struct wire_head head = {.header = {.type = WIRE_RECORD}};

	while (!out->failed && (out->size - at) % 8)
		bytes_add(out, "\n", 1);
	if (out->failed)
		return;
	memcpy(head.tag, WIRE_KSYMS, WIRE_TAG);
	head.header.size = out->size - at;
	memcpy(out->data + at, &head, sizeof(head));
}

/* Whether a line "ADDRESS TYPE NAME" is a function at an address that is not hidden. */
static bool is_function(const char *line)
{
	const char *type = strchr(line, ' ');

	return type && strchr("tTwW", type[1]) && strspn(line, "0") < (size_t)(type - line);
}

void kernel_symbols_add(struct bytes *out)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[LINE_MAX_SIZE];
	size_t at = out->size;

	if (!f)
		return;
	bytes_extend(out, sizeof(struct wire_head));
	while (fgets(line, sizeof(line), f)) {
		if (!is_function(line))
			continue;
		bytes_add(out, line, strlen(line));
		if (out->size - at < PIECE)
			continue;
		end_piece(out, at);
		at = out->size;
		bytes_extend(out, sizeof(struct wire_head));
	}
	fclose(f);
	if (out->size - at > sizeof(struct wire_head)) {
		end_piece(out, at);
		at = out->size;
		bytes_extend(out, sizeof(struct wire_head));
	}
	end_piece(out, at);
}
