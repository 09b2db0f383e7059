/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups, named relative to the root of the hierarchy that perf events go by: "a/b"; "" or
 * "/" is the root. If one of the names has one of {}[]()|*+?^$, all are extended regular
 * expressions that match anywhere in a name other than the root's.
 */
#pragma once
#include <stdint.h>

struct error;

/* Descriptors of the groups' directories, each to be closed and *fds to be freed by the caller.
 * names ends with NULL. A group that lies in another one of the result is left out, for its events
 * are the other's too. Returns their number, or a negative errno with a message: where a name
 * matches no group the nearest one is proposed. */
int cgroups_open(const char *const *names, int32_t **fds, struct error *err);

/* Where that hierarchy is mounted, going by a table such as /proc/self/mounts: version 1's
 * perf_event, else version 2's. To be freed; NULL with a message. */
char *cgroups_root(const char *mounts, struct error *err);
/* The directories of the groups, one a line, to be freed by the caller. NULL with a message. */
char *cgroups_find(const char *root, const char *const *names, struct error *err);
