/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Workload: a child process that waits behind a pipe until everything is set up, then executes
 * the user's command. It dies with us.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

struct error;
struct workload;

/* argv ends with NULL. The child exists, but has not executed anything yet. */
struct workload *workload_new(char *const argv[], struct error *err);
pid_t workload_pid(const struct workload *w);
/* Lets the child execute its command; fails with a message when it cannot. */
int workload_start(struct workload *w, struct error *err);
/* Whether it has ended; then status is as wait(2) gives it. Does not block. */
bool workload_ended(struct workload *w, int *status);
/* A child that has not ended goes on; it gets SIGTERM when this process ends. */
void workload_free(struct workload *w);
