/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * probes [-w] COUNT [RATE]: for i = 1..COUNT calls probed_twice(i, TEXT) once, which returns 2 * i
 * and passes the USDT probes lab:plain (int i, char *TEXT, signed char -i), lab:bare (nothing) and
 * lab:guarded (long -i, constants 7 and -8, probed_total, double). The last is passed only while
 * its semaphore says that somebody listens, as is lab:silent, which has no arguments. TEXT is "odd"
 * or "even"; lab:inlined has two places, which are passed in turns. Prints how often the semaphore
 * of lab:guarded was seen up.
 *
 * The notes are written as systemtap's <sys/sdt.h> writes them, but do not need it.
 */
#include "go.h"

#define USDT(name, semaphore, args, ...)                                      \
	__asm__ volatile("990:	nop\n"                                         \
			 "	.pushsection .note.stapsdt,\"\",\"note\"\n"        \
			 "	.balign 4\n"                                       \
			 "	.4byte 992f-991f, 994f-993f, 3\n"                  \
			 "991:	.asciz \"stapsdt\"\n"                          \
			 "992:	.balign 4\n"                                   \
			 "993:	.8byte 990b, _.stapsdt.base, " semaphore "\n" \
			 "	.asciz \"lab\", \"" name "\", \"" args "\"\n" \
			 "994:	.balign 4\n"                                   \
			 "	.popsection\n"                                     \
			 "	.ifndef _.stapsdt.base\n"                          \
			 "	.pushsection .stapsdt.base,\"a\"\n"                \
			 "_.stapsdt.base: .space 1\n"                         \
			 "	.popsection\n"                                     \
			 "	.endif\n" ::__VA_ARGS__)

#ifdef __x86_64__
#define FLOAT_REGISTER "x"
#else
#define FLOAT_REGISTER "w"
#endif

__attribute__((section(".probes"), used)) volatile unsigned short guarded_semaphore,
	silent_semaphore;

static volatile long seen_up;
/* Not the first of its section, so that the offset of the section is not enough to find it. */
long probed_first = 1, probed_total = 40;

long probed_twice(int i, const char *text);

__attribute__((noinline)) long probed_twice(int i, const char *text)
{
	USDT("plain", "0", "-4@%0 8@%1 -1@%2", "r"(i), "r"(text), "q"((signed char)-i));
	USDT("bare", "0", "");
	if (silent_semaphore)
		USDT("silent", "silent_semaphore", "");
	if (guarded_semaphore) {
		double ratio = i / 2.0;
		long negative = -i;

		seen_up++;
		USDT("guarded", "guarded_semaphore", "-8@%0 4@%1 -4@%2 8@%3 8f@%4", "m"(negative),
		     "n"(7), "n"(-8), "m"(probed_total), FLOAT_REGISTER(ratio));
	}
	if (i & 1)
		USDT("inlined", "0", "-4@%0", "r"(i));
	else
		USDT("inlined", "0", "-4@%0", "r"(-i));
	return 2 * i;
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	struct timespec start;

	workload_wait(&w);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 1; i <= w.count; i++) {
		workload_pace(&w, &start, i);
		probed_total += probed_first + probed_twice(i, i & 1 ? "odd" : "even") - 2 * i;
	}
	printf("%ld\n", seen_up);
	return 0;
}
