/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Task table: the name of every task as it was at a given time. Seeded from /proc, then fed with
 * the COMM, FORK and EXIT records of the stream. Names are a history per task, so that an event
 * that is printed late still gets the name its task had; tasks that ended are forgotten oldest
 * first, beyond a bound.
 */
#pragma once
#include <stdint.h>

struct tasks;

/* Keeps up to max_exited tasks that have ended. */
struct tasks *tasks_new(uint32_t max_exited);
void tasks_free(struct tasks *t);

/* Reads /proc (the names hold from the beginning of time). Returns the number of threads or
 * a negative errno. */
int tasks_scan(struct tasks *t);

/* name of up to 15 characters from time on. */
void tasks_set(struct tasks *t, int32_t tid, const char *name, double time);
/* tid was created by parent_tid: it inherits that name. */
void tasks_fork(struct tasks *t, int32_t tid, int32_t parent_tid, double time);
void tasks_exit(struct tasks *t, int32_t pid, int32_t tid, double time);

/* Process of a thread that has ended; -1: unknown. */
int32_t tasks_pid_of_ended(const struct tasks *t, int32_t tid);

/* Name of tid at time, "swapper" for 0, "<...>" where unknown. Valid until the next change. */
const char *tasks_name(struct tasks *t, int32_t tid, double time);
