/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The line is formatted into a separate buffer first, so that an argument may be the text of the
 * same struct error, to put words before what a lower layer said.
 */
#include "error.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool is_control(uint8_t c)
{
	return c < 0x20 || c == 0x7f;
}

/* Copies src with control bytes as \xNN. Returns false if it had to be cut. */
static bool copy_escaped(char *dst, size_t size, const char *src)
{
	static const char hex[] = "0123456789abcdef";
	size_t n = 0;

	for (; *src; src++) {
		uint8_t c = *src;

		if (n + (is_control(c) ? 4 : 1) >= size)
			break;
		if (!is_control(c)) {
			dst[n++] = c;
			continue;
		}
		dst[n++] = '\\';
		dst[n++] = 'x';
		dst[n++] = hex[c >> 4];
		dst[n++] = hex[c & 15];
	}
	dst[n] = '\0';
	return !*src;
}

int error_set(struct error *err, int code, const char *fmt, ...)
{
	char line[sizeof(err->text)];
	va_list ap;
	int n;

	if (!err)
		return code;
	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	if (n < 0)
		line[0] = '\0';
	if (!copy_escaped(err->text, sizeof(err->text), line) || n >= (int)sizeof(line))
		strcpy(err->text + sizeof(err->text) - sizeof("..."), "...");
	return code;
}

void error_unavailable(struct error *err)
{
	if (err)
		err->unavailable = 1;
}
