/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/splitlock.h"

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

enum { LINE = 64, BATCH = 1000 };

uint64_t splitlock_make(uint64_t n)
{
#if defined(__x86_64__)
	/* Four bytes in each line. */
	struct {
		uint8_t before[LINE - 4], number[8], after[LINE - 4];
	} __attribute__((aligned(LINE))) lines;
	uint64_t sum;

	memset(&lines, 0, sizeof(lines));
	for (uint64_t i = 0; i < n; i++)
		__asm__ volatile("lock incq %0" : "+m"(lines.number) : : "cc");
	memcpy(&sum, lines.number, sizeof(sum));
	return sum;
#else
	(void)n;
	return 0;
#endif
}

static void *make_them(void *unused)
{
	(void)unused;
	while (splitlock_make(BATCH))
		;
	return NULL;
}

int splitlock_start(void)
{
	pthread_t thread;
	int code;

	if (!splitlock_make(1))
		return -ENOSYS;
	code = pthread_create(&thread, NULL, make_them, NULL);
	return code ? -code : pthread_detach(thread);
}
