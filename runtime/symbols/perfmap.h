/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that processes compile for themselves, from the maps that their runtimes leave in
 * /tmp/perf-PID.map: lines of "START SIZE NAME", in hexadecimal. A map is read again as it grows.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct string_pool;
struct perfmaps;
struct symbol;

/* names: the pool for the names. Returns NULL without memory. */
struct perfmaps *perfmaps_new(struct string_pool *names);
void perfmaps_free(struct perfmaps *p);

/* pid has code of its own: keeps the way to its map open. The map may be in a container and
 * unreachable after the process has exited. */
void perfmaps_watch(struct perfmaps *p, int32_t pid);

/* Finds the function at addr in process pid, the newest if there were several. Returns false if
 * none is known. path: of the map. */
bool perfmaps_find(struct perfmaps *p, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path);
uint64_t perfmaps_bytes(const struct perfmaps *p);
