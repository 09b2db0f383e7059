/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Build ids by path: what a recording tells of the files that ran. A file with another id than the
 * recorded one is not that file, whatever its name is.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { BUILD_ID_MAX = 20 };

#define BUILDIDS_KERNEL "[kernel.kallsyms]"

struct buildids;

/* NULL without memory. */
struct buildids *buildids_new(void);
void buildids_free(struct buildids *b);

/* False without memory. A path with two ids has none. */
bool buildids_add(struct buildids *b, const char *path, const uint8_t *id, uint32_t size);
/* The bytes of the file's id; 0: unknown. */
uint32_t buildids_find(const struct buildids *b, const char *path, uint8_t id[BUILD_ID_MAX]);

/* That of the kernel that runs here; 0: it does not tell. */
uint32_t buildids_own_kernel(uint8_t id[BUILD_ID_MAX]);
