/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Probes with arguments, which the kernel makes events in tracefs. The probes of a run form a
 * group, named after the process, which lives until probes_free(). The kernel refuses to remove a
 * probe while a perf event of it is open, so those must be closed before. A run that was killed
 * leaves its group; the next run of any kind removes it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct probes;

enum probe_target { PROBE_KERNEL, PROBE_USER };

/* Removes what killed runs have left. tracefs: its path; NULL: the usual one. Returns NULL with a
 * message if the kernel has no such probes or refuses to make them. From now on a signal only
 * requests a stop, so that the probes get removed. */
struct probes *probes_new(const char *tracefs, struct error *err);
void probes_free(struct probes *p);

/* Returns the system of all events of p. It lives as long as p. */
const char *probes_group(const struct probes *p);
/* Makes a probe. place: FUNCTION[+OFFSET] or PATH:OFFSET[(SEMAPHORE)]; args: "NAME=FETCH[:TYPE]..."
 * separated by blanks; both as in tracefs. The name of the event, which is copied to event, begins
 * with the characters of name that are allowed. */
int probes_add(struct probes *p, enum probe_target target, int32_t is_return, const char *name,
	       const char *place, const char *args, char *event, size_t size, struct error *err);

/* Removes what killed runs have left. Returns the number of probes, or a negative errno with a
 * message. */
int probes_remove_stale(const char *tracefs, struct error *err);
/* The same at the start of a run. It costs less than 0.1 ms if nothing is left. Without the
 * permission nothing happens. */
void probes_sweep(const char *tracefs);
/* Writes a line ("p:GROUP/EVENT ...", "-:GROUP/EVENT") to the kernel. If the kernel objects, the
 * message has its reason. */
int probes_write(const char *tracefs, enum probe_target target, const char *line,
		 struct error *err);
