/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Code that processes compile for themselves, by the maps that their run-time systems leave in
 * /tmp/perf-PID.map: lines of "START SIZE NAME", in hexadecimal. A map is read again as it grows.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct string_pool;
struct perfmaps;
struct symbol;

/* names: where what is found is kept. NULL without memory. */
struct perfmaps *perfmaps_new(struct string_pool *names);
void perfmaps_free(struct perfmaps *p);

/* pid has code of its own: keeps the way to its map open, which may be in a container and lead
 * nowhere when the process has ended. */
void perfmaps_watch(struct perfmaps *p, int32_t pid);

/* The function at addr in process pid, the newest where several were at that place. False: none is
 * known. path: of the map. */
bool perfmaps_find(struct perfmaps *p, int32_t pid, uint64_t addr, struct symbol *out,
		   const char **path);
uint64_t perfmaps_bytes(const struct perfmaps *p);
