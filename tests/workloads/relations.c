/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * relations [-w] COUNT [MS]: for i = 1..COUNT calls take(i, 100), outer(), which calls inner()
 * twice, factorial(3), which calls itself twice, and give(i), unless i is a multiple of 4. Then it
 * sleeps once, for MS milliseconds (100).
 */
#include <sys/syscall.h>
#include "go.h"

volatile long done;

void take(long id, long bytes);
void give(long id);
void outer(void);
void inner(void);
long factorial(long n);

__attribute__((noinline)) void take(long id, long bytes)
{
	done += id ^ bytes;
}

__attribute__((noinline)) void give(long id)
{
	done += id;
}

__attribute__((noinline)) void inner(void)
{
	done++;
}

__attribute__((noinline)) void outer(void)
{
	inner();
	inner();
	done++;
}

__attribute__((noinline)) long factorial(long n)
{
	long below = n > 1 ? factorial(n - 1) : 1;

	done++;
	return n * below;
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	struct timespec nap = {0};
	long ms = w.rate ? w.rate : 100;

	workload_wait(&w);
	for (long i = 1; i <= w.count; i++) {
		take(i, 100);
		outer();
		done += factorial(3);
		if (i % 4)
			give(i);
		else
			syscall(SYS_setns, -1, 0);
	}
	nap.tv_sec = ms / 1000;
	nap.tv_nsec = ms % 1000 * 1000000;
	nanosleep(&nap, NULL);
	return 0;
}
