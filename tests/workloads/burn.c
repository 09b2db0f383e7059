/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * burn COUNT: spends four fifths of its time in hot(), half of that called by main() and half by
 * warm(), and one fifth in cold(). COUNT 100 takes a second or less. Its stacks have frame
 * pointers.
 */
#pragma GCC optimize("no-omit-frame-pointer")
#include "go.h"

enum { STEPS = 1000000 };

static volatile double sink = 1;
static void *volatile top; /* gives functions that call nothing a frame */

__attribute__((noinline)) static void hot(void)
{
	for (int i = 0; i < 2 * STEPS; i++)
		sink = sink * 1.0000001;
	top = __builtin_frame_address(0);
}

__attribute__((noinline)) static void cold(void)
{
	for (int i = 0; i < STEPS; i++)
		sink = sink * 0.9999999;
	top = __builtin_frame_address(0);
}

__attribute__((noinline)) static void warm(void)
{
	hot();
	sink = 1; /* does not end with a jump */
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	for (long i = 0; i < w.count; i++) {
		hot();
		warm();
		cold();
	}
	return 0;
}
