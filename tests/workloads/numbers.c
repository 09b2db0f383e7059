/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * numbers [-w] COUNT: makes COUNT system calls of each of four kinds with number 64, in turn. To a
 * 64-bit program that is semget, with the arguments (KEY, i % 10, 0), which finds nothing. The
 * kernel ignores the upper half of a number. With a bit that x32 programs set, and from 32-bit
 * code, it is another call.
 */
#include "go.h"
#ifdef __x86_64__
#include <sys/syscall.h>

#define KEY	  0x70726f66
#define UPPER	  0x100000000L
#define X32	  0x40000000L
#define GETPPID32 64

static void getppid32(void)
{
	long result;

	__asm__ volatile("int $0x80"
			 : "=a"(result)
			 : "0"(GETPPID32)
			 : "memory", "r8", "r9", "r10", "r11");
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	for (long i = 0; i < w.count; i++) {
		syscall(SYS_semget, KEY, i % 10, 0);
		syscall(UPPER + SYS_semget, KEY, i % 10, 0);
		syscall(X32 + SYS_semget, KEY, i % 10, 0);
		getppid32();
	}
	return 0;
}
#else
int main(void)
{
	fputs("numbers: not x86-64\n", stderr);
	return 3;
}
#endif
