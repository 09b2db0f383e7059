/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two levels of arrays indexed by pid. Pids from PIDS_MAX on are not believed.
 */
#include "stacks/processes.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "os/threads.h"
#include "stacks/address_space.h"

enum {
	PAGE_PROCESSES = 512,
	MAX_IMAGES = 32, /* per process: the newest ones */
};

struct page {
	uint32_t count;
	struct process *processes[PAGE_PROCESSES];
};

struct processes {
	struct page *pages[PIDS_MAX / PAGE_PROCESSES];
	struct process ended; /* head of the list: newer is the process that exited first */
	uint32_t count, nr_ended, max_ended;
};

struct processes *processes_new(uint32_t max_ended)
{
	struct processes *t = calloc(1, sizeof(*t));

	if (t) {
		t->ended.older = t->ended.newer = &t->ended;
		t->max_ended = max_ended;
	}
	return t;
}

uint32_t processes_count(const struct processes *t)
{
	return t->count;
}

struct process *processes_find(const struct processes *t, int32_t pid)
{
	const struct page *page;

	if (pid <= 0 || pid >= PIDS_MAX)
		return NULL;
	page = t->pages[pid / PAGE_PROCESSES];
	return page ? page->processes[pid % PAGE_PROCESSES] : NULL;
}

static struct process *add_process(struct processes *t, int32_t pid)
{
	struct page **page = &t->pages[pid / PAGE_PROCESSES];
	struct process *p = calloc(1, sizeof(*p));

	if (!*page)
		*page = calloc(1, sizeof(**page));
	if (!*page || !p) {
		free(p);
		return NULL;
	}
	p->pid = pid;
	(*page)->processes[pid % PAGE_PROCESSES] = p;
	(*page)->count++;
	t->count++;
	return p;
}

static void leave_ended(struct processes *t, struct process *p)
{
	if (!p->older)
		return;
	p->older->newer = p->newer;
	p->newer->older = p->older;
	p->older = p->newer = NULL;
	t->nr_ended--;
}

static void forget(struct processes *t, struct process *p)
{
	struct page **page = &t->pages[p->pid / PAGE_PROCESSES];

	leave_ended(t, p);
	for (uint32_t i = 0; i < p->nr_images; i++)
		address_space_put(p->images[i].space);
	free(p->images);
	(*page)->processes[p->pid % PAGE_PROCESSES] = NULL;
	if (!--(*page)->count) {
		free(*page);
		*page = NULL;
	}
	t->count--;
	free(p);
}

void processes_free(struct processes *t)
{
	if (!t)
		return;
	for (int32_t pid = 0; pid < PIDS_MAX; pid++) {
		struct process *p = processes_find(t, pid);

		if (p)
			forget(t, p);
		else if (!t->pages[pid / PAGE_PROCESSES])
			pid |= PAGE_PROCESSES - 1;
	}
	free(t);
}

/* Makes room for one more image; the oldest one may be dropped. */
static bool make_room(struct process *p)
{
	uint32_t room = p->room ? MAX_IMAGES : 2;
	struct image *images;

	if (p->nr_images < p->room)
		return true;
	if (p->nr_images == MAX_IMAGES) {
		address_space_put(p->images[0].space);
		memmove(&p->images[0], &p->images[1], (MAX_IMAGES - 1) * sizeof(*images));
		p->nr_images--;
		return true;
	}
	images = reallocarray(p->images, room, sizeof(*images));
	if (!images)
		return false;
	p->images = images;
	p->room = room;
	return true;
}

struct process *processes_begin(struct processes *t, int32_t pid, struct address_space *space,
				double time)
{
	struct process *p = processes_find(t, pid);

	if (!p && pid > 0 && pid < PIDS_MAX)
		p = add_process(t, pid);
	if (!p || !make_room(p)) {
		address_space_put(space);
		if (p && !p->nr_images)
			forget(t, p);
		return NULL;
	}
	leave_ended(t, p);
	p->images[p->nr_images++] = (struct image){time, space};
	return p;
}

void processes_end(struct processes *t, int32_t pid)
{
	struct process *p = processes_find(t, pid);

	if (!p || p->older)
		return;
	p->older = t->ended.older;
	p->newer = &t->ended;
	p->older->newer = p;
	t->ended.older = p;
	if (++t->nr_ended > t->max_ended)
		processes_forget_ended(t);
}

int processes_forget_ended(struct processes *t)
{
	if (!t->nr_ended)
		return -1;
	forget(t, t->ended.newer);
	return 0;
}

double process_since(const struct process *p)
{
	return p->images[p->nr_images - 1].time;
}

struct address_space *process_space(const struct process *p)
{
	return p->images[p->nr_images - 1].space;
}

struct address_space *process_space_at(const struct process *p, double time,
				       struct address_space **before)
{
	uint32_t i = p->nr_images - 1;

	while (i > 0 && p->images[i].time > time)
		i--;
	*before = i > 0 ? p->images[i - 1].space : NULL;
	return p->images[i].space;
}
