/* SPDX-License-Identifier: GPL-2.0-only */
/* The events directory of tracefs: what events there are, and their format files. */
#pragma once
#include <stddef.h>

/* Return the lines "system:name" of all events, or those of their systems, sorted. The caller frees
 * the text. NULL without memory. */
char *tracefs_names(const char *events);
char *tracefs_systems(const char *events);

/* Reads a format file. Returns 0, or a negative errno: -ENOENT or -ENOTDIR if there is no such
 * event. */
int tracefs_read_format(const char *path, char **text, size_t *size);
