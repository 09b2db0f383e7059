/* SPDX-License-Identifier: GPL-2.0-only */
/* Threads of processes, as /proc lists them now. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct error;

/* The kernel's PID_MAX_LIMIT: every process and thread id is smaller. */
enum { PIDS_MAX = 1 << 22 };

/* All threads of the processes, and the single threads, each once; *list is to be freed by the
 * caller. Returns their number, or -ESRCH with a message when one of them does not exist. */
int threads_list(const int32_t *pids, uint32_t nr_pids, const int32_t *tids, uint32_t nr_tids,
		 int32_t **list, struct error *err);
/* Whether all of the threads have ended; those before *at had at an earlier call. */
bool threads_ended(const int32_t *tids, uint32_t n, uint32_t *at);
