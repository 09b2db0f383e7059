/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Makes strings of unknown origin (task names, file names, symbols) safe to print: control bytes
 * drive terminals and break lines, and invalid UTF-8 breaks readers. C0, DEL, C1 (as U+0080 to
 * U+009F) and all bytes that are not valid UTF-8 are escaped. Nearly all strings are clean, so
 * checking costs less than copying.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum text_mode {
	TEXT_CELL,  /* \xNN for each byte */
	TEXT_LINES, /* the same, but newline and tab are kept */
	TEXT_JSON   /* within a JSON string: \uNNNN, \" and \\; bytes of invalid UTF-8: \\xNN */
};

/* Returns 1 if none of the n bytes must be escaped in that mode. */
int text_clean(const char *s, size_t n, enum text_mode mode);
/* Writes the escaped string without a NUL to out, which has room for 6 * n bytes. Returns its
 * length. */
size_t text_escape(char *out, const char *s, size_t n, enum text_mode mode);
/* Returns the length of the UTF-8 sequence that text of n bytes begins with; 0: it is not valid. */
size_t text_utf8(const char *s, size_t n);
