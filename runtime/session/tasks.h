/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task table: the name of every task at a given time. It is seeded from /proc and fed with the
 * COMM, FORK and EXIT records of the stream. Each task has a history of names, so that an event
 * printed late still gets the name that its task had. The number of ended tasks is limited; the
 * oldest are forgotten first.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdint.h>

struct event;
struct tasks;

/* max_exited: the number of ended tasks to keep. */
struct tasks *tasks_new(uint32_t max_exited);
void tasks_free(struct tasks *t);

/* Reads the current tasks from /proc; their names are valid from -INFINITY. Returns the number of
 * threads or a negative errno. */
int tasks_scan(struct tasks *t);

/* Sets the name of tid, up to 15 characters, from time on. pid is its process (thread group). */
void tasks_set(struct tasks *t, int32_t pid, int32_t tid, const char *name, double time);
/* Adds tid, created by parent_tid, whose name it inherits. */
void tasks_fork(struct tasks *t, int32_t pid, int32_t tid, int32_t parent_tid, double time);
void tasks_exit(struct tasks *t, int32_t tid, double time);

/* Returns the name of tid at time, "swapper" for 0, "<...>" if unknown; valid until the next
 * change. */
const char *tasks_name(struct tasks *t, int32_t tid, double time);
/* Returns the process of tid at time, -1 if unknown. */
int32_t tasks_pid(struct tasks *t, int32_t tid, double time);
uint32_t tasks_count(const struct tasks *t);
