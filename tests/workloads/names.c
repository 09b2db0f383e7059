/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * names [-w] COUNT: four threads, each of which asks COUNT times for a file whose name has its tid
 * and a number. Before, the first thread asks for the odd names below, once each.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/mman.h>
#include "go.h"

enum { THREADS = 4, LONGEST = 3000 };

static void ask(const char *name)
{
	syscall(SYS_faccessat, AT_FDCWD, name, F_OK);
}

static void ask_odd(void)
{
	static const int lengths[] = {0, 1, 255, 256, 257, LONGEST};
	static char name[LONGEST + 1];
	char *absent = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		memset(name, 'a' + i, lengths[i]);
		name[lengths[i]] = 0;
		ask(name);
	}
	ask(NULL);
	ask((const char *)16);
	ask(absent); /* the call itself reads this page in, which is empty */
	snprintf(name, sizeof(name), "/line\n\x1b[31m\xff");
	ask(name);
}

static void *ask_many(void *count)
{
	int tid = syscall(SYS_gettid);
	char name[64];

	for (long i = 0; i < *(long *)count; i++) {
		snprintf(name, sizeof(name), "/names/%d/%ld", tid, i);
		ask(name);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct workload w = workload_args(argc, argv);
	pthread_t threads[THREADS];

	workload_wait(&w);
	ask_odd();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, ask_many, &w.count);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
