/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Features: what perf notes about a recording besides the events: names, machine, clock, formats.
 * Each is a section of a file or a record of a pipe, with the same bytes in both.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
	FEATURE_CACHE = 20,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_DIR_FORMAT = 24,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256 /* bits in a file's header */
};

struct features {
	struct formats *formats;    /* of the tracepoints that were recorded */
	char *release, *arch;	    /* NULL: not said */
	struct buildids *build_ids; /* of the files that ran */
	char **names;		    /* of the events, by their attribute's index */
	uint32_t nr_names;
	uint32_t nr_cpus; /* 0: not said */
	/* Of each level's caches of data, for each CPU of CPUS_MAX: the first one that shares its
	 * cache, and 1; 0: not said. NULL: not said of any. */
	uint16_t *first_sharers[CACHE_LEVELS];
	uint64_t first_time; /* ns, of the first sample; 0: not said */
	bool has_wall;	     /* at clock_ns of the recording's clock it was wall_ns */
	uint64_t wall_ns, clock_ns;
};

/* False without memory. */
bool features_init(struct features *f);
void features_clear(struct features *f);

/* Takes in a feature. Those that are not of interest are passed over. False: it is damaged; what
 * could be read of it is kept. */
bool features_read(struct features *f, uint64_t id, const void *data, size_t size);
