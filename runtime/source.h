/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Source: the interface of everything that delivers records in time order, such as live rings and
 * recordings. The session pulls: a source never calls up, and knows nothing about Lua, tasks or
 * stacks.
 *
 * To write a source, embed struct source as the first member, set ops and decoder (the source owns
 * both the struct and the decoder), and fill info. The session then calls, in this order:
 *
 *   formats(), sample_type(), has_records()   to resolve the user's selectors
 *   add_event()                               once per event
 *   open()                                    attaches to the target; nothing is delivered yet
 *   start()                                   enables the events
 *   next(), wait()                            until next() returns -ENODATA
 *   stop()                                    in between, if the run ends early
 *   free()
 *
 * A record is a perf_event_header and its body, as in perf_event_open(2). Its layout is described
 * by the attributes that the source gave to its decoder. Delivered records stay mapped until the
 * following call of next(). Losses are PERF_RECORD_LOST records at their place. Records in another
 * form are marked in their slot's flags (SLOT_OWN_SHIFT), and the source decodes them itself.
 *
 * Callbacks may be NULL unless marked as required.
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
struct source_account;

enum { CACHE_LEVELS = 4 };

/* The target of the events. Sources may reject what they do not support. */
struct source_target {
	const char *cpus;    /* CPU list; NULL: all online CPUs */
	const int32_t *tids; /* only these threads, without duplicates; NULL: all */
	uint32_t nr_tids;
	const char *const *cgroups; /* only tasks in these cgroups, NULL-terminated; NULL: all. Not
				     * together with tids. See os/cgroups.h */
	bool inherit;		    /* include new threads and processes of the tids */
	bool enable_on_exec;	    /* start events when the single thread calls exec() */
	bool overwrite;		    /* rings keep the newest records, which are delivered at the
				     * end of each interval and of the run */
	bool groups;		    /* also record CGROUP: groups are named */
	bool mappings;		    /* also record MMAP: addresses will be symbolized */
	uint32_t pages;		    /* per ring, a power of two */
	uint32_t watermark;	    /* percent of the ring that wakes the reader */
};

enum {
	SOURCE_CLOCK_LOCAL = -1, /* the kernel's local clock, perf's default */
	SOURCE_CLOCK_MIXED = -2	 /* the events have different clocks */
};

/* The clock of a source's times, and what the source knows about it. */
struct source_clock {
	int32_t id;	     /* clockid_t, or one of the above */
	bool is_live;	     /* of this machine, and running */
	bool has_conversion; /* recorded: time = zero + (tsc * mult >> shift), in ns */
	uint64_t shift, mult, zero;
};

/* Facts about a source. Constant after open(). */
struct source_info {
	bool is_recorded; /* the events are in the past: now() is UINT64_MAX, empty intervals are
			   * skipped, and the events are those listed below */
	bool is_local;	  /* the tasks are those in /proc of this machine */
	bool own_kernel;  /* the kernel is the running one, so its symbols are known */
	const char *host; /* the machine that sends the events; NULL: this one, or a recording */
	bool is_live;	  /* sent by another machine as they happen, with heart-beats, on the clock
			   * of this one */
	const char *arch; /* machine as in uname(2); NULL: this machine, or unknown */
	const struct buildids
		*build_ids; /* of the executed files; NULL: read them from the files */
	struct source_clock clock;
	/* Wall time when the source's clock was 0: seconds, and ns to add. NAN: unknown. */
	double wall_sec, wall_nsec;
	const struct recorded_event *events; /* of a recorded source */
	uint32_t nr_events;
	/* By cache level - 1, for each CPU below CPUS_MAX: 1 + the first CPU that shares its data
	 * cache; 0: unknown. NULL: unknown for all CPUs, or a live source. */
	const uint16_t *first_sharers[CACHE_LEVELS];
	const uint16_t *nodes; /* for each CPU 1 + its NUMA node; 0 and NULL as above */
};

struct source_ops {
	/* Returns the formats of the source's tracepoints, owned by the source; NULL with a
	 * message. Required. */
	struct formats *(*formats)(struct source *src, struct error *err);
	/* Returns perf_event_attr.sample_type of an event's samples; 0: they differ. Required. */
	uint64_t (*sample_type)(struct source *src, const struct event_request *req);
	/* Whether it has records of an enum record_kind. Required. */
	bool (*has_records)(struct source *src, uint32_t kind);
	/* Adds an event; the request is valid only during the call. Required. */
	int (*add_event)(struct source *src, const struct event_request *req, struct error *err);
	/* Attaches to the target. Starts recording COMM, FORK and EXIT, so that a following scan of
	 * /proc misses no task. Required. */
	int (*open)(struct source *src, const struct source_target *target, struct error *err);
	/* Enables the events, unless enable_on_exec is set. Sets src->start. */
	int (*start)(struct source *src, struct error *err);

