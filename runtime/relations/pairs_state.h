/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The state of pairs, private to pairs.c (feeding) and pairs_setup.c (everything before).
 */
#pragma once
#include <stdbool.h>
#include "event.h"
#include "relations/pairs.h"

struct start;

enum {
	NOT_YET = -1, /* instead of the task that runs on a CPU: no switch seen so far */
	UNKNOWN = -2, /* no switch seen since a loss */
	MACHINES = 1 << (16 - EVENT_MEMBER_SHIFT),
};

/* What an event tells besides its key. */
enum tells {
	SLEEP = 1,  /* see pairs_set_end() */
	SWITCH = 2, /* see pairs_set_switch() */
	WAKEUP = 4, /* see pairs_set_wakeup() */
	EXEC = 8,   /* see pairs_set_exec() */
};

/* An integer of the payload. */
struct integer {
	uint32_t offset;
	uint8_t size; /* 0: there is none */
	bool is_signed;
};

/* What a class may do. can has the flag of struct event that forbids each thing that it may do. */
struct rule {
	uint32_t kind;	    /* of the pairs that it begins, without the place of their second */
	struct integer key; /* without: the key column */
	struct integer value;
	uint16_t stage, previous;
	uint16_t place;	  /* in its stage */
	uint8_t can;	  /* EVENT_NO_SECOND: find, EVENT_NO_FIRST: store */
	uint8_t tells;	  /* enum tells */
	uint8_t machine;  /* of a switch, wakeup or exec */
	bool has_machine; /* keys have its number in the upper bits */
	bool end_is_long;
	uint16_t end_key, end_bits;
	uint16_t awake; /* class of the event without these bits, see pairs_set_awake(); or 0 */
	uint64_t end_mask;
	uint16_t task, before, target, waker; /* offsets of a switch, wakeup or exec */
};

struct pairs {
	struct pairs_config config;
	struct start *starts;
	uint32_t last;		     /* their number - 1 */
	uint32_t shift;		     /* of a hash, to the index of its key */
	uint32_t used;		     /* starts that are not FREE */
	struct event *const *copies; /* of the events that are fed; or NULL */
	struct event **held;	     /* kept copies in the pairs of the last feed */
	uint32_t nr_held, max_held;
	double hole_end; /* earlier events are ignored */
	struct pairs_stats stats;
	uint16_t *places; /* number of classes of each stage */
	bool has_kinds;
	/* By machine: tasks by CPU, or NOT_YET, UNKNOWN. NULL: no event of it tells them. */
	int32_t *running[MACHINES];
	bool shares_keys[MACHINES]; /* see pairs_share_keys() */
	struct rule rules[EVENT_CLASSES];
};
