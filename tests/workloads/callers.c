/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * callers COUNT: calls getppid(2) COUNT times by libc's syscall(), which has no frame pointer, from
 * inner(), which has one, as have its callers outer() and main(). Between outer() and main() lie 4
 * KiB of stack.
 */
#include <string.h>
#include <sys/syscall.h>
#include "go.h"

static __attribute__((noinline)) long inner(long x)
{
	return syscall(SYS_getppid) + x;
}

static __attribute__((noinline)) long outer(long x)
{
	char room[4096];

	memset(room, (int)x, sizeof(room));
	__asm__ volatile("" ::"r"(room) : "memory");
	x += inner(x);
	__asm__ volatile("" ::"r"(room) : "memory");
	return x + room[x & 1023];
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	long sum = 0;

	workload_wait(&w);
	for (long i = 0; i < w.count; i++)
		sum += outer(i);
	return sum == 42;
}
