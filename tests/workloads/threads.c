/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * threads [-w] COUNT: starts COUNT threads before it waits, and COUNT more after that. Each makes
 * exactly COUNT getppid(2) calls. Then it forks one child, which does the same as one of
 * them.
 */
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "go.h"

static struct workload work;
static pthread_barrier_t begin;

static void make_calls(void)
{
	for (long i = 0; i < work.count; i++)
		syscall(SYS_getppid);
}

static void *early(void *arg)
{
	pthread_barrier_wait(&begin);
	make_calls();
	return arg;
}

static void *late(void *arg)
{
	make_calls();
	return arg;
}

static void start(pthread_t *threads, void *(*body)(void *))
{
	for (long i = 0; i < work.count; i++)
		if (pthread_create(&threads[i], NULL, body, NULL)) {
			perror("pthread_create");
			exit(1);
		}
}

int main(int argc, char **argv)
{
	pthread_t *threads;
	pid_t child;

	work = workload_args(argc, argv);
	threads = calloc(2 * work.count, sizeof(*threads));
	pthread_barrier_init(&begin, NULL, work.count + 1);
	start(threads, early);
	workload_wait(&work);
	pthread_barrier_wait(&begin);
	start(threads + work.count, late);
	for (long i = 0; i < 2 * work.count; i++)
		pthread_join(threads[i], NULL);
	child = fork();
	if (!child) {
		make_calls();
		_exit(0);
	}
	return child < 0 || waitpid(child, NULL, 0) != child;
}
