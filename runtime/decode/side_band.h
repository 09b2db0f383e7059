/* SPDX-License-Identifier: GPL-2.0-only */
/* Decodes the records that are not samples, for the decoder. */
#pragma once

struct decoder;
struct event;
struct perf_event_header;

/* Returns the number of 8-byte words that the body of a record of these types must have; 0: only
 * its size tells. */
unsigned int side_band_words(const struct perf_event_header *rec);
/* As decoder_decode(). */
int side_band_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		     int max);
