/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stream: the records of a perf.data file or of perf's pipe format, one after the other in the
 * order of writing. Files are mapped, and their records are delivered in place. A file that is too
 * large for the address space (ulimit -v) is read like a pipe. Records from a pipe and decompressed
 * records are in chunks owned by the stream.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct stream;

/* The caller keeps fd open during the stream's lifetime and closes it. NULL with errno. */
struct stream *stream_new(int fd);
/* The same for a pipe or socket whose first bytes have been read. They are copied. */
struct stream *stream_continue(int fd, const void *start, size_t size);
void stream_free(struct stream *s);

/* Returns whether it is a regular file, and its size. */
bool stream_is_file(const struct stream *s, uint64_t *size);
/* Returns how many bytes of the file or pipe have been read. */
uint64_t stream_position(const struct stream *s);
/* Returns bytes inside the file, which are valid until the next such call. NULL with errno. */
const void *stream_at(struct stream *s, uint64_t offset, size_t size);
/* Returns whether the file has become shorter: the part that is gone reads as zeros, if the file is
 * mapped. */
bool stream_is_cut(const struct stream *s);
/* Sets the range of the records in the file; by default all of it. Returns 0 or -errno. */
int stream_limit(struct stream *s, uint64_t from, uint64_t to);

/* Reads the next record. 1: *rec is 8-byte aligned, complete, and at least as long as a header; it
 * is valid until the next call unless it is kept. 0: the stream has ended. -EAGAIN: the pipe is
 * empty now. -ENODATA: the stream ends inside a record. -EBADMSG: the data is not a record or
 * cannot be decompressed. -EINTR: a signal arrived while waiting. Other: the read failed. */
int stream_next(struct stream *s, bool wait, const struct perf_event_header **rec);
/* Reads the first size bytes, before any record, and waits for them. They are valid until the next
 * call. NULL with errno as above if the stream is too short. */
const void *stream_bytes(struct stream *s, size_t size);
/* Reads the data after the last record (tracing data), which is skipped otherwise. */
const void *stream_payload(struct stream *s, size_t *size);

/* Keeps the last record, which has this time, until stream_release(oldest) with a greater `oldest`.
 * Returns the memory used, in bytes. */
size_t stream_keep(struct stream *s, const struct perf_event_header *rec, uint64_t time);
void stream_release(struct stream *s, uint64_t oldest);
