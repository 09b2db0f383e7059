/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * states [-w] VERB N...: does what each verb says, in order:
 *
 *   run MS      uses that much CPU time          sleep MS   sleeps, which is state S
 *   vfork MS    waits in D for a child that      migrate N  moves to the other CPU N times
 *               sleeps                           fork N     has N children, which end at once
 *   signal N    sends itself SIGUSR1 N times     thread MS  has a thread that sleeps
 *   pin CPU     stays on that CPU
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include "go.h"

static void sleep_ms(long ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	while (nanosleep(&ts, &ts))
		;
}

static void run_ms(long ms)
{
	struct timespec now, start;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - start.tv_sec) * 1000 + (now.tv_nsec - start.tv_nsec) / 1e6 < ms);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("sched_setaffinity");
		exit(1);
	}
}

static void wait_in_vfork(long ms)
{
	pid_t pid = vfork();

	if (!pid) {
		struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

		nanosleep(&ts, NULL);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void have_children(long n)
{
	while (n--) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
}

static void *sleeper(void *ms)
{
	sleep_ms((long)ms);
	return NULL;
}

static void have_thread(long ms)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, sleeper, (void *)ms))
		exit(1);
	pthread_join(thread, NULL);
}

static void on_signal(int signal)
{
	(void)signal;
}

int main(int argc, char **argv)
{
	struct workload w = {.wait = argc > 1 && !strcmp(argv[1], "-w")};

	signal(SIGUSR1, on_signal);
	workload_wait(&w);
	for (int i = 1 + w.wait; i + 1 < argc; i += 2) {
		const char *verb = argv[i];
		long n = atol(argv[i + 1]);

		if (!strcmp(verb, "run"))
			run_ms(n);
		else if (!strcmp(verb, "sleep"))
			sleep_ms(n);
		else if (!strcmp(verb, "vfork"))
			wait_in_vfork(n);
		else if (!strcmp(verb, "pin"))
			pin(n);
		else if (!strcmp(verb, "fork"))
			have_children(n);
		else if (!strcmp(verb, "thread"))
			have_thread(n);
		for (long k = 0; k < n && !strcmp(verb, "signal"); k++)
			raise(SIGUSR1);
		for (long k = 0; k < n && !strcmp(verb, "migrate"); k++)
			pin((sched_getcpu() + 1) % 2);
	}
	return 0;
}
