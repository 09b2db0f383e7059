/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Common to the workloads: they do an exact number of things, so that a test knows the expected
 * counts. With -w they first wait until stdin ends or has a line, so that a tracer can attach;
 * waiting is not one of the counted things.
 */
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct workload {
	long count;
	long rate;   /* per second, 0: as fast as possible */
	int cpus[2]; /* -1: not pinned */
	int wait;
};

/* NAME [-w] [-c CPU[,CPU]] COUNT [RATE] */
static inline struct workload workload_args(int argc, char **argv)
{
	struct workload w = {.cpus = {-1, -1}};
	int opt;

	while ((opt = getopt(argc, argv, "wc:")) != -1) {
		if (opt == 'w')
			w.wait = 1;
		else if (opt == 'c' && sscanf(optarg, "%d,%d", &w.cpus[0], &w.cpus[1]) == 1)
			w.cpus[1] = w.cpus[0];
	}
	if (optind < argc)
		w.count = atol(argv[optind]);
	if (optind + 1 < argc)
		w.rate = atol(argv[optind + 1]);
	if (w.count <= 0) {
		fprintf(stderr, "usage: %s [-w] [-c CPU[,CPU]] COUNT [RATE]\n", argv[0]);
		exit(2);
	}
	return w;
}

static inline void workload_wait(const struct workload *w)
{
	char line[64];

	if (w->wait && read(STDIN_FILENO, line, sizeof(line)) < 0)
		exit(1);
}

/* Busy until the time of thing number i: sleeping would be an event of its own. */
static inline void workload_pace(const struct workload *w, const struct timespec *start, long i)
{
	struct timespec now;

	if (!w->rate)
		return;
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start->tv_sec) + (now.tv_nsec - start->tv_nsec) / 1e9 <
	       (double)i / w->rate);
}
