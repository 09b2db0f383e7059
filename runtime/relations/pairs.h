/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * For each event, finds the preceding event with the same key that is one stage earlier. The table
 * of starts holds at most one event per key: the latest that may start a pair.
 *
 * The key is the key column of struct event, or an integer of the payload for classes with
 * pairs_set_key(). The input is one ordered stream. An EVENT_LOST drops all starts, and until the
 * end of the hole no event takes part, because its partner may be lost; with per_instance only the
 * ring with the hole is concerned. The rules for an event of stage i of n:
 *
 * find = (i > 0 or cycle) and not EVENT_NO_SECOND: the start with this key is removed from the
 * table, whatever its stage is. It makes a pair if its stage is the preceding one (the last one for
 * stage 0 in a cycle) and if it is strictly older.
 *
 * store = (i < n-1 or cycle) and not EVENT_NO_FIRST: the event is stored under its key and replaces
 * a start that is there already, which is counted. If the event is late, the younger of the two
 * stays. With EVENT_NO_START it removes that start but is not stored: it is unknown whether it
 * starts a pair.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct event;
struct pairs;
struct timeline;

struct pairs_config {
	uint32_t stages;
	uint32_t cycle;	       /* the last stage is followed by the first */
	uint32_t per_instance; /* the key is the CPU or thread: a hole concerns only its own ring */
	uint32_t max_keys;     /* the oldest starts are evicted beyond it; 0: 2 Mi (256 MB) */
	struct timeline *keep; /* where starts are kept with their payload, must outlive the pairs;
				  NULL: they are not kept, and pair.first_event is NULL */
};

struct pair {
	double first_time, second_time; /* ns */
	double ns;			/* from the first to the second */
	uint32_t kind; /* identifies the two classes: by stage, then by the index of the first and
			  of the second in its stage, in the order of pairs_add_class() */
	int64_t key;
	uint16_t first_class, second_class;
	uint32_t second; /* index into the events that were fed */
	int32_t first_tid, first_cpu;
	int64_t first_value;	   /* see pairs_set_value() */
	struct event *first_event; /* kept copy, released by the next pairs_feed(); or NULL */
};

enum {
	PAIRS_NO_SECOND = 0xffffffff, /* pair.second of a waiting start */
	PAIRS_MACHINE_SHIFT = 32      /* per_instance: first bit of the machine in a key */
};

struct pairs_stats {
	uint64_t pairs;
	uint64_t replaced;   /* starts that were replaced by a later one with their key */
	uint64_t unstarted;  /* ends that found no start, but for exits of tasks that are killed */
	uint64_t mismatched; /* ends that removed a start they make no pair with (stage or time) */
	uint64_t dropped;    /* starts dropped because of lost records */
	uint64_t ended;	     /* starts removed by pairs_set_end() or pairs_set_exec() */
	uint64_t unneeded;   /* wakeups of running tasks, see pairs_set_wakeup() */
	uint64_t unreported; /* switches that are missing, see pairs_set_switch() */
	uint64_t evicted;    /* starts dropped because of max_keys or the timeline's bound */
	uint64_t stored;     /* waiting starts */
};

/* Returns NULL with errno; EINVAL without stages. */
struct pairs *pairs_new(const struct pairs_config *config);
void pairs_free(struct pairs *p);
/* Events of class take part as this stage (from 0); those of other classes are ignored. To be
 * called before the first pairs_feed(). Returns -EINVAL for EVENT_LOST and for a stage that does
 * not exist. */
int pairs_add_class(struct pairs *p, uint16_t class, uint32_t stage);

/* The key of events of class is the integer of size bytes (1, 2, 4 or 8) at offset of the payload,
 * which must be long enough. Returns -EINVAL for another size. */
int pairs_set_key(struct pairs *p, uint16_t class, uint32_t offset, uint32_t size,
		  uint32_t is_signed);

/* Pairs that an event of class begins have the integer of size bytes at offset of its payload as
 * first_value. For a caller that needs no more of the event, this is cheaper than keeping it.
 * Returns -EINVAL for another size. */
int pairs_set_value(struct pairs *p, uint16_t class, uint32_t offset, uint32_t size,
		    uint32_t is_signed);

/* An event of class with one of the bits of mask in the integer of bits_size bytes (4 or 8) at
 * bits_offset removes the older start whose key is the int32_t at key_offset, such as that of the
 * task that a switch puts to sleep. The class need not take part in pairs. */
void pairs_set_end(struct pairs *p, uint16_t class, uint32_t key_offset, uint32_t bits_offset,
		   uint32_t bits_size, uint64_t mask);

/* An event of class that has none of these bits is also an event of class `awake`, if its key there
 * is positive: such as the switch from a task that goes on waiting for a CPU. That class is one of
 * the first stage, without a cycle, and its own events are not fed. */
void pairs_set_awake(struct pairs *p, uint16_t class, uint16_t awake);

/* Wakeups of a task that is still running: no switch to the task follows, so they do not start a
 * pair. A task is running if it wakes itself, or if the target CPU has switched to it. Between a
 * loss and the next switch of the CPU this is unknown, and the wakeup does not start a pair either.
 * The offsets are those of int32_t in the payload. The classes need not take part in pairs.
 * A switch is missing if a CPU switches from another task than it has switched to. machine: where
 * the events come from, as in their flags. Returns -EINVAL for a machine that cannot be, or
 * -ENOMEM. */
int pairs_set_wakeup(struct pairs *p, uint16_t class, uint32_t machine, uint32_t task_offset,
		     uint32_t cpu_offset, uint32_t waker_offset);
int pairs_set_switch(struct pairs *p, uint16_t class, uint32_t machine, uint32_t task_offset,
		     uint32_t before_offset);

/* At an event of class, the thread that executes a program gets the id of its process's first
 * one, which ends: the start whose key is its former id goes on with the new one, and that of the
 * first thread is removed. All keys are threads of the machine; has_machine: with its number in the
 * upper bits. The offsets are those of int32_t in the payload. The class takes no part in pairs. */
void pairs_set_exec(struct pairs *p, uint16_t class, uint32_t machine, bool has_machine,
		    uint32_t task_offset, uint32_t before_offset);

/* With per_instance: the keys of this machine's events are CPUs or threads of machine 0, such as
 * those of a guest's virtual CPUs. A hole in its events is not one of a single key. */
void pairs_share_keys(struct pairs *p, uint32_t machine);

/* For a caller that keeps the events anyway: while events are fed, copies[i] is the copy of event i
 * in config.keep, or NULL. copies = NULL: the starts are copied. */
void pairs_use_copies(struct pairs *p, struct event *const *copies);

/* Feeds n events and writes the pairs that they complete to out (room for n). Returns how many, or
 * -ENOMEM before any event was fed. */
int pairs_feed(struct pairs *p, const struct event *events, int n, struct pair *out);

/* Walks the waiting starts in no order: writes one to *out, without a second event, and returns
 * where to continue; 0 after the last one. at: 0, or what the last call returned. Feeding ends the
 * walk. */
uint32_t pairs_next_stored(const struct pairs *p, uint32_t at, struct pair *out);
/* Returns the time of the oldest waiting start, INFINITY without one. Looks at all of them. */
double pairs_oldest(const struct pairs *p);
void pairs_read_stats(const struct pairs *p, struct pairs_stats *out);
