/* SPDX-License-Identifier: GPL-2.0-only */
/* The mappings of this process, for signal handlers: nothing is allocated. */
#pragma once
#include <stdint.h>

struct self_map {
	uintptr_t from, to;
	const char *path; /* "" where there is no file; valid during the call */
};

/* Calls each() for all mappings until it returns something else than 0, which is returned. */
int self_maps_each(int (*each)(const struct self_map *map, void *arg), void *arg);
