/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Stream: the records of a perf.data file or of perf's pipe format one after the other, in the
 * order in which they were written. Files are mapped and their records handed out in place;
 * what comes through a pipe, or was compressed, lies in chunks that the stream owns.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/perf_event.h>

struct stream;

/* fd stays the caller's and open as long as the stream. Regular files are mapped. NULL: errno. */
struct stream *stream_new(int fd);
void stream_free(struct stream *s);

/* The mapped file; NULL for a pipe. */
const uint8_t *stream_file(const struct stream *s, uint64_t *size);
/* Records lie between these bytes of the mapped file. Without: all of it, or the whole pipe. */
void stream_limit(struct stream *s, uint64_t from, uint64_t to);

/* The next record. 1: there is one, 8-byte aligned, its size is whole and at least that of its
 * header; it lasts until the next call unless it is kept. 0: the stream has ended. -EAGAIN: the
 * pipe has none now. -ENODATA: the stream ends inside a record. -EBADMSG: what comes is no record
 * or cannot be decompressed. -EINTR: a signal came while it waited. Other: the read failed. */
int stream_next(struct stream *s, bool wait, const struct perf_event_header **rec);
/* The first size bytes, before any record. They last until the next call. Waits for them. NULL
 * with errno as above where they are not all there. */
const void *stream_bytes(struct stream *s, size_t size);
/* The same for what lies behind the last record (tracing data), which is passed over otherwise. */
const void *stream_payload(struct stream *s, size_t *size);

/* Keeps the last record, which has this time, until stream_release() is told that all that is
 * older than `oldest` is done with. Returns the bytes of memory that takes. */
size_t stream_keep(struct stream *s, const struct perf_event_header *rec, uint64_t time);
void stream_release(struct stream *s, uint64_t oldest);
