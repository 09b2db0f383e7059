/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Session: one run over one stream of events. It opens the source (live or a recording), decodes
 * its records, keeps the task table, counts losses and late events, cuts the stream at the ends of
 * intervals, and ends when its targets have ended. Lua pulls batches; nothing here calls back.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct counts;
struct clock_axis;
struct error;
struct event;
struct event_request;
struct excerpt;
struct formats;
struct probes;
struct push;
struct resolve_stats;
struct recorded_event;
struct session;
struct source;
struct source_clock;
struct srclines;
struct stacks;
struct tasks;

/* The target of live events. At most one of cgroups, and pids with tids is set. */
struct session_target {
	const char *cpus;	    /* CPU list such as "0-3,7"; NULL: all online CPUs */
	const int32_t *pids, *tids; /* processes with all their threads; threads */
	uint32_t nr_pids, nr_tids;
	/* 1: the events are those of all CPUs; the threads only determine the end of the run. */
	uint32_t everywhere;
	uint32_t inherit; /* include new threads and processes of pids, tids and argv */
	/* NULL-terminated command to start. It is the target, unless pids or tids are set: then it
	 * only ends the run. */
	char *const *argv;
	/* 1: the run goes on until all that the target starts has ended, too. */
	uint32_t follow;
	const char *const *cgroups; /* NULL-terminated names and expressions, see os/cgroups.h */
	uint32_t groups; /* 1: note the control groups that are made, see session_group() */
	uint32_t pages;
	uint32_t watermark; /* percent */
	/* Marks by tid, read by BPF programs: the session sets them to 1 for the target threads
	 * before the events start, a program for new threads. NULL: no marks. A workload whose
	 * events begin at its exec() gets 2, which a program then changes. */
	uint8_t *marks;
	uint32_t nr_marks;
	/* With marks: set to the base of the session's times when the events start, right before
	 * the workload. NULL: no program wants to know. */
	uint64_t *begun;
	/* Rings keep the newest records, delivered at the end of each interval and of the run. */
	uint32_t overwrite;
	uint32_t realtime; /* SCHED_FIFO priority for this process; 0: none */
};

enum { STACK_MEMBER_SHIFT = 24 };

enum batch_flags {
	BATCH_TICK = 1,	       /* an interval ended after these events, at tick_time */
	BATCH_END = 2,	       /* the stream has ended, nothing follows */
	BATCH_INTERRUPTED = 4, /* with END: by a signal */
	BATCH_LOST = 8,	       /* the batch contains EVENT_LOST */
	BATCH_NOTICE = 16      /* call session_take_notice() */
};

struct batch {
	struct event *events; /* the same address for the whole session */
	int32_t n;
	uint32_t flags;
	double tick_time; /* ns since the time base */
};

struct session_stats {
	uint64_t events;	 /* samples delivered */
	uint64_t lost;		 /* records the kernel or the recorder lost */
	uint64_t late;		 /* events delivered after a later one */
	uint64_t bad;		 /* records that could not be decoded */
	uint64_t began;		 /* tasks that have begun meanwhile, as their records say */
	uint64_t narrow;	 /* programs of 32 bits that records of mappings have shown */
	uint64_t read;		 /* bytes of the recording so far */
	uint64_t size;		 /* bytes of the recording; 0: unknown, or there is none */
	double to;		 /* time of the last event, ns since the base */
	double end_time;	 /* when the events were stopped; for a recording equal to `to` */
	int32_t workload_status; /* as in wait(2); 0 while it runs, or without a workload */
	uint64_t workload_ns;	 /* that it ran on CPUs, with its children; 0 until it has ended */
	/* A signal ended a live run that was so far behind that some events were not read. */
	bool leaves_rest;
};

/* The samples of one event. */
struct session_account {
	uint64_t read;		   /* delivered */
	uint64_t early;		   /* before all rings were enabled: not delivered */
	uint64_t rest;		   /* still in the rings, see session_count_rest() */
	uint64_t fired, lost;	   /* counted by the kernel behind its filter; of these lost */
	uint64_t enabled, running; /* ns: if it needs a counter of the hardware; otherwise 0 */
	bool has_kernel;	   /* the kernel's figures are known */
	uint32_t counters;	   /* of the kernel */
	/* Each sample is at least so many that were counted: fired is never less than per_sample *
	 * (lost + early + read + rest). 0: nobody says so. */
	uint32_t per_sample;
	/* Once the session has stopped and the rest is counted, fired is that, and at most
	 * per_sample more for each counter. Before that, fired may be more. */
	bool is_exact;
	/* fired, lost and sum_read are those of all events together of another machine, or of all
	 * that programs capture; see struct source_account. */
	bool is_sum;
	uint64_t sum_read;
	/* Of another machine: samples that were read from its stream and came to the session, are
	 * lost, or are there twice. Fewer than sum_read: something has dropped them between the
	 * two. */
	uint64_t arrived;
};

/* The time base of events, on the source's clock and as wall time (wall_sec is NAN if a recording
 * does not contain it). Valid from the first batch with events. */
struct session_clock {
	double base; /* ns */
	double wall_sec, wall_nsec;
};

