/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording: a source of records that perf wrote, as a perf.data file or as the stream of
 * `perf record -o -`. Whatever a damaged recording still holds is delivered; the source's warning
 * says afterwards what was wrong with it.
 *
 * A slot's ring is the CPU of its record, 0 if it does not say. Records without a time (perf makes
 * some up for the tasks that exist at the start) have that of the record before them, 0 if there is
 * none.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once

struct error;
struct source;

/* Opens a file, or standard input for "-". A pipe is read up to its first record, which waits for
 * the writer. NULL with a message. */
struct source *recording_open(const char *path, struct error *err);
/* The same for an open descriptor, which the recording closes, also when this fails. name is for
 * messages. */
struct source *recording_open_fd(int fd, const char *name, struct error *err);
