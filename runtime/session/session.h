/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Session: one run over one stream of events. It opens the source (live or a recording), decodes
 * what the source hands out in time order, keeps the task table, counts losses and late events,
 * cuts the stream at the interval's boundaries and ends when its targets have. Lua pulls batches;
 * nothing here calls back.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct counts;
struct error;
struct event;
struct event_request;
struct formats;
struct probes;
struct resolve_stats;
struct recorded_event;
struct session;
struct source;
struct srclines;
struct stacks;
struct tasks;

/* Where live events are taken. At most one of argv, cgroups and pids with tids is given. */
struct session_target {
	const char *cpus;	    /* only on these: list as "0-3,7"; NULL: all that are online */
	const int32_t *pids, *tids; /* processes with all their threads; threads */
	uint32_t nr_pids, nr_tids;
	/* Threads say only when the run ends: the events are those of all cpus. */
	uint32_t everywhere;
	uint32_t inherit; /* new threads and processes of pids, tids and argv are attached to too */
	char *const *argv;	    /* NULL-ended command that is started and attached to */
	const char *const *cgroups; /* NULL-ended names and expressions, see runtime/os/cgroups.h */
	uint32_t pages;
	uint32_t watermark; /* percent */
	/* Where a BPF program looks up whether a thread is meant, by its number: those of the
	 * target get a 1 before the events start, more may come by the program. NULL: there is
	 * none. */
	uint8_t *marks;
	uint32_t nr_marks;
	/* Rings keep the last records; they come at the end of each interval and of the run. */
	uint32_t overwrite;
	uint32_t realtime; /* SCHED_FIFO's priority for this process; 0: none */
};

enum batch_flags {
	BATCH_TICK = 1,	       /* an interval has passed after these events: tick_time is its end */
	BATCH_END = 2,	       /* the stream has ended, nothing follows */
	BATCH_INTERRUPTED = 4, /* with END: by a signal */
	BATCH_LOST = 8,	       /* there are EVENT_LOST among the events */
	BATCH_NOTICE = 16      /* session_take_notice() has something to say */
};

struct batch {
	struct event *events; /* the same address for the session's life */
	int32_t n;
	uint32_t flags;
	double tick_time; /* ns since the time base */
};

struct session_stats {
	uint64_t events;	 /* samples delivered */
	uint64_t lost;		 /* records the kernel or the recorder lost */
	uint64_t late;		 /* events delivered after a younger one */
	uint64_t bad;		 /* records that could not be decoded */
	double to;		 /* time of the last event, ns since the base */
	double end_time;	 /* when the events were stopped; of a recording as to */
	int32_t workload_status; /* as wait(2) gives it; 0 while it runs, or without */
};

/* The time base of events, on the source's clock and as wall time (wall_sec is NAN where it is not
 * known: a recording that does not say). Known from the first batch with events on. */
struct session_clock {
	double base; /* ns */
	double wall_sec, wall_nsec;
};

/* Takes over the source, also when it fails: NULL, out of memory. */
struct session *session_new(struct source *source);
/* To be called at the end of a run, however it ends: the process's end would leave the probes
 * behind. Frees the source. */
void session_free(struct session *s);

/* Whether the source is a recording or the like: its events are those of session_recorded_events(),
 * and happened before. */
bool session_is_recorded(const struct session *s);
/* Formats of the source's tracepoints. */
struct formats *session_formats(struct session *s, struct error *err);
/* The n events that a recorded source has. */
const struct recorded_event *session_recorded_events(const struct session *s, uint32_t *n);
/* sample_type of the samples that a perf_event would have; 0: they differ. */
uint64_t session_sample_type(const struct session *s, const struct event_request *request);
/* Whether the source has records of an enum record_kind. */
bool session_has_records(const struct session *s, uint32_t kind);

/* The request is copied. */
int session_add_event(struct session *s, const struct event_request *request, struct error *err);
/* Side-band records of this class (EVENT_COMM, EVENT_FORK, EVENT_EXIT) are delivered too.
 * EVENT_LOST always is. */
