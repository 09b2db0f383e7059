/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * deep COUNT: calls getppid(2) COUNT times at the end of a known call chain: main, deep_9 down to
 * deep_0, syscall. The second half of the calls is made in a signal handler, with on_signal and the
 * interrupted raise below it. Compiled with -fomit-frame-pointer: only tables allow unwinding
 * it.
 */
#include <signal.h>
#include <sys/syscall.h>
#include "go.h"

/* Each frame has another size, and its address escapes, so that none is merged or left early. */
#define DEEP(n, next)                                          \
	static __attribute__((noinline)) long deep_##n(long x) \
	{                                                      \
		char room[40 * (n) + 24];                      \
		memset(room, (int)x, sizeof(room));            \
		__asm__ volatile("" ::"r"(room) : "memory");   \
		x += next(x);                                  \
		__asm__ volatile("" ::"r"(room) : "memory");   \
		return x + room[n];                            \
	}

static __attribute__((noinline)) long deep_0(long x)
{
	return syscall(SYS_getppid) + x;
}

DEEP(1, deep_0)
DEEP(2, deep_1)
DEEP(3, deep_2)
DEEP(4, deep_3)
DEEP(5, deep_4)
DEEP(6, deep_5)
DEEP(7, deep_6)
DEEP(8, deep_7)
DEEP(9, deep_8)

static void on_signal(int number)
{
	deep_9(number);
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	long sum = 0;

	workload_wait(&w);
	for (long i = 0; i < w.count / 2; i++)
		sum += deep_9(i);
	signal(SIGUSR1, on_signal);
	for (long i = w.count / 2; i < w.count; i++)
		raise(SIGUSR1);
	return sum == 42;
}
