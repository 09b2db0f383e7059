/* SPDX-License-Identifier: GPL-2.0-only */
/* Data that traced processes control. The first byte selects a mangled name, a list of compiled
 * code, records of mappings, or an ELF file, of which all parts are read. Seeds without that byte
 * are read as ELF files. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <libelf.h>
#include <linux/perf_event.h>
#include "stacks/cfi.h"
#include "stacks/frame_rows.h"
#include "symbols/demangle.h"
#include "stacks/maps.h"
#include "symbols/symbols.h"

enum { LIMIT = 1 << 20 };

static volatile uint64_t sink;

const char *__lsan_default_suppressions(void);

/* libelf 0.188 leaks the bytes of a section of names that it then refuses. */
const char *__lsan_default_suppressions(void)
{
	return "leak:elf_strptr\nleak:libelf.so";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_elf(const uint8_t *data, size_t size)
{
	struct symbols *s = symbols_new(false, NAMES_FULL);
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct symbol symbol;
	char path[64];
	uint32_t file;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	file = symbols_add(s, &(struct symbols_file){.path = path});
	for (uint64_t at = 0; at < size + 64; at += 1 + size / 512)
		if (symbols_find(s, file, at, &symbol))
			sink += strlen(symbol.name) + symbol.offset;
	symbols_free(s);
	close(fd);
}

static bool read_word(const struct cfi_memory *m, uint64_t addr, int number, uint64_t *word)
{
	(void)m;
	(void)number;
	*word = addr ^ addr >> 7;
	return addr % 3;
}

/* The tables for unwinding functions. */
static void read_tables(const uint8_t *data, size_t size)
{
	const struct cfi_memory memory = {read_word};
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct cfi *c;
	bool is_signal;

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	c = cfi_open(fd);
	for (uint64_t at = 0; c && at < size; at += 1 + size / 512) {
		struct cfi_frame frame = {.reg = {1, 2, 3, at, 0x7fff0000}, .known = 0x1ffff};

		for (int i = 0; i < 4; i++)
			if (cfi_step(c, at, &frame, &memory, &is_signal) != CFI_CALLER)
				break;
		sink += frame.reg[CFI_PC];
	}
	cfi_free(c);
}

/* The same tables as rows for programs in the kernel. */
static void read_rows(const uint8_t *data, size_t size)
{
	Elf *elf = elf_memory((char *)data, size); // NOLINT: it only reads
	struct frame_rows rows;

	if (elf && !frame_rows_read(elf, &rows)) {
		for (uint32_t i = 1; i < rows.count; i++)
			if (rows.rows[i].addr <= rows.rows[i - 1].addr)
				abort();
		free(rows.rows);
	}
	elf_end(elf);
}

static void read_name(const uint8_t *data, size_t size)
{
	static char out[1 << 16];
	char *name = strndup((const char *)data, size);

	for (int style = NAMES_SHORT; style <= NAMES_MANGLED; style++) {
		size_t len = demangle(name, style, out, sizeof(out));

		if (len && (len >= sizeof(out) || out[len]))
			abort();
	}
	free(name);
}

static void read_jit_map(struct maps *m, const uint8_t *data, size_t size)
{
	char path[64];
	const char *from;
	struct symbol symbol;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	for (int part = 1; part < 3; part++) {
		FILE *file = fopen(path, "w");

		if (!file || fwrite(data, 1, size * part / 2, file) != size * part / 2)
			abort();
		fclose(file);
		for (uint64_t at = 0; at < 1 << 16; at += 101)
			if (maps_find_jit(m, getpid(), at, &symbol, &from))
				sink += strlen(symbol.name) + symbol.offset + from[0];
	}
	unlink(path);
}

/* Each record: type, misc, size, then size bytes. */
static void read_records(struct maps *m, const uint8_t *data, size_t size)
{
	struct place place;
	double time = 0;

	while (size > 4) {
		size_t len = data[3] < size - 4 ? data[3] : size - 4;
		uint8_t *copy = malloc(len + 1);

		memcpy(copy, data + 4, len);
		maps_record(m, data[0] % 20, (uint16_t)(data[1] | data[2] << 8), copy,
			    (uint32_t)len, time++);
		free(copy);
		sink += maps_space(m, data[2], time - data[1]);
		for (uint32_t space = 0; space < 8; space++)
			sink += maps_find(m, space, data[1] << 8, &place) + place.offset;
		if (data[0] == 255)
			maps_forget_spaces(m);
		data += 4 + len;
		size -= 4 + len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbols *s;
	struct maps *m;

	if (!size || size > LIMIT)
		return 0;
	if (data[0] == 'n') {
		read_name(data + 1, size - 1);
	} else if (data[0] == 'j' || data[0] == 'm') {
		s = symbols_new(false, NAMES_SHORT);
		m = maps_new(s, false);
		(data[0] == 'j' ? read_jit_map : read_records)(m, data + 1, size - 1);
		maps_free(m);
		symbols_free(s);
	} else {
		read_elf(data, size);
		read_tables(data, size);
		read_rows(data, size);
	}
	return 0;
}
