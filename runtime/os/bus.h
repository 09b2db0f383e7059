/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bus errors: reading a mapped file fails with SIGBUS where the file has been truncated since. The
 * guard puts zeros there instead, and tells.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

/* Guards one mapping at a time; NULL: none. */
void bus_guard(const void *at, size_t size);
/* Returns whether part of the guarded mapping was gone. */
bool bus_failed(void);
