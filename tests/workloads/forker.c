/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * forker [-w] COUNT [RATE]: forks exactly COUNT children, one after the other; each exits at once
 * with status 0 and is waited for.
 */
#include <sys/wait.h>
#include "go.h"

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	struct timespec start;

	workload_wait(&w);
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (long i = 0; i < w.count; i++) {
		pid_t pid;

		workload_pace(&w, &start, i);
		pid = fork();
		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid) {
			perror("fork");
			return 1;
		}
	}
	return 0;
}
