/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Output: write(2) to pipes and terminals whose reader may not read. It returns now and then, so
 * that the caller can end. See signals_must_end().
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Returns a new descriptor for the pipe or terminal of fd whose writes do not block. (fd itself is
 * shared with other processes.) For other files, and if it cannot be opened, returns fd. */
int output_open(int fd);
/* Writes up to size bytes. Returns their number or a negative errno; -EAGAIN: waited for the reader
 * for 100 ms or until a signal arrived. */
int64_t output_write(int fd, const void *bytes, size_t size);
