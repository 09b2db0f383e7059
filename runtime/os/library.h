/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Libraries that only some runs need: they are loaded when they are used, and stay loaded.
 */
#pragma once
#include <stddef.h>

struct error;

struct library_function {
	void **to; /* where its address goes */
	const char *name;
};

/* Loads a library and finds n functions. needed: beginning of the message if that fails, such as
 * "serving needs libmicrohttpd (Debian: libmicrohttpd12)". Returns 0, or -ENOENT with the message,
 * which says that the machine is to blame; err may be NULL. */
int library_load(const char *file, const struct library_function *functions, size_t n,
		 const char *needed, struct error *err);
