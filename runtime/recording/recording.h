/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording: the source for a perf.data file or the stream of `perf record -o -`. The readable part
 * of a damaged recording is delivered, and the source's warning describes the damage afterwards.
 *
 * A slot's ring is the CPU of its record, 0 if unknown. Records without a time, such as those that
 * perf synthesizes for tasks that exist at the start, get the time of the previous record, 0 if
 * there is none.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once

struct error;
struct source;

/* Opens a file, or standard input for "-". Waits for the first record of a pipe. NULL with a
 * message. */
struct source *recording_open(const char *path, struct error *err);
/* Like recording_open(), for an open descriptor, which it takes over, also on failure. name is for
 * messages. */
struct source *recording_open_fd(int fd, const char *name, struct error *err);
