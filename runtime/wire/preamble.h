/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Preamble: what a stream in perf's pipe format starts with: the events with their ids, names and
 * formats, facts about this machine, and our HELLO.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct bytes;
struct wire_hello;

/* An event of the stream. */
struct wire_event {
	struct perf_event_attr attr;
	const char *name;
	const uint64_t *ids;
	uint32_t nr_ids;
	const char *system; /* of a tracepoint; NULL: none */
	const char *format; /* the text of its format file */
	uint32_t format_size;
};

/* Fills what HELLO says about this machine: ids, CPUs, host name. */
void preamble_fill(struct wire_hello *hello);
/* Appends the preamble. mono and real: the same moment on the clock of the records and as wall
 * time, ns. */
void preamble_write(struct bytes *out, const struct wire_event *events, uint32_t n,
		    const struct wire_hello *hello, uint64_t mono, uint64_t real);
