/* SPDX-License-Identifier: GPL-2.0-only */
#include "clocks/clock_pair.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/timex.h>
#include <time.h>
#include "error.h"
#include "os/clock.h"

enum { READINGS = 8 };

uint64_t clock_tsc(void)
{
#if defined(__x86_64__) || defined(__i386__)
	uint32_t low, high;

	/* Without the fence the CPU may read the counter before the clock that precedes it. */
	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t count;

	__asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(count)::"memory");
	return count;
#else
	return 0;
#endif
}

#if defined(__x86_64__) || defined(__i386__)
/* The kernel's verdict. A guest may prefer its hypervisor's clock to a TSC that is fine, so the
 * CPU's own promise counts, too. */
static int check_counter(struct error *err)
{
	static const char path[] =
		"/sys/devices/system/clocksource/clocksource0/current_clocksource";
	uint32_t eax = 0x80000007, ebx, ecx, edx;
	char name[64] = "unknown\n";
	FILE *f = fopen(path, "re");

	if (f) {
		if (!fgets(name, sizeof(name), f))
			name[0] = 0;
		fclose(f);
	}
	name[strcspn(name, "\n")] = 0;
	__asm__("cpuid" : "+a"(eax), "=b"(ebx), "=c"(ecx), "=d"(edx));
	if (!strcmp(name, "tsc") || edx & 1 << 8)
		return 0;
	error_unavailable(err);
	return error_set(
		err, -EOPNOTSUPP,
		"the TSC is no clock here: the CPU does not promise a constant rate, and the "
		"kernel's clock source is %s",
		name);
}
#else
static int check_counter(struct error *err)
{
#ifdef __aarch64__
	(void)err;
	return 0; /* the architecture promises it */
#else
	error_unavailable(err);
	return error_set(err, -EOPNOTSUPP, "this architecture has no cycle counter for all CPUs");
#endif
}
#endif

int clock_tsc_check(struct error *err)
{
	return check_counter(err);
}

/* Reads `one` between two readings of CLOCK_MONOTONIC. Returns the tightest reading's bracket. */
static uint64_t read_best(uint64_t (*one)(void), uint64_t *mono, uint64_t *value)
{
	uint64_t best = UINT64_MAX;

	*mono = *value = 0;
	/* An interrupt, or the hypervisor, may come in between. */
	for (int i = 0; i < READINGS; i++) {
		uint64_t from = clock_monotonic(), v = one();
		uint64_t to = clock_monotonic();

		if (to - from >= best)
			continue;
		best = to - from;
		*mono = from + best / 2;
		*value = v;
	}
	return best;
}

static uint64_t read_real(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

void clock_pair_read(struct clock_pair *out)
{
	struct timex kernel = {0};
	uint64_t at, bracket, real_bracket;

	real_bracket = read_best(read_real, &at, &out->real);
	bracket = read_best(clock_tsc, &out->mono, &out->tsc);
	out->real += out->mono - at;
	if (real_bracket > bracket)
		bracket = real_bracket;
	out->error = (bracket + 1) / 2 < UINT32_MAX ? (bracket + 1) / 2 : UINT32_MAX;
	out->real_error = adjtimex(&kernel) == TIME_ERROR || kernel.maxerror < 0 ? UINT32_MAX
										 : kernel.maxerror;
}
