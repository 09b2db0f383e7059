/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes by pid, each with its images: from when on it had which space. Those that ended are
 * kept up to a bound, then the one that ended first is forgotten.
 */
#pragma once
#include <stdint.h>

struct address_space;
struct processes;

struct image {
	double time; /* from when on */
	struct address_space *space;
};

struct process {
	int32_t pid;
	uint32_t nr_images, room; /* at least one life */
	struct image *images;
	struct process *older, *newer; /* in the list of those that ended; NULL when not in it */
};

struct processes *processes_new(uint32_t max_ended);
void processes_free(struct processes *t);
uint32_t processes_count(const struct processes *t);

/* NULL: unknown. */
struct process *processes_find(const struct processes *t, int32_t pid);
/* Process pid, known or not, has this space from time on; takes over the caller's reference. NULL:
 * no memory, or no such pid is possible. */
struct process *processes_begin(struct processes *t, int32_t pid, struct address_space *space,
				double time);
/* The process has ended. May forget another one. */
void processes_end(struct processes *t, int32_t pid);

/* Forgets the process that ended first; -1: none did. */
int processes_forget_ended(struct processes *t);

/* When its present image began. */
double process_since(const struct process *p);
/* The space it has now, or had at that time; before: the one until then, or NULL. */
struct address_space *process_space(const struct process *p);
struct address_space *process_space_at(const struct process *p, double time,
				       struct address_space **before);
