/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The records of a perf.data file or of perf's pipe format, in the order in which they were
 * written. Files are mapped and their records handed out in place. What came through a pipe, or was
 * compressed, is in chunks that the stream owns.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct stream;

/* The caller keeps fd, which must stay open as long as the stream. Regular files are mapped.
 * Returns NULL with errno. */
struct stream *stream_new(int fd);
void stream_free(struct stream *s);

/* Returns the mapped file; NULL for a pipe. */
const uint8_t *stream_file(const struct stream *s, uint64_t *size);
/* Restricts the records to these bytes of the mapped file. The default is the whole file or
 * pipe. */
void stream_limit(struct stream *s, uint64_t from, uint64_t to);

/* Gets the next record. Returns 1 if there is one: it is 8-byte aligned, complete, at least as long
 * as its header, and lasts until the next call unless it is kept. 0: the stream has ended. -EAGAIN:
 * the pipe has no record now. -ENODATA: the stream ends within a record. -EBADMSG: what follows is
 * not a record or cannot be decompressed. -EINTR: a signal came while waiting. Others: the read
 * failed. */
int stream_next(struct stream *s, bool wait, const struct perf_event_header **rec);
/* Returns the first size bytes, before any record; waits for them. They last until the next call.
 * Returns NULL with errno as above if they are incomplete. */
const void *stream_bytes(struct stream *s, size_t size);
/* The same for the bytes after the last record (tracing data), which are skipped otherwise. */
const void *stream_payload(struct stream *s, size_t *size);

/* Keeps the last record, which has this time, until stream_release() of a later time. Returns the
 * bytes of memory that this takes. */
size_t stream_keep(struct stream *s, const struct perf_event_header *rec, uint64_t time);
void stream_release(struct stream *s, uint64_t oldest);
