/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/closer.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

struct closer {
	int until; /* the closer waits until this end of a pipe is closed */
};

/* Closes everything but perf events and one file: nobody shall wait for a pipe or a lock. */
static void keep_perf_events(int other)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		int fd = atoi(entry->d_name);
		char path[32] = "";

		if (entry->d_name[0] == '.' || fd == other || fd == dirfd(dir))
			continue;
		if (readlinkat(dirfd(dir), entry->d_name, path, sizeof(path) - 1) < 0 ||
		    strcmp(path, "anon_inode:[perf_event]"))
			close(fd);
	}
	if (dir)
		closedir(dir);
}

static void run_closer(int until)
{
	char byte;

	prctl(PR_SET_NAME, "closing events");
	keep_perf_events(until);
	if (read(until, &byte, 1))
		_exit(1);
	_exit(0); /* closes the events */
}

struct closer *closer_start(void)
{
	struct closer *closer = malloc(sizeof(*closer));
	int ends[2];

	if (!closer || pipe2(ends, O_CLOEXEC)) {
		free(closer);
		return NULL;
	}
	switch (fork()) {
	case -1:
		close(ends[1]);
		close(ends[0]);
		free(closer);
		return NULL;
	case 0:
		close(ends[1]);
		run_closer(ends[0]);
	}
	close(ends[0]);
	closer->until = ends[1];
	return closer;
}

void closer_release(struct closer *closer)
{
	if (!closer)
		return;
	close(closer->until);
	free(closer);
}
