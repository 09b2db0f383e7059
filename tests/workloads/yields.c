/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * yields [-c CPU] COUNT: two processes on one CPU (0) call sched_yield(2) COUNT times each, so that
 * they switch to each other from within the call.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/wait.h>
#include "go.h"

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	cpu_set_t set;
	pid_t child;

	CPU_ZERO(&set);
	CPU_SET(w.cpus[0] < 0 ? 0 : w.cpus[0], &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		return 1;
	}
	workload_wait(&w);
	child = fork();
	for (long i = 0; i < w.count; i++)
		sched_yield();
	if (!child)
		_exit(0);
	return child < 0 || waitpid(child, NULL, 0) != child;
}
