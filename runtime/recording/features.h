/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What perf notes about a recording besides the events: names, machine, clock, formats. Each
 * feature is a section of a file or a record of a pipe, with the same bytes in both.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buildids;
struct formats;

enum {
	FEATURE_TRACING_DATA = 1,
	FEATURE_BUILD_ID = 2,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_NRCPUS = 7,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CACHE = 20,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_DIR_FORMAT = 24,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256,	 /* bits in the header of a file */
	CACHE_LEVELS = 4 /* of a machine, from level 1 */
};

struct features {
	struct formats *formats;    /* of the tracepoints that were recorded */
	char *release, *arch;	    /* NULL: unknown */
	struct buildids *build_ids; /* of the files that ran */
	char **names;		    /* of the events, by the index of their attribute */
	uint32_t nr_names;
	uint32_t nr_cpus; /* 0: unknown */
	/* For each level, for each CPU of CPUS_MAX: the first CPU that shares its data cache, plus
	 * 1; 0: unknown. NULL: unknown for all CPUs. */
	uint16_t *first_sharers[CACHE_LEVELS];
	uint64_t first_time; /* of the first sample, ns; 0: unknown */
	bool has_wall;	     /* the wall time at clock_ns of the recording's clock was wall_ns */
	uint64_t wall_ns, clock_ns;
};

/* Returns false without memory. */
bool features_init(struct features *f);
void features_clear(struct features *f);

/* Reads a feature; those of no interest are skipped. Returns false if it is damaged; what was
 * readable is kept. */
bool features_read(struct features *f, uint64_t id, const void *data, size_t size);
