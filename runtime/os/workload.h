/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A child process that waits at a pipe until everything is set up, then executes the user's
 * command. It dies with this process.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct workload;

/* Creates the child, which does not execute anything yet. argv ends with NULL. */
struct workload *workload_new(char *const argv[], struct error *err);
pid_t workload_pid(const struct workload *w);
/* Makes the child execute its command. Fails with a message if that is impossible. */
int workload_start(struct workload *w, struct error *err);
/* Returns whether the child has exited; then *status is as in wait(2). Does not block. */
bool workload_ended(struct workload *w, int *status);
/* Returns for how long it and the children that it has waited for ran on CPUs, once it has ended;
 * 0 before. */
uint64_t workload_ns(const struct workload *w);
/* A running child continues; it gets SIGTERM when this process exits. */
void workload_free(struct workload *w);