void session_want(struct session *s, uint16_t class);
/* The stream is cut every so many ns of its own time; 0: never. */
void session_set_interval(struct session *s, uint64_t interval);

/* The stream ends when so many ns of its own time have passed; 0: it does not. */
void session_set_duration(struct session *s, uint64_t duration);

/* Opens the events and starts them. */
int session_start(struct session *s, const struct session_target *target, struct error *err);

/* Makes no more events of the class, where the source can stop that; some may still come. */
void session_close_class(struct session *s, uint16_t class);

/* The next events, at most 1024; waits for them up to 100 ms and may return none. What the last
 * batch pointed to is gone. Negative: failure, the stream has ended. */
int session_next(struct session *s, struct batch *batch, struct error *err);
/* session_next() does not wait beyond so many ns from now. To be repeated once they have passed. */
void session_wake_after(struct session *s, uint64_t ns);
/* Stops making events; session_next() still delivers what exists up to BATCH_END. */
void session_stop(struct session *s);

/* The session's own probes, none yet at the first call. NULL with a message where there can be
 * none. */
struct probes *session_probes(struct session *s, struct error *err);

/* What the events that are only counted have counted since the last call, in the order they were
 * added; valid until the next one. After session_stop() it is final. Not for recorded sources. */
void session_read_counts(struct session *s, struct counts *out);
struct tasks *session_tasks(struct session *s);
/* NULL where no event was added with callchain. */
struct stacks *session_stacks(struct session *s);
/* A part of the sample of a perf_event, as long as the event is valid; see sample_part(). */
const uint64_t *session_sample_part(const struct session *s, const struct event *ev, uint64_t bit,
				    uint32_t *size);
/* What an event that READS_ITSELF has counted on its CPU, with this one; no perf_event that has
 * parts. */
uint64_t session_own_count(const struct session *s, const struct event *ev);
/* The bits of all registers that the parts REGS_USER or REGS_INTR of a class hold. */
uint64_t session_sample_registers(const struct session *s, uint16_t class, uint64_t bit);
/* What an address of the event's process, or of the kernel, was at its time: a stack of one frame.
 * Needs callchain or resolve of an event. */
uint32_t session_address(struct session *s, const struct event *ev, uint64_t address);
/* The same for lines of source; NULL also without memory. */
struct srclines *session_srclines(struct session *s);
/* Id of the event's stack, see stacks.h; it must not be asked for without stacks. */
uint32_t session_stack(struct session *s, const struct event *ev);
/* What stacks took so far; false where there are none. */
bool session_read_resolve_stats(const struct session *s, struct resolve_stats *out);
void session_read_stats(const struct session *s, struct session_stats *out);
void session_read_clock(const struct session *s, struct session_clock *out);
/* Machine of a recorded source, as uname(2) calls it; "" for others, or if it does not say. */
const char *session_arch(const struct session *s);
/* The first of the CPUs that share cpu's data cache of this level; -1 if the source does not say.
 */
int session_cache_sharer(const struct session *s, int level, int cpu);
/* One line about a source that ended early or is damaged; NULL: there is nothing to say. */
const char *session_warning(const struct session *s);
/* What happened to the source (a cpu went or came), one line; "" when that has been told. */
const char *session_take_notice(struct session *s);
/* A cpu that came online during the run, once; -1: no more. Live only. */
int session_take_cpu(struct session *s);
/* The threads of the target when the run began, and with marks those that had them then; none
 * where it is cpus. */
const int32_t *session_threads(const struct session *s, uint32_t *n);
/* 1: the targets are threads (-p, -t, workload), 0: cpus or a recording. */
int32_t session_per_thread(const struct session *s);
/* 1: what a ring loses concerns only the thread, or cpu, that is its target; 0: the rings are those
 * of cpus but the targets threads. */
int32_t session_loss_is_local(const struct session *s);
