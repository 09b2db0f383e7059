/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A source of records in time order: live rings, a recording, later another host. The session
 * pulls; a source never calls up. Everything a source hands out stays mapped until its next
 * next() call.
 */
#pragma once
#include <stdint.h>
#include "error.h"
#include "event.h"

struct decoder;
struct source;

struct source_ops {
	/* Writes up to max slots with time <= until, oldest first; returns how many. 0: nothing
	 * (more) up to until; horizon says how far that is certain. -ENODATA: the source has
	 * ended and all was delivered. Other negative errno: failure, message in err. */
	int (*next)(struct source *src, struct slot *out, int max, uint64_t until,
		    struct error *err);
	/* Sleeps until next() may have more, a signal comes, or timeout (ns) has passed. NULL: the
	 * source never needs to be waited for. */
	int (*wait)(struct source *src, int64_t timeout);
	/* Stops new records from being made; what exists can still be read. May be NULL. */
	void (*stop)(struct source *src);
	/* Stops the events of one class. May be NULL: they go on. */
	void (*close_class)(struct source *src, uint16_t class);
	/* Clock of the source, ns; UINT64_MAX where it has none that can be read (a recording). */
	uint64_t (*now)(struct source *src);
	void (*free)(struct source *src);
};

/* First member of every source's struct. */
struct source {
	const struct source_ops *ops;
	struct decoder *decoder; /* knows the layouts of the source's records; owned by it */
	uint64_t horizon;	 /* all records with time <= horizon have been handed out */
	uint64_t start;		 /* time of the first possible event, ns; UINT64_MAX unknown yet */
	uint32_t nr_rings;
	const int32_t *ring_tid; /* thread of each ring; NULL: the rings are those of cpus */
	struct error notice;	 /* what the user may want to know; emptied when it was told */
};
