/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task table: two levels of arrays indexed by tid (the kernel keeps tids below 4 Mi, others are
 * not believed), so that finding a task is two loads whatever a recording contains. A task has its
 * names in order of time; the lives of a reused tid follow each other in the same history.
 */
#include "session/tasks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/threads.h"

enum {
	PAGE_TASKS = 512,
	NAME_BYTES = 16, /* TASK_COMM_LEN */
	NAMES = 9	 /* of one task: the oldest and the newest 8 */
};

struct name {
	double time; /* from when on it holds */
	char text[NAME_BYTES];
};

struct task {
	int32_t tid;
	int32_t pid; /* once it has ended */
	uint16_t nr_names, max_names;
	struct name *names;
	double exit_time;	    /* of the last life; INFINITY while it lasts */
	struct task *older, *newer; /* in the list of those that ended */
};

struct page {
	uint32_t nr_tasks;
	struct task *tasks[PAGE_TASKS];
};

struct tasks {
	struct page *pages[PIDS_MAX / PAGE_TASKS];
	struct task ended; /* head of the list: newer is the task that ended first */
	uint32_t nr_ended, max_ended;
};

static const char unknown_name[] = "<...>";

struct tasks *tasks_new(uint32_t max_exited)
{
	struct tasks *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->ended.older = t->ended.newer = &t->ended;
	t->max_ended = max_exited;
	return t;
}

static struct task *find_task(const struct tasks *t, int32_t tid)
{
	const struct page *page;

	if ((uint32_t)tid >= PIDS_MAX)
		return NULL;
	page = t->pages[tid / PAGE_TASKS];
	return page ? page->tasks[tid % PAGE_TASKS] : NULL;
}

/* The task of tid, made when there is none; NULL for an impossible tid or without memory. */
static struct task *get_task(struct tasks *t, int32_t tid)
{
	struct task *task = find_task(t, tid);
	struct page **page;

	if (task || tid <= 0 || tid >= PIDS_MAX)
		return task;
	page = &t->pages[tid / PAGE_TASKS];
	if (!*page)
		*page = calloc(1, sizeof(**page));
	task = calloc(1, sizeof(*task));
	if (!*page || !task) {
		free(task);
		return NULL;
	}
	task->tid = tid;
	task->exit_time = INFINITY;
	(*page)->tasks[tid % PAGE_TASKS] = task;
	(*page)->nr_tasks++;
	return task;
}

static bool has_ended(const struct task *task)
{
	return task->older;
}

/* A task that had ended is in use again, or leaves the table. */
static void leave_ended(struct tasks *t, struct task *task)
{
	task->older->newer = task->newer;
	task->newer->older = task->older;
	task->older = task->newer = NULL;
	task->exit_time = INFINITY;
	t->nr_ended--;
}

static void forget(struct tasks *t, struct task *task)
{
	struct page **page = &t->pages[task->tid / PAGE_TASKS];

	if (has_ended(task))
		leave_ended(t, task);
	(*page)->tasks[task->tid % PAGE_TASKS] = NULL;
	if (!--(*page)->nr_tasks) {
		free(*page);
		*page = NULL;
	}
	free(task->names);
	free(task);
}

void tasks_free(struct tasks *t)
{
	if (!t)
		return;
	for (int i = 0; i < PIDS_MAX / PAGE_TASKS; i++) {
		for (int j = 0; t->pages[i] && j < PAGE_TASKS; j++) {
			struct task *task = t->pages[i]->tasks[j];

			if (task)
				free(task->names);
			free(task);
		}
		free(t->pages[i]);
	}
	free(t);
}

/* Index of the name that holds at time; -1 before the first. */
static int name_at(const struct task *task, double time)
{
	int i = task->nr_names - 1;

	while (i >= 0 && task->names[i].time > time)
		i--;
	return i;
}

/* Opens a place for one more name behind index; may give up the second oldest for it. Returns the
 * place, NULL without memory or when the name would be the one to give up. */
static struct name *open_place(struct task *task, int index)
{
	if (task->nr_names == NAMES) {
		if (index < 1)
			return NULL;
		memmove(&task->names[1], &task->names[2], (NAMES - 2) * sizeof(struct name));
		task->nr_names--;
		index--;
	} else if (task->nr_names == task->max_names) {
		int max = task->max_names ? NAMES : 2;
		struct name *names = realloc(task->names, max * sizeof(*names));

		if (!names)
			return NULL;
		task->names = names;
		task->max_names = max;
	}
	index++;
	memmove(&task->names[index + 1], &task->names[index],
		(task->nr_names - index) * sizeof(struct name));
	task->nr_names++;
	return &task->names[index];
}

