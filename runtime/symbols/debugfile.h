/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a stripped program has left elsewhere: its separate debug file, by build id or by the name
 * in .gnu_debuglink, and the compressed symbols in .gnu_debugdata (MiniDebugInfo).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libelf.h>
#include "symbols/buildids.h"

/* Gets the build id. Returns its size, 0 if elf has none. */
uint32_t debugfile_build_id(Elf *elf, uint8_t id[BUILD_ID_MAX]);

/* Returns whether the ELF file at fd has this build id. */
bool debugfile_has_id(int fd, const uint8_t *id, uint32_t size);
/* Opens a copy of the program with this build id, from perf's cache or from a server. Returns a
 * descriptor or -ENOENT. */
int debugfile_open_program(const uint8_t *id, uint32_t size);

/* Opens the debug file of elf, which was mapped from path. root: the root directory of the process
 * that mapped it, which is tried before ours. Returns a descriptor or -ENOENT. */
int debugfile_open(Elf *elf, const char *root, const char *path);

/* Unpacks the file in .gnu_debugdata, which the caller frees with free(). Returns NULL if there is
 * none, or if it is damaged or unreasonably large. */
char *debugfile_unpack(Elf *elf, size_t *size);
