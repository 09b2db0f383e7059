/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Debug files from servers: those that DEBUGINFOD_URLS names, asked by build id through elfutils'
 * library, if that is installed. Off where the variable is not set.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* A descriptor of the debug file, or of the program itself, with this build id; -ENOENT. May take
 * as long as the library's time-outs (DEBUGINFOD_TIMEOUT) allow. */
int debuginfod_open(const uint8_t *id, uint32_t size, bool program);
