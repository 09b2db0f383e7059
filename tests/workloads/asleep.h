/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For workloads with threads that wait for each other to sleep.
 */
#pragma once
#include <stdio.h>

/* Returns whether a thread of this process sleeps in a system call. */
static inline int is_asleep(int tid)
{
	char path[64], state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(file);
	return state == 'S';
}
