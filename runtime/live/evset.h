/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Evset: the opened events of an evlist on one CPU, with one ring per group of events, or on all
 * threads, with one ring per thread. They are opened and closed together, through libperf.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct decoder;
struct error;
struct evlist;
struct evset;
struct source_account;

struct evset_ring {
	void *base; /* the mapping, control page first */
	uint32_t pages;
	uint32_t target;  /* index of its thread */
	int32_t tid;	  /* its thread; -1: it belongs to a CPU */
	bool has_events;  /* it contains more than task records */
	bool is_backward; /* the kernel overwrites it */
	uint8_t group;	  /* enum evlist_group */
};

/* Opens the evset of a CPU (-1: of all threads), disabled, and adds the ids of its events to the
 * decoder. Threads that have exited are skipped. NULL with a message and a negative errno in *code:
 * -ENODEV if the CPU is not online, -ESRCH if all threads have exited. The evlist must outlive it.
 */
struct evset *evset_open(const struct evlist *evlist, struct decoder *decoder, int cpu, int *code,
			 struct error *err);
void evset_close(struct evset *set);
/* Whether it contains any event besides the one that reports tasks. */
bool evset_has_events(const struct evset *set);
uint32_t evset_nr_rings(const struct evset *set);
const struct evset_ring *evset_ring(const struct evset *set, uint32_t ring);
/* Returns the descriptors to poll for a ring, one per target that writes to it, from number 0; -1
 * after the last one. Each wakes the poller until its thread and that thread's children have ended.
 */
int evset_ring_fd(const struct evset *set, uint32_t ring, uint32_t number);

/* Returns the descriptor of an evsel of the evlist for a target, -1 if it is not open. */
int evset_event_fd(const struct evset *set, int number, uint32_t target);

int evset_enable_tasks(struct evset *set, struct error *err);
/* Enables the events of GROUP_EVERYWHERE, which enable_on_exec does not start. */
int evset_enable_everywhere(struct evset *set, struct error *err);
int evset_enable(struct evset *set, struct error *err);
/* Disables the events. Task records in rings of their own continue. */
void evset_disable(struct evset *set);
/* Stops the kernel from writing to overwritten rings, or lets it continue. Records are lost
 * meanwhile. */
void evset_pause(struct evset *set, bool paused);
/* Disables the events of one class. */
void evset_disable_class(struct evset *set, uint16_t class);
/* Returns the number of lost records of events; 0 if the kernel does not count them. */
uint64_t evset_lost(const struct evset *set);
/* Adds what the kernel says about the events of a class. Returns false if it has none. */
bool evset_account(const struct evset *set, uint16_t class, struct source_account *out);
/* Writes the ids of BPF programs on the tracepoint of a class, up to max. Returns their number. */
uint32_t evset_programs(const struct evset *set, uint16_t class, uint32_t *ids, uint32_t max);
