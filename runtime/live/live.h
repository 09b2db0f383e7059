/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Live source: perf events of the running kernel. Names and ends of tasks come through rings of
 * their own, so that a flood of samples does not lose them; only threads that are attached to
 * report theirs in the rings of their events. Cpus that go offline and come back are followed; what
 * such a cpu did before it was attached to again is an EVENT_LOST with period 0, as nobody knows
 * how much that was.
 */
#pragma once
#include <stdint.h>

struct bpf_output;
struct counts;
struct error;
struct source;

struct live_event {
	const char *name; /* as the user knows it, for messages */
	uint32_t type;	  /* perf_event_attr.type */
	uint64_t config, config1, config2;
	uint32_t bp_type;
	const char *config1_text; /* config1 is its address; NULL: config1 says */
	uint64_t period;	  /* sample every period-th event */
	uint64_t freq;		  /* or about so many a second; 0: by period */
	const char *filter;	  /* tracepoint filter, NULL without */
	const char *cpus;	  /* only on those of this cpu list; NULL: on all that are used */
	uint8_t everywhere;	  /* of all threads, whatever the tids are */
	uint16_t class;
	uint16_t callchain;  /* sample stacks: enum stack_parts */
	uint16_t max_stack;  /* frames at most, 0: as many as the kernel gives */
	uint32_t stack_dump; /* bytes of user space's stack to copy; 0: the kernel walks over it */
	uint32_t payload;    /* bytes its fields take */
	uint8_t exclude_user, exclude_kernel, exclude_host, exclude_guest, exclude_idle;
	uint8_t perf_event; /* its payload is the sample's words */
	uint8_t resolve;    /* report what is mapped, also without stacks */
	uint8_t precise;
	uint32_t wakeup; /* 0: by the watermark */
	uint64_t sample, regs_user, regs_intr;
	int32_t program; /* descriptor of a BPF program that filters samples; 0: none */
	int32_t through; /* descriptor of a perf event array that a BPF program writes the samples
			  * to; 0: the kernel writes them */
	uint8_t counted; /* not sampled: see live_read_counts() */
	uint8_t reads;	 /* enum sample_reads, what counts its samples hold; CPUs only */
	uint32_t record; /* enum record_kind: no samples but these; 0: samples */
	uint16_t group;	 /* counted events of one number are opened as a group */
};

struct live_config {
	const struct live_event *events;
	uint32_t nr_events;
	const struct bpf_output *outputs; /* of BPF programs */
	uint32_t nr_outputs;
	const char *cpus;    /* cpu list; NULL: all that are online */
	const int32_t *tids; /* only these threads; NULL: all */
	uint32_t nr_tids;    /* no thread twice */
	const char *const
		*cgroups;	 /* only what runs in these, NULL-ended; NULL: all. Not with tids */
	uint32_t inherit;	 /* and new threads and processes of the tids */
	uint32_t enable_on_exec; /* the one thread starts to count when it executes its program */
	uint32_t pages;		 /* per ring, a power of two */
	uint32_t watermark;	 /* percent of the ring that wakes the reader */
	/* Rings keep the last records, which come when session intervals and the run end. */
	uint32_t overwrite;
};

/* What a perf_event's samples consist of: the usual and these bits. */
uint64_t live_sample_type(uint64_t sample, uint64_t freq, uint64_t period);
/* Opens everything, disabled. The events, outputs and tids must last as long as the
 * source. NULL with a
 * message. */
struct source *live_open(const struct live_config *config, struct error *err);
/* Lets the kernel report names, forks and ends of tasks already, so that none falls between a look
 * into /proc and the start. */
int live_watch_tasks(struct source *src, struct error *err);
/* Starts counting (but for enable_on_exec, where the program's start does). */
int live_enable(struct source *src, struct error *err);
/* What counted events have counted since the last call; valid until the next one. */
void live_read_counts(struct source *src, struct counts *out);
/* A cpu that has come since the start, once; -1: no more. */
int live_take_cpu(struct source *src);
/* Nanoseconds that records are held back at the moment. */
uint64_t live_slack(const struct source *src);
