/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Recording: a source of records that perf wrote, as a perf.data file or as the stream of
 * `perf record -o -`. What a damaged recording still holds is delivered; recording_warning() says
 * afterwards what was wrong with it.
 */
#pragma once

struct buildids;
struct error;
struct formats;
struct recording;
struct source;

/* Opens a file or "-", standard input. A stream is read up to its first record, which waits for
 * the writer. NULL with a message. */
struct recording *recording_open(const char *path, struct error *err);
/* The same for an open descriptor, which the recording closes, also when this fails. name is for
 * messages. */
struct recording *recording_open_fd(int fd, const char *name, struct error *err);
void recording_close(struct recording *r);

/* All of the following lives as long as the recording. */

/* A slot's ring is the cpu of its record, 0 where it does not say. Records without a time (perf
 * makes some up for the tasks that exist at the start) have that of the record before them, 0
 * without one. */
struct source *recording_source(struct recording *r);
/* Formats of the tracepoints in it, none where perf could not finish the recording. */
struct formats *recording_formats(struct recording *r);

/* Of the decoder's attribute with this index: "sched:sched_switch", "cycles"; "type:config" where
 * the recording does not say. */
const char *recording_event_name(const struct recording *r, int index);
/* All of them in one line: "sched:sched_switch, cycles". */
const char *recording_event_names(const struct recording *r);

/* Machine of the recording; "" where it does not say. */
const char *recording_arch(const struct recording *r);
const char *recording_release(const struct recording *r);

/* The first of the CPUs of that machine that share cpu's cache of this level (1 and up), which is
 * not one of instructions only; -1 where the recording does not say. */
int recording_cache_sharer(const struct recording *r, int level, int cpu);

/* Of the files that ran. */
const struct buildids *recording_build_ids(const struct recording *r);

/* Wall time (since 1970) when the recording's clock was 0; sec is NAN where it does not say
 * (perf record without -k). */
void recording_wall_zero(const struct recording *r, double *sec, double *nsec);

/* One line about a recording that is cut off or damaged, NULL otherwise. Final when the source
 * has ended. */
const char *recording_warning(const struct recording *r);
