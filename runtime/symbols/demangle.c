/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libiberty does the work. A few bytes of mangled name can stand for gigabytes of readable name, so
 * it writes through a callback that jumps out when the buffer is full. At that point it holds no
 * memory except what a Rust name in Punycode takes.
 */
#include "symbols/demangle.h"

#include <setjmp.h>
#include <stdbool.h>
#include <string.h>
#include <libiberty/demangle.h>

enum { NAME_LIMIT = 4096 }; /* longer names may exhaust the stack: the demangler recurses */

struct output {
	char *text;
	size_t len, size;
	jmp_buf full;
};

static void append(const char *text, size_t len, void *arg)
{
	struct output *out = arg;

	if (len >= out->size - out->len)
		longjmp(out->full, 1);
	if (len) /* text may be NULL otherwise */
		memcpy(out->text + out->len, text, len);
	out->len += len;
}

static bool is_rust(const char *name)
{
	return name[0] == '_' && name[1] == 'R';
}

size_t demangle(const char *name, enum name_style style, char *text, size_t size)
{
	struct output out = {.text = text, .size = size};
	int options = style == NAMES_FULL ? DMGL_PARAMS | DMGL_ANSI : DMGL_NO_OPTS;

	if (style == NAMES_MANGLED || (!is_rust(name) && strncmp(name, "_Z", 2) != 0) ||
	    strlen(name) > NAME_LIMIT)
		return 0;
	if (setjmp(out.full))
		return 0;
	/* Rust's older names are C++ names with a hash at the end, so Rust is tried first. */
	if (!rust_demangle_callback(name, options, append, &out)) {
		out.len = 0;
		if (is_rust(name) || !cplus_demangle_v3_callback(
					     name, options | DMGL_NO_RECURSE_LIMIT, append, &out))
			return 0;
	}
	text[out.len] = '\0';
	return out.len;
}
