/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Header: everything in a recording except kernel records: attributes and ids, which go to the
 * decoder, and features.
 */
#pragma once
#include <linux/perf_event.h>
#include "error.h"
#include "recording/features.h"

struct decoder;
struct stream;

struct header {
	struct decoder *decoder; /* receives attributes and ids */
	struct features features;
	const struct perf_event_header *first; /* the record after a pipe's header; NULL: none */
	struct error warning;		       /* damage that did not prevent reading; "": none */
};

/* Looks for the end of a pipe's header in its first size bytes. Returns its size in bytes; 0: more
 * bytes are needed; -EBADMSG: this is not the stream of a pipe, which header_read() will explain.
 */
int64_t header_size(const uint8_t *bytes, size_t size);

/* Reads the header from the start of the stream. The stream is then at the first record, or after
 * h->first. The caller creates and frees decoder and features. */
int header_read(struct header *h, struct stream *s, struct error *err);