/* Takes ownership of the source, also on failure (NULL: out of memory). */
struct session *session_new(struct source *source);
/* Must be called at the end of every run: probes would outlive the process. Frees the source. */
void session_free(struct session *s);

/* Whether the source is recorded: its events are in the past, see session_recorded_events(). */
bool session_is_recorded(const struct session *s);
/* Adds the source of another machine (pull/remote.h), which is connected. It is the session's from
 * here on, also on failure. Returns its member, from 1 on, or a negative errno with a message. The
 * session's own source is member 0. Before any event is added. */
int session_add_machine(struct session *s, struct source *remote, struct error *err);
/* How long a silent member may hold back the others, ns. */
void session_set_slack(struct session *s, uint64_t ns);
/* The number of members. */
uint32_t session_machines(const struct session *s);
/* Gives an axis (clocks/clock_axis.h) what the guest whose clock it shows has sent about that. */
void session_tell_axis(struct session *s, struct clock_axis *axis);
/* Returns how far the times of a member may be off from this machine's, in ns; INFINITY: unknown.
 * Sets *method, unless it is NULL, to what converts the times of another machine. */
double session_clock_error(const struct session *s, uint32_t member, const char **method);
/* The name of the machine that sends the events of a member; NULL: this one, or a recording. */
const char *session_host(const struct session *s, uint32_t member);

/* Returns the formats of a member's tracepoints; NULL with a message. */
struct formats *session_formats(struct session *s, uint32_t member, struct error *err);
/* Returns the n events of a member that is a recorded source. */
const struct recorded_event *session_recorded_events(const struct session *s, uint32_t member,
						     uint32_t *n);
/* Returns the sample_type of a perf_event's samples; 0: they differ. */
uint64_t session_sample_type(const struct session *s, const struct event_request *request);
/* Whether a member has records of an enum record_kind. */
bool session_has_records(const struct session *s, uint32_t member, uint32_t kind);

/* Returns what sends events to other places, created at the first call; NULL with a message. Only
 * events that are added later can be sent. */
struct push *session_push(struct session *s, struct error *err);
/* Adds an event; the request is copied. */
int session_add_event(struct session *s, const struct event_request *request, struct error *err);
/* Also delivers side-band records of this class (EVENT_COMM, EVENT_FORK, EVENT_EXIT). EVENT_LOST is
 * always delivered. */
void session_want(struct session *s, uint16_t class);
/* Stacks come from elsewhere than its events, see session_stack(). parts: enum stack_parts. Only
 * before the session starts. */
void session_want_stacks(struct session *s, uint32_t parts);
/* Cuts the stream at intervals of its own time, in ns; 0: never. */
void session_set_interval(struct session *s, uint64_t interval);

/* Ends the stream after a duration of its own time, in ns; 0: never. */
void session_set_duration(struct session *s, uint64_t duration);
/* Delivers only what a recording has from one time until another, on the source's clock, with both
 * ends. Older records of tasks are read all the same. The base is `from`, if anything is older. */
void session_set_window(struct session *s, uint64_t from, uint64_t until);

/* Opens and starts the events. */
int session_start(struct session *s, const struct session_target *target, struct error *err);

/* Stops the events of a class, if the source can; some may still be delivered. */
void session_close_class(struct session *s, uint16_t class);

/* Returns the next events, at most 1024. Waits up to 100 ms for them and may return none; if
 * events are only counted, until the interval ends, a signal comes or CPUs change. Pointers
 * in the previous batch become invalid: its structs hold the events of this batch, or are of class
 * EVENT_FILTERED without payload. Negative: failure, the stream has ended. */
int session_next(struct session *s, struct batch *batch, struct error *err);
/* Returns the next of the events between two times, in ns since the base, that the overwritten
 * rings of the target hold, and maybe some older ones, without those of earlier dumps; with
 * BATCH_END the last ones. *whole_from: none is missing from this time on; 0: none at all. Pointers
 * become invalid as in session_next(), which is not called for such a session. Negative: failure.
 */
int session_dump(struct session *s, double from, double until, struct batch *batch,
		 double *whole_from, struct error *err);
/* Begins a file with some of these events, as they come from session_dump(). NULL with a message.
 */
struct excerpt *session_excerpt(struct session *s, const char *path,
				const struct event_request *const *events, uint32_t n,
				struct error *err);
/* Copies the record of an event of the last batch to the excerpt, after the records of tasks and
 * losses before it; ev NULL: only those that are left. Events come in their order. name: its task
 * has this name from now on; NULL: the file knows. Returns 0, or a negative errno with a message.
 */
int session_copy(struct session *s, struct excerpt *x, const struct event *ev, const char *name,
		 struct error *err);
/* Stops the events if the run is to end: for when session_next() cannot be called for long. */
void session_check_end(struct session *s);
/* Limits the next wait of session_next() to ns from now. Of several limits the shortest counts.
 * Call it again after each session_next(). */
void session_wake_after(struct session *s, uint64_t ns);
/* Makes session_next() end its wait when a descriptor is readable, too. Only before the session
 * starts. Sources that cannot do that look around every 100 ms. */
