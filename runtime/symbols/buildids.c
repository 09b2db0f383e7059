/* SPDX-License-Identifier: GPL-2.0-only */
/* A list: there are at most some hundred files, and each is looked up once. */
#include "symbols/buildids.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_IDS = 1 << 16, NOTES_MAX = 4096 };

struct entry {
	char *path;
	uint8_t id[BUILD_ID_MAX];
	uint32_t size;
};

struct buildids {
	struct entry *entries;
	uint32_t count;
};

struct buildids *buildids_new(void)
{
	return calloc(1, sizeof(struct buildids));
}

void buildids_free(struct buildids *b)
{
	if (!b)
		return;
	for (uint32_t i = 0; i < b->count; i++)
		free(b->entries[i].path);
	free(b->entries);
	free(b);
}

static struct entry *find(const struct buildids *b, const char *path)
{
	for (uint32_t i = 0; i < b->count; i++)
		if (strcmp(b->entries[i].path, path) == 0)
			return &b->entries[i];
	return NULL;
}

bool buildids_add(struct buildids *b, const char *path, const uint8_t *id, uint32_t size)
{
	struct entry *known = find(b, path), *entries;

	if (known) {
		if (known->size != size || memcmp(known->id, id, size) != 0)
			known->size = 0;
		return true;
	}
	if (!size || size > BUILD_ID_MAX || b->count == MAX_IDS)
		return true;
	entries = reallocarray(b->entries, b->count + 1, sizeof(*entries));
	if (!entries)
		return false;
	b->entries = entries;
	entries += b->count;
	*entries = (struct entry){.path = strdup(path), .size = size};
	if (!entries->path)
		return false;
	memcpy(entries->id, id, size);
	b->count++;
	return true;
}

uint32_t buildids_find(const struct buildids *b, const char *path, uint8_t id[BUILD_ID_MAX])
{
	const struct entry *e = find(b, path);

	if (!e)
		return 0;
	memcpy(id, e->id, e->size);
	return e->size;
}

uint32_t buildids_own_kernel(uint8_t id[BUILD_ID_MAX])
{
	int fd = open("/sys/kernel/notes", O_RDONLY | O_CLOEXEC);
	uint8_t notes[NOTES_MAX];
	ssize_t size = fd >= 0 ? read(fd, notes, sizeof(notes)) : -1;
	size_t at = 0;

	if (fd >= 0)
		close(fd);
	while (size > 0 && (size_t)size - at >= sizeof(Elf64_Nhdr)) {
		size_t left = (size_t)size - at - sizeof(Elf64_Nhdr), name, desc;
		Elf64_Nhdr note;

		memcpy(&note, notes + at, sizeof(note));
		name = (note.n_namesz + 3ul) & ~3ul;
		desc = (note.n_descsz + 3ul) & ~3ul;
		at += sizeof(note);
		if (name > left || desc > left - name)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + at, "GNU", 4) == 0 && note.n_descsz <= BUILD_ID_MAX) {
			memcpy(id, notes + at + name, note.n_descsz);
			return note.n_descsz;
		}
		at += name + desc;
	}
	return 0;
}
