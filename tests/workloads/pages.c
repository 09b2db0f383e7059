/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * pages [-w] COUNT: maps COUNT pages and writes to each: COUNT page faults, and COUNT pages
 * allocated, besides a page table for every 512.
 */
#include <sys/mman.h>
#include "go.h"

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	long size = sysconf(_SC_PAGESIZE);
	char *pages = mmap(NULL, w.count * size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (pages == MAP_FAILED || madvise(pages, w.count * size, MADV_NOHUGEPAGE)) {
		perror("pages");
		return 1;
	}
	workload_wait(&w);
	for (long i = 0; i < w.count; i++)
		*(volatile char *)(pages + i * size) = 1;
	return 0;
}
