/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unit: what is opened and closed as a whole, through libperf. It is all that a evlist has for one
 * cpu, with one ring for each group of events, or all threads with a ring each.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct decoder;
struct error;
struct evlist;
struct evset;

struct evset_ring {
	void *base; /* the mapping, control page first */
	uint32_t pages;
	uint32_t target;  /* its number among the threads */
	int32_t tid;	  /* whose it is; -1: a cpu's */
	bool has_events;  /* not only tasks */
	bool is_backward; /* the kernel overwrites it */
	uint8_t group;	  /* enum evlist_group */
};

/* Opens the evset of a cpu, -1: of all threads, disabled, and adds the ids of its events to the
 * decoder. Threads that have ended are left out. NULL with a message and a negative errno in *code:
 * -ENODEV where the cpu is not online, -ESRCH where no thread is left. The evlist must outlive it.
 */
struct evset *evset_open(const struct evlist *p, struct decoder *decoder, int cpu, int *code,
			 struct error *err);
void evset_close(struct evset *u);
/* Whether any event is for this evset, which otherwise only reports tasks. */
bool evset_has_events(const struct evset *u);
uint32_t evset_nr_rings(const struct evset *u);
const struct evset_ring *evset_ring(const struct evset *u, uint32_t ring);
/* The descriptors to poll for a ring, one for each target that writes to it, from number 0; -1
 * behind the last. Any of them wakes until its thread and those that inherited from it have ended.
 */
int evset_ring_fd(const struct evset *u, uint32_t ring, uint32_t number);

/* Descriptor of one of the evlist's evsels for a target, -1 where it is not opened. */
int evset_event_fd(const struct evset *u, int number, uint32_t target);

int evset_watch_tasks(struct evset *u, struct error *err);
/* The events of all threads alone: an exec() does not start them. */
int evset_enable_everywhere(struct evset *u, struct error *err);
int evset_enable(struct evset *u, struct error *err);
/* Stops the events. Tasks that have rings of their own go on to be reported. */
void evset_disable(struct evset *u);
/* Keeps the kernel from writing to the rings that it overwrites; what it would write is lost. */
void evset_pause(struct evset *u, bool paused);
/* Stops the events of one class. */
void evset_disable_class(struct evset *u, uint16_t class);
/* Records of events lost so far; 0 where the kernel does not count them. */
uint64_t evset_lost(const struct evset *u);
