/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task scan: describes the tasks that exist now as records of the kernel, COMM and if needed MMAP2,
 * so that a receiver knows the names and mappings of tasks that started before it came. Mappings
 * have build ids, by which a receiver finds the same files. It is done in steps, because reading
 * /proc takes long.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct bytes;
struct task_scan;

/* words: of the trailer with the sample's id at the end of each record. maps: with MMAP2. NULL
 * without memory or /proc. */
struct task_scan *task_scan_new(uint32_t words, bool maps);
void task_scan_free(struct task_scan *scan);
/* Appends the records of a few more tasks. Returns false when all are done. */
bool task_scan_next(struct task_scan *scan, struct bytes *out);
