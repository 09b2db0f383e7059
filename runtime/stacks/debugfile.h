/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a stripped program left elsewhere: its separate debug file, by build id or by the name in
 * .gnu_debuglink, and the compressed symbols in .gnu_debugdata (MiniDebugInfo).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>
#include "stacks/buildids.h"

/* Returns the size of the build id, 0 where elf has none. */
uint32_t debugfile_build_id(Elf *elf, uint8_t id[BUILD_ID_MAX]);

/* Whether the ELF file at fd has this build id. */
bool debugfile_has_id(int fd, const uint8_t *id, uint32_t size);
/* A copy of the program with this build id, in perf's cache or from a server. A descriptor, or
 * -ENOENT. */
int debugfile_open_program(const uint8_t *id, uint32_t size);

/* Opens the debug file of elf, which was mapped from path. root: that of the process which did; the
 * directories there are tried before ours. A descriptor, or -ENOENT. */
int debugfile_open(Elf *elf, const char *root, const char *path);

/* The file in .gnu_debugdata, to be freed with free(); NULL where there is none, it is damaged, or
 * unreasonably big. */
char *debugfile_unpack(Elf *elf, size_t *size);
