/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source: where records come from. Live rings and recordings are sources; so is whatever else can
 * hand out records in time order. The session pulls: a source never calls up, and knows nothing of
 * Lua, tasks or stacks.
 *
 * To write one: embed struct source as the first member, set ops and decoder (the source owns
 * both the struct and the decoder), and fill info. Then, in this order, the session calls
 *
 *   formats(), sample_type(), has_records()   to resolve what the user named
 *   add_event()                               once for each event
 *   open()                                    attaches to the target; nothing is delivered yet
 *   start()                                   events happen from here on
 *   next(), wait()                            until next() returns -ENODATA
 *   stop()                                    somewhere in between, if the run ends early
 *   free()
 *
 * A record is a perf_event_header with its body, as perf_event_open(2) describes, laid out as the
 * attributes say that the source gave to its decoder. Those handed out stay mapped until the next
 * next(). Losses are PERF_RECORD_LOST records in their place. Records of another form are
 * marked in their slot's flags (SLOT_OWN_SHIFT) and decoded by the source itself.
 *
 * Callbacks that are NULL are not needed, unless the comment says otherwise.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "error.h"
#include "event.h"
#include "event_request.h"

struct buildids;
struct counts;
struct decoder;
struct formats;
struct source;

enum {
	SLOT_OWN_SHIFT = 16, /* bits of a slot's flags from here on: not 0 says that the record has
			      * a form of the source's own, and which */
	CACHE_LEVELS = 4
};

/* What to attach to. A source may refuse what it does not have. */
struct source_target {
	const char *cpus;    /* CPU list; NULL: all that are online */
	const int32_t *tids; /* only these threads, none twice; NULL: all */
	uint32_t nr_tids;
	const char *const *cgroups; /* only what runs in these, NULL-ended; NULL: all. Not with
				     * tids. See os/cgroups.h */
	bool inherit;		    /* and new threads and processes of the tids */
	bool enable_on_exec;	    /* the one thread counts from when it executes its program */
	bool overwrite;		    /* rings keep the newest records, which are delivered at the
				     * end of each interval and of the run */
	uint32_t pages;		    /* per ring, a power of two */
	uint32_t watermark;	    /* percent of the ring that wakes the reader */
};

/* Facts about a source. Constant once open() has returned. */
struct source_info {
	bool is_recorded; /* it all happened before: now() is UINT64_MAX, empty intervals are
			   * skipped, and its events are those listed below */
	bool is_here;	  /* its tasks are those of this machine now, as /proc lists them */
	bool own_kernel;  /* its kernel is the running one: kernel symbols are known */
	const char *arch; /* as uname(2) calls it; NULL: this machine, or not known */
	const struct buildids *build_ids; /* of the files that ran; NULL: look at the files */
	/* Wall time when the source's clock was 0: seconds, and ns to add. NAN: not known. */
	double wall_sec, wall_nsec;
	const struct recorded_event *events; /* of a recorded source */
	uint32_t nr_events;
	/* By cache level - 1, for each CPU of CPUS_MAX: 1 + the first CPU that shares its data
	 * cache; 0: not known. NULL: not known of any, or this machine's. */
	const uint16_t *first_sharers[CACHE_LEVELS];
};

struct source_ops {
	/* Formats of the source's tracepoints; owned by the source. NULL with a message. Required.
	 */
	struct formats *(*formats)(struct source *src, struct error *err);
	/* perf_event_attr.sample_type of an event's samples; 0: they differ. Required. */
	uint64_t (*sample_type)(struct source *src, const struct event_request *req);
	/* Whether it has records of an enum record_kind. Required. */
	bool (*has_records)(struct source *src, uint32_t kind);
	/* Takes an event; the request lasts only for the call. Required. */
	int (*add_event)(struct source *src, const struct event_request *req, struct error *err);
	/* Attaches to the target. Names, forks and ends of tasks are recorded from here on, so that
	 * a scan of /proc that follows misses none. Required. */
	int (*open)(struct source *src, const struct source_target *target, struct error *err);
	/* Lets the events happen; with enable_on_exec the program's start does. Sets src->start. */
	int (*start)(struct source *src, struct error *err);

	/* Writes up to max slots with time <= until, oldest first; returns how many. 0: none up to
	 * `until` for now; src->horizon says how far that is certain. -ENODATA: the source has
	 * ended and all was delivered. Other negative errno: failure, message in err. Required. */
	int (*next)(struct source *src, struct slot *out, int max, uint64_t until,
		    struct error *err);
	/* Sleeps until next() may have more, a signal comes, or timeout (ns) has passed. -ESRCH:
	 * all threads of the target have ended. NULL: next() always has more. */
	int (*wait)(struct source *src, int64_t timeout);
	/* Makes no new records; those that exist can still be read. */
	void (*stop)(struct source *src);
	/* Stops the events of one class. NULL: they go on, and are dropped. */
	void (*close_class)(struct source *src, uint16_t class);
	/* The source's clock now, ns; UINT64_MAX if it cannot be read. Required. */
	uint64_t (*now)(struct source *src);
	/* For how long records are held back at the moment, to order them; ns. NULL: not at all. */
	uint64_t (*hold)(struct source *src);

	/* What counted events have counted since the last call; valid until the next one. NULL: the
	 * source only has samples. */
	void (*read_counts)(struct source *src, struct counts *out);
	/* A CPU that came online after open(), each once; -1: no more. NULL: CPUs do not come. */
	int (*next_cpu)(struct source *src);

	/* For slots with bits from SLOT_OWN_SHIFT on. Fills ev with the record's event, all but
	 * time, ring and flags: 1, or -EBADMSG. */
	int (*decode)(struct source *src, const struct slot *slot, struct event *ev);
	/* The same for a run of slots that are on time (no flags of enum event_flags) and not older
	 * than `from`; fills all of ev, with base subtracted from the times. Returns how many of
	 * the n it decoded; 0: the next one is for decode(). */
	int (*decode_run)(struct source *src, const struct slot *slots, int n, uint64_t base,
			  uint64_t from, struct event *ev);

	/* Required. */
	void (*free)(struct source *src);
};

/* First member of every source's struct. */
struct source {
	const struct source_ops *ops;
	struct decoder *decoder; /* knows the layouts of the source's records */
	struct source_info info;
	uint64_t horizon; /* all records with time <= horizon have been handed out */
	uint64_t start;	  /* time of the first possible event, ns; UINT64_MAX: not known yet */
	uint32_t nr_rings;
	const int32_t *ring_tid; /* thread of each ring; NULL: rings belong to CPUs */
	struct error notice;	 /* news for the user, such as a CPU that went; the session
				  * empties it */
	struct error warning;	 /* what is damaged though it can be read; final at the end */
};
