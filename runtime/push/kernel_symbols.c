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
	struct wire_head head;

	while (!out->failed && (out->size - at) % 8)
		bytes_add(out, "\n", 1);
	if (out->failed)
		return;
	head = wire_head(WIRE_KSYMS, out->size - at);
	memcpy(out->data + at, &head, sizeof(head));
}

/* Whether a line "ADDRESS TYPE NAME" is a function at an address that is not hidden. */
static bool is_function(const char *line)
{
	const char *type = strchr(line, ' ');

	return type && strchr("tTwW", type[1]) && strspn(line, "0") < (size_t)(type - line);
}

/* Notes the bounds of the kernel's own code. */
static void note_bounds(const char *line, uint64_t *start, uint64_t *end)
{
	const char *name = strchr(line, ' ');

	if (!strcmp(name + 3, "_text\n"))
		*start = strtoull(line, NULL, 16);
	else if (!strcmp(name + 3, "_etext\n"))
		*end = strtoull(line, NULL, 16);
}

static void add_mapping(struct bytes *out, uint64_t start, uint64_t end, uint32_t words)
{
	struct {
		struct perf_event_header header;
		uint32_t pid, tid;
		uint64_t addr, len, pgoff;
		char name[24]; /* the symbol that tells perf whether the kernel was relocated */
	} rec = {
		.header = {.type = PERF_RECORD_MMAP,
			   .misc = PERF_RECORD_MISC_KERNEL,
			   .size = sizeof(rec) + words * 8},
		.pid = -1,
		.addr = start,
		.len = end - start,
		.pgoff = start,
		.name = "[kernel.kallsyms]_text",
	};

	bytes_add(out, &rec, sizeof(rec));
	bytes_extend(out, words * 8);
}

void kernel_symbols_add(struct bytes *out, uint32_t words)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	char line[LINE_MAX_SIZE];
	uint64_t start = 0, end = 0;
	size_t at = out->size;

	if (!f)
		return;
	bytes_extend(out, sizeof(struct wire_head));
	while (fgets(line, sizeof(line), f)) {
		if (!is_function(line))
			continue;
		note_bounds(line, &start, &end);
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
	if (start && start < end)
		add_mapping(out, start, end, words);
}
