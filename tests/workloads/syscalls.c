/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * syscalls [-w] COUNT [RATE]: makes exactly COUNT getppid(2) calls, RATE per second. Each has its
 * number as an argument, from 0, which only tracers see.
 */
#include <sys/syscall.h>
#include "go.h"

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	struct timespec start;

	workload_wait(&w);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < w.count; i++) {
		workload_pace(&w, &start, i);
		syscall(SYS_getppid, i);
	}
	return 0;
}
