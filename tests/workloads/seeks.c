/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * seeks COUNT: COUNT times lseek() with each of the offsets below, which fails: there is no such
 * file. Whence is 0 for offsets of which a double holds each sum exactly, and 1 for the others.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include "go.h"

static const int64_t exact[] = {
	0, 4096, -4096, 1LL << 54, (1LL << 58) + 4096, -(1LL << 54), -(1LL << 60)};
static const int64_t odd[] = {
	1, -1, (1LL << 53) - 1, (1LL << 53) + 1, -(1LL << 53) - 1, INT64_MAX, INT64_MIN};

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	for (long i = 0; i < w.count; i++)
		for (int k = 0; k < 7; k++) {
			syscall(SYS_lseek, -1, exact[k], 0);
			syscall(SYS_lseek, -1, odd[k], 1);
		}
	return 0;
}
