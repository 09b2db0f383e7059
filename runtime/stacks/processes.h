/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes by pid, each with its images: the spaces it had, and since when. Processes that have
 * exited are kept up to a bound; beyond it the one that exited first is forgotten.
 */
#pragma once
#include <stdint.h>

struct address_space;
struct processes;

struct image {
	double time; /* when it began */
	struct address_space *space;
};

struct process {
	int32_t pid;
	uint32_t nr_images, room; /* at least one image */
	struct image *images;
	struct process *older, *newer; /* in the list of exited processes; NULL: not in it */
};

struct processes *processes_new(uint32_t max_ended);
void processes_free(struct processes *t);
uint32_t processes_count(const struct processes *t);

/* Returns NULL if it is unknown. */
struct process *processes_find(const struct processes *t, int32_t pid);
/* Process pid, known or not, has this space from time on. Takes over the caller's reference.
 * Returns NULL without memory or for an impossible pid. */
struct process *processes_begin(struct processes *t, int32_t pid, struct address_space *space,
				double time);
/* The process has exited. Another one may be forgotten. */
void processes_end(struct processes *t, int32_t pid);

/* Forgets the process that exited first. Returns -1 if there is none. */
int processes_forget_ended(struct processes *t);

/* Returns when its current image began. */
double process_since(const struct process *p);
/* Return its current space, and its space at a time. before: the space until then, or NULL. */
struct address_space *process_space(const struct process *p);
struct address_space *process_space_at(const struct process *p, double time,
				       struct address_space **before);
