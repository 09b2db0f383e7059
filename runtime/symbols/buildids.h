/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The build ids of the files that a recording has run, by path. A file with another id than the
 * recorded one is a different file, whatever its name.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum { BUILD_ID_MAX = 20 };

#define BUILDIDS_KERNEL "[kernel.kallsyms]"

struct buildids;

/* Returns NULL without memory. */
struct buildids *buildids_new(void);
void buildids_free(struct buildids *b);

/* Returns false without memory. A path that gets two ids has none. */
bool buildids_add(struct buildids *b, const char *path, const uint8_t *id, uint32_t size);
/* Gets the id of a file. Returns its size; 0 if it is unknown. */
uint32_t buildids_find(const struct buildids *b, const char *path, uint8_t id[BUILD_ID_MAX]);

/* Gets that of the running kernel. Returns its size; 0 if it is unknown. */
uint32_t buildids_own_kernel(uint8_t id[BUILD_ID_MAX]);
