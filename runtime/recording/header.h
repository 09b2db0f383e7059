/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Everything in a recording besides the kernel's records: attributes and ids, which go to the
 * decoder, and features.
 */
#pragma once
#include <linux/perf_event.h>
#include "error.h"
#include "recording/features.h"

struct decoder;
struct stream;

struct header {
	struct decoder *decoder; /* filled by header_read() */
	struct features features;
	const struct perf_event_header
		*first;	      /* the record after the header of a pipe; NULL: none */
	struct error warning; /* damage in a readable header; "": none */
};

/* Reads the header from the start of the stream, which is then at the first record (or after
 * h->first). The caller sets up and frees decoder and features. */
int header_read(struct header *h, struct stream *s, struct error *err);
