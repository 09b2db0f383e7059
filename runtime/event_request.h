/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Event request: what a selector resolved to, as it travels unchanged from Lua through the session
 * to the source that opens it.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdint.h>

/* The first 112 bytes of struct perf_event_attr (PERF_ATTR_SIZE_VER5) under the names of
 * perf_event_open(2); event_request.c asserts that they are the same. */
struct perf_attr {
	uint32_t type, size;
	uint64_t config;
	union {
		uint64_t sample_period, sample_freq;
	};
	uint64_t sample_type, read_format;
	uint32_t disabled : 1, inherit : 1, pinned : 1, exclusive : 1, exclude_user : 1,
		exclude_kernel : 1, exclude_hv : 1, exclude_idle : 1, mmap : 1, comm : 1, freq : 1,
		inherit_stat : 1, enable_on_exec : 1, task : 1, watermark : 1, precise_ip : 2,
		mmap_data : 1, sample_id_all : 1, exclude_host : 1, exclude_guest : 1,
		exclude_callchain_kernel : 1, exclude_callchain_user : 1, other_bits : 9;
	uint32_t more_bits;
	uint32_t wakeup_events, bp_type;
	union {
		uint64_t bp_addr, config1;
	};
	union {
		uint64_t bp_len, config2;
	};
	uint64_t branch_sample_type, sample_regs_user;
	uint32_t sample_stack_user;
	int32_t clockid;
	uint64_t sample_regs_intr;
	uint32_t aux_watermark;
	uint16_t sample_max_stack, reserved;
};

/* The records of a BPF map: a ring buffer, or a perf event array with a ring for each CPU. The
 * offsets are those of members of a ring buffer's records, -1 if there is no such member. */
struct bpf_output {
	int32_t map;	  /* descriptor */
	uint32_t per_cpu; /* 1: a perf event array; 0: a ring buffer */
	uint32_t size;	  /* bytes of a ring buffer; pages of each CPU's ring */
	int32_t time_at;  /* u64 of bpf_ktime_get_ns(); -1: ordered by the time of reading */
	int32_t pid_at, tid_at, cpu_at; /* 32 bits each */
	const uint64_t *lost; /* where the program counts records that did not fit; or NULL */
};

struct event_request {
	const char *name; /* as the user knows it, for messages */
	/* What to open: type, config, period or frequency, exclusions, registers, size of the stack
	 * copy, frames, precision, wakeup_events. The source adds what it needs itself. */
	struct perf_attr attr;
	const char *config1_text; /* attr.config1 is the address of this text; or NULL */
	const char *filter;	  /* for the kernel; or NULL */
	const char *cpus;	  /* only on this list of CPUs; NULL: on all of the target's */
	uint64_t sample;	  /* enum sample_bits its samples have besides the usual ones */
	uint32_t payload;	  /* bytes its fields take: shorter payloads are not delivered */
	uint32_t record;	  /* enum record_kind: its events are these records; 0: samples */
	int32_t program;    /* descriptor of a BPF program that filters its samples; 0: none */
	int32_t through;    /* descriptor of a perf event array: a BPF program writes its samples;
			     * 0: the kernel does */
	uint16_t class;	    /* >= EVENT_FIRST */
	uint16_t callchain; /* record stacks: enum stack_parts; 0: no */
	uint16_t group;	    /* counted events of one number are read at once, and share the
			     * hardware's counters at the same times */
	uint8_t perf_event; /* 1: its payload is the sample's own words, see decode/sample.h */
	uint8_t resolve;    /* 1: addresses are looked up, even without stacks */
	uint8_t everywhere; /* 1: of all threads, even if the target is some */
	uint8_t counted;    /* 1: not sampled; session_read_counts() has the counts */
	uint8_t reads;	    /* enum sample_reads: counts that its samples carry. CPUs only */
	uint8_t is_output;  /* 1: its events are the records of `output`; attr is not used */
	struct bpf_output output;
};

/* An event that a recorded source holds. */
struct recorded_event {
	const char *name; /* "sched:sched_switch", "cycles"; "type:config" if it does not say */
	uint32_t type;
	uint64_t config, sample_type; /* as in perf_event_attr */
};

/* Copies a request and its strings. 0 or -ENOMEM; then *to holds nothing. */
int event_request_copy(struct event_request *to, const struct event_request *from);
/* Frees the strings of a copy. */
void event_request_clear(struct event_request *req);
