/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The file that a user's word for a program or a library means.
 */
#pragma once
#include <stddef.h>

struct error;

/* name: a path (it has a slash); pid:N, the program that process runs; the name of a library
 * ("libc.so.6", or "libc" for any version), as the dynamic loader finds it; a program in $PATH. The
 * path has no symbolic links any more, except where it is one of the kernel's own in /proc, which
 * leads to files no path leads to. 0, or a negative errno with a message. */
int binary_find(const char *name, char *path, size_t size, struct error *err);
