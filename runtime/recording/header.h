/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Header: everything in a recording that is no record of the kernel's: attributes and ids, which
 * go to the decoder, and features.
 */
#pragma once
#include <linux/perf_event.h>
#include "error.h"
#include "recording/features.h"

struct decoder;
struct stream;

struct header {
	struct decoder *decoder; /* to be filled */
	struct features features;
	const struct perf_event_header *first; /* the record behind a pipe's header; NULL: none */
	struct error warning; /* what is damaged in it though it can be read; "": nothing */
};

/* Reads it from the start of the stream, which then stands at the first record (or behind
 * h->first). decoder and features are the caller's to set up and to free. */
int header_read(struct header *h, struct stream *s, struct error *err);
