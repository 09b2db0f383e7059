/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Unit: what is opened and closed as a whole, through libperf. It is all that a plan has for one
 * cpu, with one ring for each group of events, or all threads with a ring each.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct decoder;
struct error;
struct plan;
struct unit;

struct unit_ring {
	void *base; /* the mapping, control page first */
	uint32_t pages;
	uint32_t target;  /* its number among the threads */
	int32_t tid;	  /* whose it is; -1: a cpu's */
	bool has_events;  /* not only tasks */
	bool is_backward; /* the kernel overwrites it */
	uint8_t group;	  /* enum plan_group */
};

/* Opens the unit of a cpu, -1: of all threads, disabled, and adds the ids of its events to the
 * decoder. Threads that have ended are left out. NULL with a message and a negative errno in *code:
 * -ENODEV where the cpu is not online, -ESRCH where no thread is left. The plan must outlive it. */
struct unit *unit_open(const struct plan *p, struct decoder *decoder, int cpu, int *code,
		       struct error *err);
void unit_close(struct unit *u);
/* Whether any event is for this unit, which otherwise only reports tasks. */
bool unit_has_events(const struct unit *u);
uint32_t unit_nr_rings(const struct unit *u);
const struct unit_ring *unit_ring(const struct unit *u, uint32_t ring);
/* The descriptors to poll for a ring, one for each target that writes to it, from number 0; -1
 * behind the last. Any of them wakes until its thread and those that inherited from it have ended.
 */
int unit_ring_fd(const struct unit *u, uint32_t ring, uint32_t number);

/* Descriptor of one of the plan's blueprints for a target, -1 where it is not opened. */
int unit_event_fd(const struct unit *u, int blueprint, uint32_t target);

int unit_watch_tasks(struct unit *u, struct error *err);
/* The events of all threads alone: an exec() does not start them. */
int unit_enable_everywhere(struct unit *u, struct error *err);
int unit_enable(struct unit *u, struct error *err);
/* Stops the events. Tasks that have rings of their own go on to be reported. */
void unit_disable(struct unit *u);
/* Keeps the kernel from writing to the rings that it overwrites; what it would write is lost. */
void unit_pause(struct unit *u, bool paused);
/* Stops the events of one class. */
void unit_disable_class(struct unit *u, uint16_t class);
/* Records of events lost so far; 0 where the kernel does not count them. */
uint64_t unit_lost(const struct unit *u);
