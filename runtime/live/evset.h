/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Perf events that are opened and closed together, through libperf: all events of an evlist for one
 * CPU, with one ring per group of events, or those of all threads with a ring each.
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
	uint32_t target;  /* index among the threads */
	int32_t tid;	  /* thread of the ring; -1: it belongs to a CPU */
	bool has_events;  /* it gets more than reports of tasks */
	bool is_backward; /* the kernel overwrites it */
	uint8_t group;	  /* enum evlist_group */
};

/* Opens the events of a CPU, or with -1 those of all threads, disabled, and adds their ids to the
 * decoder. Threads that have exited are skipped. Returns NULL with a message and a negative errno
 * in *code: -ENODEV if the CPU is offline, -ESRCH if no thread is left. The evlist must outlive the
 * evset. */
struct evset *evset_open(const struct evlist *evlist, struct decoder *decoder, int cpu, int *code,
			 struct error *err);
void evset_close(struct evset *set);
/* Returns whether it has any event besides the one that reports tasks. */
bool evset_has_events(const struct evset *set);
uint32_t evset_nr_rings(const struct evset *set);
const struct evset_ring *evset_ring(const struct evset *set, uint32_t ring);
/* Returns the descriptors to poll for a ring: one per target that writes to it, from number 0; -1
 * after the last one. Each of them wakes until its thread and those that inherited from it have
 * exited. */
int evset_ring_fd(const struct evset *set, uint32_t ring, uint32_t number);

/* Returns the descriptor of an evsel of the evlist for a target; -1 if it is not open. */
int evset_event_fd(const struct evset *set, int number, uint32_t target);

int evset_watch_tasks(struct evset *set, struct error *err);
/* Enables only the events of all threads, which an exec() does not start. */
int evset_enable_everywhere(struct evset *set, struct error *err);
int evset_enable(struct evset *set, struct error *err);
/* Stops the events. Tasks with rings of their own are still reported. */
void evset_disable(struct evset *set);
/* Stops the kernel from writing to the rings that it overwrites; records are lost meanwhile. */
void evset_pause(struct evset *set, bool paused);
/* Stops the events of one class. */
void evset_disable_class(struct evset *set, uint16_t class);
/* Returns the records lost so far; 0 if the kernel does not count them. */
uint64_t evset_lost(const struct evset *set);
