/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Features: the description of a recording by perf: event names, machine, clock, formats. Each
 * feature is a section of a file or a record of a pipe, with the same bytes in both.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>
#include "source.h"

struct buildids;
struct formats;

enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_EVENT_DESC = 12,
	FEATURE_NUMA_TOPOLOGY = 14,
	FEATURE_CACHE = 20,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_DIR_FORMAT = 24,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256 /* bits in a file's header */
};

struct features {
	struct formats *formats;    /* of the recorded tracepoints */
	char *release, *arch;	    /* NULL: missing */
	struct buildids *build_ids; /* of the executed files */
	char **names;		    /* of the events, by attribute index */
	uint32_t nr_names;
	uint32_t nr_cpus; /* 0: missing */
	bool is_single;	  /* of a recording in a directory: all its records are in this file */
	/* By cache level - 1, for each CPU below CPUS_MAX: 1 + the first CPU that shares its data
	 * cache; 0: unknown. NULL: unknown for all CPUs. */
	uint16_t *first_sharers[CACHE_LEVELS];
	uint16_t *nodes;     /* for each CPU 1 + its NUMA node, as first_sharers */
	uint64_t first_time; /* of the first sample, ns; 0: missing */
	struct source_clock clock;
	bool has_wall; /* wall_ns is the wall time at clock_ns of the recording's clock */
	uint64_t wall_ns, clock_ns;
	const char *trace; /* what the hardware has traced; NULL: nothing */
};

/* Returns false without memory. */
bool features_init(struct features *f);
void features_clear(struct features *f);

/* Reads the record TIME_CONV, which relates the times to the TSC, into f->clock. */
void features_read_conversion(struct features *f, const struct perf_event_header *rec);
/* Reads the record AUXTRACE_INFO, which says who has written the trace, into f->trace. */
void features_read_trace(struct features *f, const struct perf_event_header *rec);

/* Reads a feature; unused ones are skipped. Returns false if it is damaged; the readable part is
 * kept. */
bool features_read(struct features *f, uint64_t id, const void *data, size_t size);