	/* Writes up to max slots with time <= until, oldest first, and returns their number. 0: no
	 * more for now; src->horizon tells up to which time. -ENODATA: the source has ended and
	 * everything was delivered. Other negative errno: failure, message in err. Required. */
	int (*next)(struct source *src, struct slot *out, int max, uint64_t until,
		    struct error *err);
	/* Sleeps until next() may have more, a signal arrives, or timeout (ns) has passed. -ESRCH:
	 * all threads of the target have ended. NULL: next() always has more. */
	int (*wait)(struct source *src, int64_t timeout);
	/* Returns the descriptor to poll before next() may have more, and the events to poll for;
	 * -1: none now. Required of members of a join. */
	int (*poll_fd)(struct source *src, short *events);
	/* Disables the events; existing records can still be read. */
	void (*stop)(struct source *src);
	/* Disables the events of one class. NULL: they continue, and the caller drops them. */
	void (*close_class)(struct source *src, uint16_t class);
	/* Returns the source's clock in ns; UINT64_MAX if it cannot be read. Required. */
	uint64_t (*now)(struct source *src);
	/* Returns how long records are currently held back to order them, in ns. NULL: 0. */
	uint64_t (*hold)(struct source *src);

	/* Returns the counts of counted events since the last call; valid until the next call.
	 * NULL: the source only has samples. */
	void (*read_counts)(struct source *src, struct counts *out);
	/* Returns what the kernel, a program or a sender says about the events of a class: for
	 * perf's, with a read(2) for each CPU or thread. Returns false if nobody says anything.
	 * Final after stop(). NULL: nobody ever does. */
	bool (*account)(struct source *src, uint16_t class, struct source_account *out);
	/* Writes the ids of the BPF programs that are attached to the tracepoint of a class as
	 * perf's events are, up to max, and returns their number. NULL: there are none. */
	uint32_t (*programs)(struct source *src, uint16_t class, uint32_t *ids, uint32_t max);
	/* Returns each CPU that came online after open() once; -1: no more. NULL: never any. */
	int (*next_cpu)(struct source *src);

	/* Returns how many bytes of its input have been read, and sets *total to those that there
	 * are; 0: unknown. NULL: it has no input. */
	uint64_t (*position)(const struct source *src, uint64_t *total);
	/* Converts a time in a record to that of slots. NULL: they are the same. */
	uint64_t (*convert)(struct source *src, uint64_t time);
	/* Decodes a slot of its own form: fills ev except time, ring and flags; key of an
	 * EVENT_LOST is its end on the source's clock. Returns 1 or -EBADMSG. */
	int (*decode)(struct source *src, const struct slot *slot, struct event *ev);
	/* Decodes consecutive slots that are in order (no flags of enum event_flags) and not older
	 * than `from`. Fills ev completely, with base subtracted from the times. Returns the number
	 * of decoded slots; 0: use decode() for the next one. */
	int (*decode_run)(struct source *src, const struct slot *slots, int n, uint64_t base,
			  uint64_t from, struct event *ev);

	/* Required. */
	void (*free)(struct source *src);
};

/* What those who count the samples of an event independently of their reader say so far. */
struct source_account {
	uint64_t fired;		   /* counted, behind the kernel's filter */
	uint64_t lost;		   /* of these, records that did not fit into a ring */
	uint64_t enabled, running; /* ns on all CPUs; running: on the hardware. 0: unknown */
	uint32_t counters;	   /* that were read */
	uint32_t per_sample;	   /* each sample is at least so many of them; 0: unknown */
	uint64_t elsewhere;	   /* samples that were read, but did not go to the session */
	/* Each sample is `per_sample` of those that were counted, and each of these is in a sample
	 * or lost, except for the last ones of each counter: less than a sample, and one that it
	 * has counted while it stopped. */
	bool is_exact;
	/* The figures are those of all events together that come from another machine, and `read`
	 * are their samples; or the bytes of all events together that programs capture. */
	bool is_sum;
	uint64_t read;
	uint64_t dropped; /* of these, samples that were reported lost or are there twice */
};

/* First member of every source's struct. */
struct source {
	const struct source_ops *ops;
	struct decoder *decoder; /* for the layouts of the source's records */
	struct source_info info;
	uint64_t horizon; /* all records with time <= horizon have been delivered */
	/* Of overwritten rings: what was delivered last has all records from this time on; 0: all
	 * since the dump before, or since the start. */
	uint64_t whole_from;
	uint64_t dump_from; /* older records need not be delivered from overwritten rings */
	bool counts_rest;   /* what next() returns is only counted: nothing else may be done with it
			     */
	uint64_t start;	    /* time of the first possible event, ns; UINT64_MAX: not known yet */
	uint32_t nr_rings;
	int wake_fd; /* wait() also returns when this descriptor is readable; -1: none. Sources
		      * without wait() ignore it */
	const int32_t *ring_tid; /* thread of each ring; NULL: rings belong to CPUs */
	bool is_urgent;		 /* the notice is for all users, not only with -v */
	struct error notice;	 /* news for the user, such as a CPU that went offline; cleared by
				  * the session */
	struct error warning;	 /* damage that did not prevent reading; final at the end */
};
