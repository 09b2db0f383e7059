/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * execs COUNT: COUNT processes that execute /bin/true from literals on a page that they have not
 * touched, COUNT that do so from a thread that is not their first, and one that finds no program.
 */
#include <pthread.h>
#include <sys/wait.h>
#include "go.h"

static void *from_thread(void *arg)
{
	execl("/bin/true", "true", "from a thread", (char *)0);
	return arg;
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);

	workload_wait(&w);
	for (long i = 0; i < 2 * w.count; i++) {
		if (!fork()) {
			pthread_t t;

			if (i % 2)
				execl("/bin/true", "true", "some-argument", (char *)0);
			else if (!pthread_create(&t, NULL, from_thread, NULL))
				pthread_join(t, NULL);
			_exit(1);
		}
		wait(NULL);
	}
	if (!fork()) {
		execl("/absent", "absent", "1", (char *)0);
		_exit(0);
	}
	wait(NULL);
	return 0;
}
