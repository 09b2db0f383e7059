/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A debug file of another program would give wrong names. It must have the program's build id or,
 * if one of them has none, the checksum that the program contains.
 */
#include "symbols/debugfile.h"

#include <errno.h>
#include <gelf.h>
#include <limits.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbols/debuginfod.h"
#include "symbols/process_file.h"

enum {
	UNPACKED_MAX = 128 << 20,
	UNPACK_MEMORY = 64 << 20, /* for xz; enough for -9 */
	BLOCK = 64 << 10,
};

struct wanted {
	const char *root;
	uint8_t id[BUILD_ID_MAX];
	uint32_t id_size;
	const char *link; /* file name in .gnu_debuglink */
	uint32_t crc;
};

static uint32_t find_build_id(const Elf_Data *data, uint8_t id[BUILD_ID_MAX])
{
	size_t at = 0, name, desc;
	GElf_Nhdr note;

	while (data && (at = gelf_getnote((Elf_Data *)data, at, &note, &name, &desc)) > 0)
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp((char *)data->d_buf + name, "GNU", 4) == 0 && note.n_descsz > 0 &&
		    note.n_descsz <= BUILD_ID_MAX) {
			memcpy(id, (char *)data->d_buf + desc, note.n_descsz);
			return note.n_descsz;
		}
	return 0;
}

uint32_t debugfile_build_id(Elf *elf, uint8_t id[BUILD_ID_MAX])
{
	Elf_Scn *scn = NULL;
	uint32_t size = 0;
	GElf_Shdr sh;

	while (!size && (scn = elf_nextscn(elf, scn)))
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_NOTE)
			size = find_build_id(elf_getdata(scn, NULL), id);
	return size;
}

static Elf_Data *find_section(Elf *elf, const char *name)
{
	Elf_Scn *scn = NULL;
	size_t strings;
	GElf_Shdr sh;

	if (elf_getshdrstrndx(elf, &strings))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *found =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, strings, sh.sh_name) : NULL;

		if (found && strcmp(found, name) == 0)
			return sh.sh_type == SHT_NOBITS ? NULL : elf_rawdata(scn, NULL);
	}
	return NULL;
}

/* Reads the name, 0, padding to 4 bytes, checksum. */
static void read_link(Elf *elf, struct wanted *w)
{
	Elf_Data *data = find_section(elf, ".gnu_debuglink");
	size_t len;

	if (!data || !data->d_buf)
		return;
	len = strnlen(data->d_buf, data->d_size);
	if (!len || data->d_size < 8 || len / 4 * 4 + 8 > data->d_size ||
	    memchr(data->d_buf, '/', len))
		return;
	w->link = data->d_buf;
	memcpy(&w->crc, (char *)data->d_buf + len / 4 * 4 + 4, sizeof(w->crc));
}

static bool has_crc(int fd, uint32_t wanted)
{
	char *block = malloc(BLOCK);
	uint32_t crc = 0;
	off_t at = 0;
	ssize_t n = 0;

	while (block && (n = pread(fd, block, BLOCK, at)) > 0) {
		crc = lzma_crc32((uint8_t *)block, (size_t)n, crc);
		at += n;
	}
	free(block);
	return block && n == 0 && crc == wanted;
}

static bool is_wanted(int fd, const struct wanted *w, bool by_link)
{
	Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
	uint8_t id[BUILD_ID_MAX];
	uint32_t size = elf ? debugfile_build_id(elf, id) : 0;

	elf_end(elf);
	if (!elf)
		return false;
	if (size && w->id_size)
		return size == w->id_size && memcmp(id, w->id, size) == 0;
	return by_link && has_crc(fd, w->crc);
}

