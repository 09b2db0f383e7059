/* SPDX-License-Identifier: GPL-2.0-only */
#include "os/threads.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "error.h"

struct list {
	int32_t *tids;
	uint32_t n, room;
};

static int add(struct list *list, int32_t tid, struct error *err)
{
	if (list->n == list->room) {
		uint32_t room = list->room ? list->room * 2 : 64;
		int32_t *grown = realloc(list->tids, room * sizeof(*grown));

		if (!grown)
			return error_set(err, -ENOMEM, "out of memory");
		list->tids = grown;
		list->room = room;
	}
	list->tids[list->n++] = tid;
	return 0;
}

static int add_process(struct list *list, int32_t pid, struct error *err)
{
	struct dirent *entry;
	char path[64];
	int ret = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return error_set(err, -ESRCH, "no such process: %d", pid);
	while (!ret && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			ret = add(list, atoi(entry->d_name), err);
	closedir(dir);
	return ret;
}

static int add_thread(struct list *list, int32_t tid, struct error *err)
{
	struct stat st;
	char path[64];

	/* /proc/TID exists for every thread, although /proc lists only processes. */
	snprintf(path, sizeof(path), "/proc/%d", tid);
	if (stat(path, &st))
		return error_set(err, -ESRCH, "no such thread: %d", tid);
	return add(list, tid, err);
}

static int compare(const void *a, const void *b)
{
	return *(const int32_t *)a - *(const int32_t *)b;
}

int threads_list(const int32_t *pids, uint32_t nr_pids, const int32_t *tids, uint32_t nr_tids,
		 int32_t **out, struct error *err)
{
	struct list list = {0};
	uint32_t n = 0;
	int ret = 0;

	for (uint32_t i = 0; i < nr_pids && !ret; i++)
		ret = add_process(&list, pids[i], err);
	for (uint32_t i = 0; i < nr_tids && !ret; i++)
		ret = add_thread(&list, tids[i], err);
	if (!ret && !list.n)
		ret = error_set(err, -ESRCH, "the process has exited");
	if (ret) {
		free(list.tids);
		return ret;
	}
	qsort(list.tids, list.n, sizeof(*list.tids), compare);
	for (uint32_t i = 0; i < list.n; i++)
		if (!i || list.tids[i] != list.tids[i - 1])
			list.tids[n++] = list.tids[i];
	*out = list.tids;
	return n;
}

/* A zombie has exited: it only waits for its parent to read its status. */
static bool has_ended(int32_t tid)
{
	char path[64], line[512], state = 0;
	const char *after;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	file = fopen(path, "re");
	if (!file)
		return true;
	/* The name, in parentheses, may contain anything. */
	if (fgets(line, sizeof(line), file) && (after = strrchr(line, ')')))
		sscanf(after + 1, " %c", &state);
	fclose(file);
	return state == 'Z' || state == 'X' || !state;
}

bool threads_ended(const int32_t *tids, uint32_t n, uint32_t *at)
{
	while (*at < n && has_ended(tids[*at]))
		++*at;
	return *at == n;
}
