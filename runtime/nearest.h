/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The word the user probably meant: the nearest of a list of valid names by edit distance, for
 * messages about unknown events, fields, options and profilers.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stddef.h>

/* names: one a line. Copies the name nearest to want into out (always NUL-terminated) and returns
 * its length; 0 where no name is near enough to be meant, or where it does not fit. */
size_t nearest_name(const char *names, const char *want, char *out, size_t size);
