/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a process has mapped executable, as /proc/PID/maps lists it.
 */
#pragma once
#include <stdint.h>

struct procmaps_line {
	uint64_t start, end, offset, inode;
	uint32_t maj, min;
	const char *path; /* "" for anonymous memory; valid during the call */
};

/* Calls call() for each executable mapping. 0 or a negative errno: the process is gone, or not
 * ours to look at. */
int procmaps_read(int32_t pid, void (*call)(const struct procmaps_line *line, void *arg),
		  void *arg);
