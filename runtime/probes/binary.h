/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the file that a user means by the name of a program or library.
 */
#pragma once
#include <stddef.h>

struct error;

/* name: a path (with a slash); pid:N, the program of that process; the name of a library
 * ("libc.so.6", or "libc" for any version), as the dynamic loader finds it; or a program in $PATH.
 * Symbolic links in the path are resolved, except links of the kernel in /proc, whose files may
 * have no other path. Returns 0, or a negative errno with a message. */
int binary_find(const char *name, char *path, size_t size, struct error *err);