static void add_name(struct tasks *t, int32_t tid, const char *text, double time)
{
	struct task *task = get_task(t, tid);
	struct name name = {.time = time};
	struct name *place;
	int i;

	if (!task)
		return;
	memcpy(name.text, text, strnlen(text, NAME_BYTES - 1));
	if (has_ended(task) && time > task->exit_time)
		leave_ended(t, task);
	i = name_at(task, time);
	if (i >= 0 && task->names[i].time == time) {
		task->names[i] = name;
		return;
	}
	if (i >= 0 && !strcmp(task->names[i].text, name.text))
		return;
	place = open_place(task, i);
	if (place)
		*place = name;
	else if (!task->nr_names)
		forget(t, task);
}

void tasks_set(struct tasks *t, int32_t tid, const char *name, double time)
{
	add_name(t, tid, name, time);
}

void tasks_fork(struct tasks *t, int32_t tid, int32_t parent_tid, double time)
{
	const struct task *task = find_task(t, tid);
	char name[NAME_BYTES]; /* a copy: adding a name may move the others of the same task */

	/* What /proc told about the child is better than what nobody knows about its parent. */
	if (parent_tid && !find_task(t, parent_tid) && task && !has_ended(task))
		return;
	strcpy(name, tasks_name(t, parent_tid, time));
	add_name(t, tid, name, time);
}

void tasks_exit(struct tasks *t, int32_t pid, int32_t tid, double time)
{
	struct task *task = find_task(t, tid);

	if (!task || has_ended(task) || task->names[task->nr_names - 1].time > time)
		return;
	task->exit_time = time;
	task->pid = pid;
	task->older = t->ended.older;
	task->newer = &t->ended;
	task->older->newer = task;
	t->ended.older = task;
	if (++t->nr_ended > t->max_ended)
		forget(t, t->ended.newer);
}

int32_t tasks_pid_of_ended(const struct tasks *t, int32_t tid)
{
	const struct task *task = find_task(t, tid);

	return task && has_ended(task) ? task->pid : -1;
}

const char *tasks_name(struct tasks *t, int32_t tid, double time)
{
	const struct task *task = find_task(t, tid);
	int i;

	if (!task)
		return tid ? unknown_name : "swapper";
	i = name_at(task, time);
	return task->names[i < 0 ? 0 : i].text;
}

/* The number that is the whole of a directory entry's name, else 0. */
static int32_t entry_number(const char *name)
{
	char *end;
	long n;

	if (*name < '1' || *name > '9')
		return 0;
	n = strtol(name, &end, 10);
	return *end || n >= PIDS_MAX ? 0 : n;
}

/* /proc shows a kernel worker's name with what it works on behind it ("kworker/0:1-events"), which
 * no event would ever correct: cuts that off. "kworker/R-..." is the whole name of a rescuer. */
static void cut_work(char *name)
{
	static const char worker[] = "kworker/";

	if (strncmp(name, worker, sizeof(worker) - 1) || name[sizeof(worker) - 1] == 'R')
		return;
	name[strcspn(name, "-+")] = '\0';
}

/* Reads the file path (relative to dir) that holds a task's name; false when the task is gone. */
static bool scan_task(struct tasks *t, int dir, const char *path, int32_t tid)
{
	char name[64];
	int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, name, sizeof(name) - 1);
	close(fd);
	if (n <= 0)
		return false;
	name[n - (name[n - 1] == '\n')] = '\0';
	cut_work(name);
	add_name(t, tid, name, -INFINITY);
	return true;
}

/* Scans the threads of process pid, whose directory is proc/pid. */
static int scan_process(struct tasks *t, int proc, int32_t pid)
{
	char path[64];
	struct dirent *entry;
	struct stat st;
	int fd, n = 0;
	DIR *dir;

	/* "task" has two links and one for each thread: most processes need no more than that. */
	snprintf(path, sizeof(path), "%d/task", pid);
	if (fstatat(proc, path, &st, 0))
		return 0;
	if (st.st_nlink == 3) {
		snprintf(path, sizeof(path), "%d/comm", pid);
		return scan_task(t, proc, path, pid);
	}
	fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	dir = fdopendir(fd);
	if (!dir) {
		close(fd);
		return 0;
	}
	while ((entry = readdir(dir))) {
		int32_t tid = entry_number(entry->d_name);

		if (!tid)
			continue;
		snprintf(path, sizeof(path), "%d/comm", tid);
		n += scan_task(t, fd, path, tid);
	}
	closedir(dir);
	return n;
}

int tasks_scan(struct tasks *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int n = 0;

	if (!dir)
		return -errno;
	while ((entry = readdir(dir))) {
		int32_t pid = entry_number(entry->d_name);

		if (pid)
			n += scan_process(t, dirfd(dir), pid);
	}
	closedir(dir);
	return n;
}
