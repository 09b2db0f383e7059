/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The mappings of a process, from /proc/PID/maps.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct procmaps_line {
	uint64_t start, end, offset, inode;
	uint32_t maj, min;
	bool is_executable;
	const char *path; /* "" for anonymous memory; valid during the call */
};

/* Calls call() for each executable mapping, and with data also for those that can only be read or
 * written. Returns 0, or a negative errno if the process has exited or must not be looked at. */
int procmaps_read(int32_t pid, bool data, void (*call)(const struct procmaps_line *line, void *arg),
		  void *arg);
