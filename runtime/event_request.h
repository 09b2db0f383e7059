/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event request: a resolved selector, passed unchanged from Lua through the session to the source
 * that opens it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

/* A BPF map of records: a ring buffer, or a perf event array with a ring for each CPU. The *_at
 * members are offsets in the records of a ring buffer, -1: no such member. */
struct bpf_output {
	int32_t map;	  /* descriptor */
	uint32_t per_cpu; /* 1: a perf event array; 0: a ring buffer */
	uint32_t size;	  /* bytes of a ring buffer; pages of each CPU's ring */
	int32_t time_at;  /* u64 of bpf_ktime_get_ns(); -1: ordered by the time of reading */
	int32_t pid_at, tid_at, cpu_at; /* 32 bits each */
	const uint64_t *lost; /* the program's count of records that did not fit; or NULL */
};

/* Samples that a generated BPF program writes in the kernel's own format into rings in a mapped
 * array, one per CPU; see live/capture_ring.h. */
struct captured {
	int32_t rings;	    /* descriptor of the array; 0: the kernel writes the samples */
	int32_t bell;	    /* of a BPF ring buffer to which programs write when a ring fills */
	int32_t program;    /* its program */
	uint32_t nr_cpus;   /* elements of the array */
	uint32_t size;	    /* bytes of data in a ring, a power of two */
	uint32_t bit;	    /* of the words that enable events */
	uint32_t overwrite; /* 1: the rings are overwritten */
	uint32_t is_early;  /* 1: it wakes the reader, which then soon reads it */
	uint64_t id;	    /* in its samples */
};

struct event_request {
	const char *name; /* the user's name for it, for messages */
	/* Type, config, period or frequency, exclusions, registers, size of the stack copy, frames,
	 * precision and wakeup_events. The source adds what it needs itself. */
	struct perf_event_attr attr;
	const char *config1_text; /* text for attr.config1 to point to; or NULL */
	const char *filter;	  /* kernel filter; or NULL */
	const char *cpus;	  /* only on this list of CPUs; NULL: on all of the target's */
	uint64_t sample;	  /* enum perf_event_sample_format bits to add to its samples */
	uint32_t payload;	  /* size of its fields: shorter payloads are not delivered */
	uint32_t record;	  /* enum record_kind: its events are these records; 0: samples */
	int32_t program;    /* descriptor of a BPF program that filters its samples; 0: none */
	int32_t bpf_array;  /* descriptor of a perf event array to which a BPF program writes its
			     * samples; 0: the kernel writes them */
	uint64_t push;	    /* bit set of the places its samples are sent to; see push/push.h */
	uint16_t class;	    /* >= EVENT_FIRST */
	uint16_t callchain; /* record stacks: enum stack_parts; 0: no */
	uint16_t group;	    /* counted events with the same number are read together, and are on
			     * the hardware counters at the same times */
	uint8_t perf_event; /* 1: its payload is the sample's own words, see decode/sample.h */
	uint8_t resolve;    /* 1: addresses of code will be symbolized, even without stacks; 2: and
			     * those of data */
	uint8_t everywhere; /* 1: in all threads, even if the target is threads */
	uint8_t counted;    /* 1: counted, not sampled; see session_read_counts(); 2: and nobody
			     * misses what was not counted on a CPU that came online */
	uint8_t reads;	    /* enum sample_reads: counts in its samples. CPUs only */
	uint8_t member;	    /* of the join that delivers it; 0: this machine */
	uint8_t is_output;  /* 1: its events are the records of `output`; attr is unused */
	struct bpf_output output;
	struct captured captured;
};

/* An event of a recorded source. */
struct recorded_event {
	const char *name; /* "sched:sched_switch", "cycles"; "type:config" if it has no name */
	uint32_t type;
	uint64_t config, sample_type; /* as in perf_event_attr */
	bool is_member;		      /* not sampled: its group's leader is, see group_reads.h */
};

/* Copies a request and its strings. Returns 0 or -ENOMEM, with *to cleared. */
int event_request_copy(struct event_request *to, const struct event_request *from);
/* Frees the strings of a copy. */
void event_request_clear(struct event_request *req);
