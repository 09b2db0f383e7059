/* SPDX-License-Identifier: GPL-2.0-only */
/* Decodes the records that are not samples, for the decoder. */
#pragma once

struct decoder;
struct event;
struct perf_event_header;

/* Returns the size in words of the body of a record of these types, if it can be computed; else 0:
 * it must be taken from the record's size. */
unsigned int side_band_words(const struct perf_event_header *rec);
/* As decoder_decode(). */
int side_band_decode(const struct decoder *d, const struct perf_event_header *rec, struct event *ev,
		     int max);
