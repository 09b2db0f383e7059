/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The unwind tables of processes, in memory that programs in the kernel read: rows of files, which
 * all processes that have mapped a file share, and spans of memory by process, each with the rows
 * of what is mapped there. The memory is bounded: what has no room has no rows.
 *
 * What a process no longer uses stays in place for a while, because a program may be reading it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct frame_row;
struct frame_tables;

/* Code that is mapped from a file. An address less bias is one of the rows' addresses. */
struct frame_span {
	uint64_t start, end;
	uint64_t bias;
	uint32_t first, count; /* of the rows; count 0: no tables */
};

/* Where the spans of a process are, sorted by address. */
struct frame_space {
	uint32_t first, count;
};

struct frame_tables_stats {
	uint32_t files, processes;
	uint32_t rows, spans;	      /* in use */
	uint32_t others;	      /* rows whose rule has no form here */
	uint32_t no_room, unreadable; /* files without rows: why */
	uint32_t no_spans;	      /* processes without spans, for which there was no room */
	uint64_t build_ns;	      /* time it took to read files */
};

/* The memory belongs to the caller and outlives the tables. Returns NULL without memory. */
struct frame_tables *frame_tables_new(struct frame_row *rows, uint32_t nr_rows,
				      struct frame_span *spans, uint32_t nr_spans);
void frame_tables_free(struct frame_tables *t);

/* Reads what process pid has mapped now, in place of what it had before. Returns 0, or a negative
 * errno: -ESRCH if it has exited or is no program of 64 bits, -ENOSPC without room. */
int frame_tables_update(struct frame_tables *t, int32_t pid, struct frame_space *out);
/* Process pid has exited, or nobody wants its stacks. */
void frame_tables_remove(struct frame_tables *t, int32_t pid);
/* Makes room of what was no longer used at the last call. To be called every few seconds. */
void frame_tables_reclaim(struct frame_tables *t);
void frame_tables_read_stats(const struct frame_tables *t, struct frame_tables_stats *out);
