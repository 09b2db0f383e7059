/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bus errors: reading a mapped file fails with SIGBUS where the file has been truncated since. The
 * guard puts zeros there instead, and reports it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { BUS_GUARDS = 128 }; /* files that are pulled at a time, see JOIN_MEMBERS */

/* Guards a mapping. Returns false if there are too many. */
bool bus_guard(const void *at, size_t size);
/* Ends that, before the mapping ends. */
void bus_release(const void *at);
/* Returns whether part of a guarded mapping was gone. */
bool bus_failed(const void *at);
