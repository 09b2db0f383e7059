/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of processes, as /proc lists them now. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct error;

/* The kernel's PID_MAX_LIMIT: all process and thread ids are smaller. */
enum { PIDS_MAX = 1 << 22 };

/* Lists all threads of the processes, and the single threads, each once. The caller frees *list.
 * Returns their number, or -ESRCH with a message if one of them does not exist. */
int threads_list(const int32_t *pids, uint32_t nr_pids, const int32_t *tids, uint32_t nr_tids,
		 int32_t **list, struct error *err);
/* Returns whether all threads have exited. Those before *at had exited at an earlier call. */
bool threads_ended(const int32_t *tids, uint32_t n, uint32_t *at);
