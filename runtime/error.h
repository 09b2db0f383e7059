/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How failures travel: a function returns a negative errno and leaves one line for the user in the
 * struct error of its caller. The layer that knows the user's words writes the line; the layers
 * above only pass it on.
 */
#pragma once

struct error {
	char text[1024]; /* one line without newline; "" if nothing was said */
	int unavailable; /* this kernel or machine lacks or forbids what was asked for */
};

/* Formats the line and returns code, so that `return error_set(err, -EINVAL, ...)` reads well.
 * err may be NULL. Control bytes are shown as \xNN, because the text may contain outside
 * strings. A text that is too long ends in "...". err->text itself may be an argument, to put
 * words before it. */
int error_set(struct error *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Says that this kernel or machine is to blame. It stays said when a line is set, also another one,
 * so that layers above may put words before it. err may be NULL. */
void error_unavailable(struct error *err);
