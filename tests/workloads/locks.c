/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * locks COUNT: a thread called holder takes a mutex COUNT times, and each time keeps it until
 * a thread called waiter is blocked on it. Then the two wait COUNT times on a condition variable.
 * locks deadlock: two threads, left and right, each keep a mutex and wait for the other's.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <stdlib.h>
#include <unistd.h>
#include "asleep.h"

static pthread_mutex_t work_lock = PTHREAD_MUTEX_INITIALIZER,
		       other_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static atomic_int held, turn, waiter_tid;
static int count;

static void __attribute__((noinline)) take_work_lock(void)
{
	pthread_mutex_lock(&work_lock);
	pthread_mutex_unlock(&work_lock);
}

static void *wait_for_lock(void *arg)
{
	(void)arg;
	prctl(PR_SET_NAME, "waiter");
	waiter_tid = (int)syscall(SYS_gettid);
	for (int i = 1; i <= count; i++) {
		while (held < i)
			sched_yield();
		take_work_lock();
		turn = i;
	}
	return NULL;
}

static void hold(void)
{
	for (int i = 1; i <= count; i++) {
		pthread_mutex_lock(&work_lock);
		held = i;
		while (!is_asleep(waiter_tid))
			sched_yield();
		pthread_mutex_unlock(&work_lock);
		while (turn < i)
			sched_yield();
	}
}

static void __attribute__((noinline)) wait_for_turn(int mine)
{
	pthread_mutex_lock(&other_lock);
	while (turn != mine)
		pthread_cond_wait(&turned, &other_lock);
	turn = !mine;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&other_lock);
}

static void *take_turns(void *arg)
{
	for (int i = 0; i < count; i++)
		wait_for_turn(arg != NULL);
	return NULL;
}

static void *lock_both(void *arg)
{
	pthread_mutex_t *first = arg ? &work_lock : &other_lock,
			*second = arg ? &other_lock : &work_lock;

	prctl(PR_SET_NAME, arg ? "left" : "right");
	pthread_mutex_lock(first);
	held++;
	while (held < 2)
		sched_yield();
	pthread_mutex_lock(second);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *(*run)(void *) = lock_both;

	count = argc > 1 ? atoi(argv[1]) : 0;
	if (count) {
		prctl(PR_SET_NAME, "holder");
		if (pthread_create(&thread, NULL, wait_for_lock, NULL))
			return 1;
		while (!waiter_tid)
			sched_yield();
		hold();
		pthread_join(thread, NULL);
		turn = 0;
		run = take_turns;
	}
	if (pthread_create(&thread, NULL, run, &count))
		return 1;
	run(NULL);
	pthread_join(thread, NULL);
	return 0;
}
