/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug files from the servers in DEBUGINFOD_URLS, by build id, through elfutils' library if it is
 * installed. Without the variable no server is asked.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Opens the debug file, or the program itself, with this build id. Returns a descriptor or -ENOENT.
 * May take as long as the library's timeouts (DEBUGINFOD_TIMEOUT). */
int debuginfod_open(const uint8_t *id, uint32_t size, bool program);
