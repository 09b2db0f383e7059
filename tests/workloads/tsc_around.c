/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * tsc_around [-w] COUNT: calls getppid() COUNT times, and then prints the CPU's cycle counter
 * before and after each call. RATE is the number of calls per second.
 */
#include <stdint.h>
#include <sys/syscall.h>
#include "go.h"

static uint64_t read_counter(void)
{
#ifdef __x86_64__
	uint32_t low, high;

	__asm__ volatile("lfence; rdtsc; lfence" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("isb; mrs %0, cntvct_el0; isb" : "=r"(count)::"memory");
	return count;
#else
	return 0;
#endif
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	uint64_t *times = calloc(w.count, 2 * sizeof(*times));
	struct timespec start;

	if (!times)
		return 1;
	memset(times, 1, w.count * 2 * sizeof(*times)); /* no page fault in between */
	workload_wait(&w);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < w.count; i++) {
		workload_pace(&w, &start, i);
		times[2 * i] = read_counter();
		syscall(SYS_getppid);
		times[2 * i + 1] = read_counter();
	}
	for (long i = 0; i < w.count; i++)
		printf("%lu %lu\n", (unsigned long)times[2 * i], (unsigned long)times[2 * i + 1]);
	free(times);
	return 0;
}
