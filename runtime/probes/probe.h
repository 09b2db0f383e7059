/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Probes with arguments: the kernel makes them events in tracefs. Those of a run are a group of
 * their own, named after the process, and live until probes_free(): the kernel refuses to remove a
 * probe while a perf event of it is open, so these are closed before. A run that was killed leaves
 * its group behind; the next one removes it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

struct error;
struct probes;

enum probe_target { PROBE_KERNEL, PROBE_USER };

/* Removes what killed runs left. tracefs: where it is, NULL: where it usually is. NULL with a
 * message where the kernel has no such probes or does not let us make them. From here on a signal
 * asks to stop, for the probes to be removed. */
struct probes *probes_new(const char *tracefs, struct error *err);
void probes_free(struct probes *p);

/* The system of all events of p. Lives as long as p. */
const char *probes_group(const struct probes *p);
/* Makes a probe. place: FUNCTION[+OFFSET] or PATH:OFFSET[(SEMAPHORE)], args: "NAME=FETCH[:TYPE]..."
 * separated by blanks, both as tracefs has them. The event's name begins with name, as far as that
 * may be part of one, and is copied to event. */
int probes_add(struct probes *p, enum probe_target target, int32_t is_return, const char *name,
	       const char *place, const char *args, char *event, size_t size, struct error *err);

/* Removes what killed runs left. Returns how many probes, or a negative errno with a message. */
int probes_remove_stale(const char *tracefs, struct error *err);
/* Gives the kernel one line ("p:GROUP/EVENT ...", "-:GROUP/EVENT"). What it objects to is in the
 * message, as it says it. */
int probes_write(const char *tracefs, enum probe_target target, const char *line,
		 struct error *err);
