// SPDX-License-Identifier: GPL-2.0-only
#include "bpf/btf_types.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <linux/btf.h>

enum { NR_KINDS = 32 }; /* what the bits of a type's info can tell */

struct btf_types {
	char *data;
	size_t size;
	int is_mapped;
	const char *base, *strings; /* the sections */
	uint32_t base_size, strings_size;
	const struct btf_types *below;	 /* NULL: none */
	uint32_t below_ids, below_bytes; /* its last id, and its strings */
	uint32_t count;			 /* of types, with void */
	uint32_t *places;		 /* in the section, by id without those below */
	uint32_t *next, first[NR_KINDS]; /* chains of these ids by kind; 0 ends them */
};

static const struct btf_type void_type;

void btf_types_close(struct btf_types *types)
{
	if (!types)
		return;
	if (types->is_mapped)
		munmap(types->data, types->size);
	else
		free(types->data);
	free(types->places);
	free(types->next);
	free(types);
}

/* Returns the bytes of a type with what follows it, 0 for an unknown kind. */
static size_t size_of(const struct btf_type *type)
{
	size_t n = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_FWD:
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_PTR:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_FUNC:
	case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*type);
	case BTF_KIND_INT:
		return sizeof(*type) + sizeof(uint32_t);
	case BTF_KIND_ENUM:
		return sizeof(*type) + n * sizeof(struct btf_enum);
	case BTF_KIND_ENUM64:
		return sizeof(*type) + n * sizeof(struct btf_enum64);
	case BTF_KIND_ARRAY:
		return sizeof(*type) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return sizeof(*type) + n * sizeof(struct btf_member);
	case BTF_KIND_FUNC_PROTO:
		return sizeof(*type) + n * sizeof(struct btf_param);
	case BTF_KIND_VAR:
		return sizeof(*type) + sizeof(struct btf_var);
	case BTF_KIND_DATASEC:
		return sizeof(*type) + n * sizeof(struct btf_var_secinfo);
	case BTF_KIND_DECL_TAG:
		return sizeof(*type) + sizeof(struct btf_decl_tag);
	}
	return 0;
}

/* Finds the sections. */
static int read_header(struct btf_types *types)
{
	const struct btf_header *header = (const void *)types->data;
	size_t left;

	if (types->size < sizeof(*header) || header->magic != BTF_MAGIC ||
	    header->hdr_len < sizeof(*header) || header->hdr_len > types->size ||
	    header->hdr_len % 4 || header->type_off % 4)
		return -EBADMSG;
	left = types->size - header->hdr_len;
	if (header->type_off > left || header->type_len > left - header->type_off ||
	    header->str_off > left || header->str_len > left - header->str_off || !header->str_len)
		return -EBADMSG;
	types->base = types->data + header->hdr_len + header->type_off;
	types->base_size = header->type_len;
	types->strings = types->data + header->hdr_len + header->str_off;
	types->strings_size = header->str_len;
	return types->strings[types->strings_size - 1] ? -EBADMSG : 0;
}

/* Notes the places of all types. */
static int walk(struct btf_types *types)
{
	size_t most = types->base_size / sizeof(struct btf_type) + 1, size;
	uint32_t last[NR_KINDS] = {}, id = 1;

	types->places = malloc(most * sizeof(*types->places));
	types->next = malloc(most * sizeof(*types->next));
	if (!types->places || !types->next)
		return -ENOMEM;
	for (size_t at = 0; at < types->base_size; at += size, id++) {
		const struct btf_type *type = (const void *)(types->base + at);
		uint32_t kind;

		if (types->base_size - at < sizeof(*type))
			return -EBADMSG;
		size = size_of(type);
		if (!size)
			return -EOPNOTSUPP;
		if (size > types->base_size - at)
			return -EBADMSG;
		kind = BTF_INFO_KIND(type->info);
		types->places[id] = at;
		types->next[id] = 0;
		*(last[kind] ? &types->next[last[kind]] : &types->first[kind]) = id;
		last[kind] = id;
	}
	types->count = id;
	return 0;
}

/* Returns the types if their data was read without an error, and if they are valid. */
static int finish(struct btf_types *types, int code, struct btf_types **result)
{
	if (!code)
		code = read_header(types);
	if (!code)
		code = walk(types);
	if (code)
		btf_types_close(types);
	else
		*result = types;
	return code;
}

int btf_types_copy(const void *data, size_t size, struct btf_types **result)
{
	struct btf_types *types = calloc(1, sizeof(*types));

	if (!types)
		return -ENOMEM;
	types->size = size;
	types->data = malloc(size);
	if (types->data)
		memcpy(types->data, data, size);
	return finish(types, types->data ? 0 : -ENOMEM, result);
}

static int read_all(int fd, struct btf_types *types)
{
	size_t done = 0;
	ssize_t n;

	types->data = malloc(types->size);
	if (!types->data)
		return -ENOMEM;
	while (done < types->size) {
		n = read(fd, types->data + done, types->size - done);
		if (n <= 0)
			return n < 0 ? -errno : -EBADMSG;
		done += n;
	}
	return 0;
}

static int map_or_read(int fd, struct btf_types *types)
{
	struct stat about;
	void *data;

	if (fstat(fd, &about))
		return -errno;
	types->size = about.st_size;
	data = mmap(NULL, types->size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED) /* before Linux 6.16 */
		return read_all(fd, types);
	types->data = data;
	types->is_mapped = 1;
	return 0;
}

int btf_types_open(const char *path, const struct btf_types *below, struct btf_types **result)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), code;
	struct btf_types *types;

	if (fd < 0)
		return -errno;
	types = calloc(1, sizeof(*types));
	code = types ? map_or_read(fd, types) : -ENOMEM;
	close(fd);
	if (types && below) {
		types->below = below;
		types->below_ids = below->below_ids + below->count - 1;
		types->below_bytes = below->below_bytes + below->strings_size;
	}
	return types ? finish(types, code, result) : code;
}

uint32_t btf_types_first(const struct btf_types *types)
{
	return types->below_ids + 1;
}

const struct btf_type *btf_types_at(const struct btf_types *types, uint32_t id)
{
	if (types->below && id <= types->below_ids)
		return btf_types_at(types->below, id);
	id -= types->below_ids;
	if (!id || id >= types->count)
		return &void_type;
	return (const void *)(types->base + types->places[id]);
}

const char *btf_types_name(const struct btf_types *types, uint32_t offset)
{
	if (types->below && offset < types->below_bytes)
		return btf_types_name(types->below, offset);
	offset -= types->below_bytes;
	return offset < types->strings_size ? types->strings + offset : "";
}

static const char *name_of(const struct btf_types *types, uint32_t id)
{
	const struct btf_type *type = (const void *)(types->base + types->places[id]);

	return btf_types_name(types, type->name_off);
}

uint32_t btf_types_find(const struct btf_types *types, const char *name, uint32_t kind)
{
	uint32_t id = kind < NR_KINDS ? types->first[kind] : 0;

	while (id && strcmp(name_of(types, id), name))
		id = types->next[id];
	if (id)
		return types->below_ids + id;
	return types->below ? btf_types_find(types->below, name, kind) : 0;
}
