/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Info: the struct source_info of a recording: its events with their names, machine and clock.
 */
#pragma once
#include <stddef.h>

struct header;
struct source_info;

/* Fills in all of it. It refers to the header's features. Returns 0 or -ENOMEM; call info_clear()
 * either way. */
int info_fill(struct source_info *info, const struct header *h);
void info_clear(struct source_info *info);
/* Writes the names of the events, separated by commas, without perf's own; cut if they are too
 * long. */
void info_name_events(const struct source_info *info, char *out, size_t size);
