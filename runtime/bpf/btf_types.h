/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The types in BTF data, by id and by name. The kernel's own has 150000 types, of which a run needs
 * some twenty: it is mapped where the kernel allows it, walked once for the places of the types,
 * and searched by name among the types of one kind.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct btf_type; /* see linux/btf.h */
struct btf_types;

/* Opens a file of BTF data, such as /sys/kernel/btf/vmlinux. Those of a module use the types and
 * strings of the kernel, `below`, which must stay open; NULL: none. Returns 0, -EBADMSG for other
 * data, -EOPNOTSUPP for kinds of types that are not known here, or another negative errno. */
int btf_types_open(const char *path, const struct btf_types *below, struct btf_types **types);
/* The same for a copy of the data in memory. */
int btf_types_copy(const void *data, size_t size, struct btf_types **types);
void btf_types_close(struct btf_types *types);

/* Returns the id of the first type that is not one of those below. */
uint32_t btf_types_first(const struct btf_types *types);
/* Returns the type with this id, or `void` if there is none. */
const struct btf_type *btf_types_at(const struct btf_types *types, uint32_t id);
/* Returns the string at this offset, "" if it is outside. */
const char *btf_types_name(const struct btf_types *types, uint32_t offset);
/* Returns the id of the first type of a kind with this name, those below last; 0 if there is none.
 */
uint32_t btf_types_find(const struct btf_types *types, const char *name, uint32_t kind);
