/* SPDX-License-Identifier: GPL-2.0-only */
/* The paths of control groups by their ids, from the records of the kernel: of those that exist
 * when a recording begins, and of those that are made while events are read, also if they are gone.
 */
#pragma once
#include <stdint.h>

struct groups;
struct perf_event_header;

struct groups *groups_new(void);
void groups_free(struct groups *g);

/* Notes the group of a record CGROUP. */
void groups_note(struct groups *g, const struct perf_event_header *rec);
/* Returns the id of group number i in the order of the records; 0: there are not so many. */
uint64_t groups_id(const struct groups *g, uint32_t i);
/* Returns the path from the root; NULL if it is unknown. Valid until the next record. */
const char *groups_path(const struct groups *g, uint64_t id);