static int try_path(const struct wanted *w, bool by_link, const char *path)
{
	int fd = -ENOENT;

	for (int own = !w->root; own < 2; own++) {
		fd = process_file_open(own ? NULL : w->root, path);
		if (fd >= 0 && is_wanted(fd, w, by_link))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENOENT;
}

/* Tries the places where files are stored by build id: packages, perf's cache, debuginfod's cache.
 * The files in perf's cache have links for names. */
static int open_by_id(const struct wanted *w, bool program)
{
	const char *home = getenv("HOME"), *cache = getenv("DEBUGINFOD_CACHE_PATH");
	char hex[2 * BUILD_ID_MAX + 1], path[PATH_MAX];
	int fd = -ENOENT;

	for (uint32_t i = 0; i < w->id_size; i++)
		snprintf(hex + 2 * i, 3, "%02x", w->id[i]);
	if (!program) {
		snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%.2s/%s.debug", hex,
			 hex + 2);
		fd = try_path(w, false, path);
	}
	if (fd < 0 && home) {
		snprintf(path, sizeof(path), "%s/.debug/.build-id/%.2s/%s/%s", home, hex, hex + 2,
			 program ? "elf" : "debug");
		fd = try_path(w, false, path);
	}
	if (fd < 0 && (cache || home)) {
		snprintf(path, sizeof(path), "%s%s/%s/%s", cache ? cache : home,
			 cache ? "" : "/.cache/debuginfod_client", hex,
			 program ? "executable" : "debuginfo");
		fd = try_path(w, false, path);
	}
	return fd;
}

bool debugfile_has_id(int fd, const uint8_t *id, uint32_t size)
{
	struct wanted w = {.id_size = size};

	memcpy(w.id, id, size);
	return is_wanted(fd, &w, false);
}

int debugfile_open_program(const uint8_t *id, uint32_t size)
{
	struct wanted w = {.id_size = size};
	int fd;

	if (size < 2)
		return -ENOENT;
	memcpy(w.id, id, size);
	fd = open_by_id(&w, true);
	return fd < 0 ? debuginfod_open(id, size, true) : fd;
}

static int open_by_link(const struct wanted *w, const char *program)
{
	static const char *const places[][2] = {{"", ""}, {"", "/.debug"}, {"/usr/lib/debug", ""}};
	const char *slash = strrchr(program, '/');
	int dir = slash ? (int)(slash - program) : 0, fd = -ENOENT;
	char path[PATH_MAX];

	for (int i = 0; fd < 0 && program[0] == '/' && i < 3; i++) {
		int n = snprintf(path, sizeof(path), "%s%.*s%s/%s", places[i][0], dir, program,
				 places[i][1], w->link);

		/* The link may name the program itself, which has no further symbols. */
		if (n < (int)sizeof(path) && strcmp(path, program) != 0)
			fd = try_path(w, true, path);
	}
	return fd;
}

int debugfile_open(Elf *elf, const char *root, const char *path)
{
	struct wanted w = {.root = root};
	int fd = -ENOENT;

	w.id_size = debugfile_build_id(elf, w.id);
	read_link(elf, &w);
	if (w.id_size > 1)
		fd = open_by_id(&w, false);
	if (fd < 0 && w.link)
		fd = open_by_link(&w, path);
	if (fd < 0)
		fd = debuginfod_open(w.id, w.id_size, false);
	return fd;
}

/* Unpacks into a buffer that grows with the output. */
static char *unpack(lzma_stream *stream, size_t *size)
{
	size_t room = 0;
	char *out = NULL;
	lzma_ret ret = LZMA_OK;

	while (ret == LZMA_OK) {
		char *more = room < UNPACKED_MAX ? realloc(out, room + BLOCK + room / 2) : NULL;

		if (!more)
			break;
		out = more;
		stream->next_out = (uint8_t *)out + room;
		stream->avail_out = BLOCK + room / 2;
		room += BLOCK + room / 2;
		ret = lzma_code(stream, LZMA_FINISH);
	}
	if (ret == LZMA_STREAM_END) {
		*size = stream->total_out;
		return out;
	}
	free(out);
	return NULL;
}

char *debugfile_unpack(Elf *elf, size_t *size)
{
	Elf_Data *data = find_section(elf, ".gnu_debugdata");
	lzma_stream stream = LZMA_STREAM_INIT;
	char *out = NULL;

	if (!data || !data->d_buf || lzma_stream_decoder(&stream, UNPACK_MEMORY, 0) != LZMA_OK)
		return NULL;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	out = unpack(&stream, size);
	lzma_end(&stream);
	return out;
}
