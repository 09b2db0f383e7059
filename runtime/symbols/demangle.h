/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Readable names of C++ and Rust functions.
 */
#pragma once
#include <stddef.h>

enum name_style {
	NAMES_SHORT,   /* without parameters: "std::vector<int>::push_back" */
	NAMES_FULL,    /* as declared */
	NAMES_MANGLED, /* as in the file */
};

/* Writes the readable name with a NUL and returns its length; 0 if name is not mangled or the
 * readable name does not fit. */
size_t demangle(const char *name, enum name_style style, char *out, size_t size);
