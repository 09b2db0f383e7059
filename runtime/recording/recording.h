/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording: the source for a perf.data file or the stream of `perf record -o -`. The readable part
 * of a damaged recording is delivered, and the source's warning describes the damage afterwards.
 *
 * A slot's ring is the CPU of its record, 0 if unknown. Records without a time, such as those that
 * perf synthesizes for tasks that exist at the start, get the time of the previous record, 0 if
 * there is none.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;
struct formats;
struct perf_event_header;
struct source;

/* A stream from another host: its first bytes have been read, and it has records of its own. */
struct recording_stream {
	int fd;		  /* taken over, also on failure */
	const char *name; /* for messages */
	const void *start;
	size_t start_size; /* bytes that have been read; copied */
	/* Gets each record that perf does not know, in the order of the stream. Returns the time up
	 * to which the stream is complete at the end of the round that begins; 0: unknown. */
	uint64_t (*own)(void *arg, const struct perf_event_header *rec);
	void *arg;
	bool own_kernel;	 /* the sender runs on this kernel */
	struct formats *formats; /* get the kernel symbols that are sent; NULL: its own */
};

/* Opens a file, or standard input for "-". Waits for the first record of a pipe. NULL with a
 * message. */
struct source *recording_open(const char *path, struct error *err);
/* Like recording_open(), for an open descriptor, which it takes over, also on failure. name is for
 * messages. */
struct source *recording_open_fd(int fd, const char *name, struct error *err);

/* Like recording_open_fd(), for a stream whose header is among the bytes that have been read: it
 * waits for nothing. */
struct source *recording_open_stream(const struct recording_stream *stream, struct error *err);
/* Returns what was read from the stream so far: the number of samples, that of the records that the
 * kernel lost, and that of losses of which nobody knows how much was lost. */
void recording_read(const struct source *src, uint64_t *samples, uint64_t *lost, uint32_t *unknown);
/* Returns how many of these samples are not delivered, because they are there twice. */
uint64_t recording_twins(const struct source *src);
/* The descriptor of the stream. */
int recording_fd(const struct source *src);
/* Closes the stream when it has ended, and frees what it held, except for its formats, its decoder
 * and its info. */
void recording_close(struct source *src);
