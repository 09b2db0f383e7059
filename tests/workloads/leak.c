/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * leak [-w] COUNT: allocates COUNT objects of 1000 bytes and frees all but every tenth; then
 * allocates COUNT objects of 24 bytes with calloc and frees all of them.
 */
#include "go.h"

static void *keep(long i)
{
	static void *volatile kept[2];

	kept[i & 1] = malloc(1000);
	return kept[i & 1];
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	for (long i = 0; i < w.count; i++) {
		void *object = keep(i);

		if (i % 10)
			free(object);
	}
	for (long i = 0; i < w.count; i++) {
		void *volatile object = calloc(1, 24);

		free(object);
	}
	return 0;
}
