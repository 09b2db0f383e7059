/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/clock.h"
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1000000000ll + ts.tv_nsec;
}

/* What this process's time namespace adds to two clocks. The kernel's events have the times
 * without. */
static struct {
	bool is_known;
	int64_t monotonic, boottime;
} offsets;

/* The file has the offsets of children, which may be in another namespace. */
static bool is_of_children(void)
{
	struct stat own, children;

	return stat("/proc/self/ns/time", &own) ||
	       stat("/proc/self/ns/time_for_children", &children) || own.st_ino != children.st_ino;
}

static void read_offsets(void)
{
	FILE *file = is_of_children() ? NULL : fopen("/proc/self/timens_offsets", "re");
	long long sec, nsec;
	char name[16];

	while (file && fscanf(file, "%15s %lld %lld", name, &sec, &nsec) == 3) {
		if (!strcmp(name, "monotonic"))
			offsets.monotonic = sec * 1000000000 + nsec;
		else if (!strcmp(name, "boottime"))
			offsets.boottime = sec * 1000000000 + nsec;
	}
	if (file)
		fclose(file);
	offsets.is_known = true;
}

uint64_t clock_monotonic(void)
{
	if (!offsets.is_known)
		read_offsets();
	return read_clock(CLOCK_MONOTONIC) - offsets.monotonic;
}

uint64_t clock_boottime(void)
{
	if (!offsets.is_known)
		read_offsets();
	return read_clock(CLOCK_BOOTTIME) - offsets.boottime;
}

void clock_wall_zero(double *sec, double *nsec)
{
	int64_t best = INT64_MAX;

	/* Takes the tightest of a few readings: an interrupt may come between the clocks. */
	for (int i = 0; i < 8; i++) {
		int64_t from = clock_monotonic(), wall = read_clock(CLOCK_REALTIME);
		int64_t to = clock_monotonic(), zero = wall - (from + to) / 2;

		if (to - from >= best)
			continue;
		best = to - from;
		*sec = zero / 1000000000;
		*nsec = zero % 1000000000;
	}
}
