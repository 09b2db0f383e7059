/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups, named relative to the root of the hierarchy that perf events use: "a/b"; "" or
 * "/" is the root. If any name contains one of {}[]()|*+?^$, all names are extended regular
 * expressions that match anywhere in a group's name. Only the name of the root they never match.
 */
#pragma once
#include <stdint.h>

struct error;

/* Opens the directories of the groups; the caller closes the descriptors and frees *fds. names ends
 * with NULL. A group inside another group of the result is skipped, because the other one includes
 * its events. Returns the number of descriptors, or a negative errno with a message; if a name
 * matches no group, the message proposes the nearest one. */
int cgroups_open(const char *const *names, int32_t **fds, struct error *err);

/* Returns where that hierarchy is mounted, according to a table such as /proc/self/mounts:
 * perf_event of version 1, else version 2. The caller frees the path. Returns NULL with a
 * message. */
char *cgroups_root(const char *mounts, struct error *err);
/* Returns whether a group, named "/a/b", or one around it is asked for, or a negative errno with a
 * message. */
int cgroups_asked(const char *const *names, const char *group, struct error *err);
/* Returns the directories of the groups, one per line. The caller frees the text. Returns NULL with
 * a message. */
char *cgroups_find(const char *root, const char *const *names, struct error *err);