void session_wake_on(struct session *s, int fd);
/* Makes session_next() return every 100 ms, also where no event can come. */
void session_look_around(struct session *s);
/* Clears bytes that BPF programs read right before the events stop, whatever the reason: so the
 * programs see none that perf does not count. They must outlive the session's events. For up to two
 * arrays. */
void session_clear_at_stop(struct session *s, uint8_t *bytes, uint32_t n);
/* Stops the events; session_next() still delivers existing ones up to BATCH_END. */
void session_stop(struct session *s);

/* Returns the session's own probes, created at the first call; NULL with a message if probes are
 * not available. */
struct probes *session_probes(struct session *s, struct error *err);

/* Returns the counts of counted events since the last call, in the order they were added; valid
 * until the next call. Final after session_stop(). Not for recorded sources. */
void session_read_counts(struct session *s, struct counts *out);
struct tasks *session_tasks(struct session *s, uint32_t member);
/* NULL if no event has callchain or resolve set, or there is no such member. */
struct stacks *session_stacks(struct session *s, uint32_t member);
/* Returns a part of the sample of a perf_event, valid as long as the event; see sample_part(). */
const uint64_t *session_sample_part(const struct session *s, const struct event *ev, uint64_t bit,
				    uint32_t *size);
/* Returns the count of an event with READS_ITSELF on its CPU, including this sample. Not for a
 * perf_event with other parts. */
uint64_t session_own_count(const struct session *s, const struct event *ev);
/* Returns the mask of registers in the parts REGS_USER or REGS_INTR of a class. */
uint64_t session_sample_registers(const struct session *s, uint16_t class, uint64_t bit);
/* Symbolizes an address of the event's process or of the kernel at the event's time: returns the id
 * of a stack with one frame. Requires callchain or resolve of an event. */
uint32_t session_address(struct session *s, const struct event *ev, uint64_t address);
/* NULL as session_stacks(), or out of memory. */
struct srclines *session_srclines(struct session *s, uint32_t member);
/* Returns the id of the event's stack, see stacks.h, with its member from STACK_MEMBER_SHIFT on.
 * Requires session_stacks(). */
uint32_t session_stack(struct session *s, const struct event *ev);
/* Reads the memory used by stacks; false without stacks. */
bool session_read_resolve_stats(const struct session *s, struct resolve_stats *out);
void session_read_stats(const struct session *s, struct session_stats *out);
/* Reads what is known of the samples of a class, with a read(2) for each CPU or thread. */
void session_read_account(struct session *s, uint16_t class, struct session_account *out);
/* Writes the ids of the BPF programs that are attached to the tracepoint of a class as perf's
 * events are, up to max, and returns their number. One that returns 0 hides the event from perf. */
uint32_t session_programs(struct session *s, uint16_t class, uint32_t *ids, uint32_t max);
/* Counts what is left in the rings, for a run that has ended before. session_next() is not called
 * after this. Returns false if that cannot be known. */
bool session_count_rest(struct session *s);
void session_read_clock(const struct session *s, struct session_clock *out);
/* Takes over the wall time of another session on the same clock: each reads it a little
 * differently. */
void session_share_wall(struct session *s, const struct session *with);
/* Returns the exact time of the source's clock at a time since the base, in ns. */
uint64_t session_exact_time(const struct session *s, double time);
/* Returns what the source's times are. */
const struct source_clock *session_source_clock(const struct session *s);
/* Returns the machine of a recorded member as in uname(2); "" for other sources or if unknown. */
const char *session_arch(const struct session *s, uint32_t member);
/* Returns the first CPU that shares cpu's data cache of this level; -1 if unknown. */
int session_cache_sharer(const struct session *s, int level, int cpu);
/* Returns the path of a control group of which there was a record; NULL if there was none. Valid
 * until the next events. */
const char *session_group(const struct session *s, uint32_t member, uint64_t id);
/* Returns the id of group number i of which there was a record on this machine; 0: there were not
 * so many. */
uint64_t session_group_id(const struct session *s, uint32_t i);
/* Returns the NUMA node of a CPU of a machine; -1 if unknown. */
int session_cpu_node(const struct session *s, uint32_t member, int cpu);
/* Returns a line about a source that ended early or is damaged; NULL if there is none. */
const char *session_warning(const struct session *s);
/* Takes the line about the latest change, such as a CPU that came online; "" if there is none.
 * urgent: whether it is for all users. */
const char *session_take_notice(struct session *s, uint32_t *urgent);
/* Returns each CPU that came online during the run once; -1: no more. Live only. */
int session_take_cpu(struct session *s);
/* Returns the target threads at the start of the run, or with marks the threads marked then; none
 * if the target is CPUs. */
const int32_t *session_threads(const struct session *s, uint32_t *n);
/* 1: the targets are threads (-p, -t, workload); 0: CPUs or a recording. */
int32_t session_per_thread(const struct session *s);
/* 1: losses of a ring affect only its own thread or CPU; 0: the rings belong to CPUs but the
 * targets are threads. */
int32_t session_loss_is_local(const struct session *s);
