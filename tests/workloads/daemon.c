/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * daemon [-w] COUNT: leaves a daemon and exits. The daemon has lost its parent and its session when
 * it forks COUNT children, 20 ms apart; each exits at once. All in all COUNT + 3 processes exit.
 */
#include <sys/wait.h>
#include "go.h"

static void run_daemon(long count)
{
	usleep(300000); /* whoever only waits for the first process has left by now */
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid > 0)
			waitpid(pid, NULL, 0);
		usleep(20000);
	}
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	if (fork())
		return 0;
	setsid();
	if (!fork())
		run_daemon(w.count);
	return 0;
}
