/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SIGINT, SIGTERM and SIGHUP ask a run to end; another one, some time later, kills the process. The
 * request is a flag that is checked between batches; where no batch ends, see watchdog.h. SIGUSR1
 * asks to reopen the output file, SIGUSR2 to report on the run.
 *
 * A run may be waiting for the other programs of a pipeline: for the perf whose recording it reads,
 * or for the reader of its output. Ctrl-C reaches those too and usually ends them, so it is right
 * to wait. But after a second signal, and a second after SIGTERM or SIGHUP, the run must end
 * without them; only the next signal kills.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Catches SIGUSR1 and SIGUSR2, which would kill the process. To be called first of all. */
void signals_install_requests(void);
/* Catches the other signals, when there is a run to end. */
void signals_install(void);
/* Returns a descriptor that becomes readable with each request, so that a poll() that begins just
 * after one returns, too; -1: there is none. It stays readable until it is cleared. Look at the
 * requests after clearing it. */
int signals_fd(void);
void signals_clear_fd(void);
/* Returns whether the user asked the run to end. The answer stays true. */
bool signals_stop_requested(void);
/* Returns whether what is left to be read or printed after the request is to be left: a second
 * after it, if `much` was done since. A slow machine may need longer for less, which is not worth a
 * partial result; but no more than 3 seconds of its CPU time, and 20 seconds. `done` is what was
 * done so far. *before keeps that at the request, so call it before, too. */
bool signals_overdue(uint64_t *before, uint64_t done, uint64_t much);
/* Says that the run waits for other programs from now on. Calls nest. */
void signals_wait_for_others(bool waits);
/* Returns whether to stop waiting for other programs. The answer stays true. */
bool signals_must_end(void);
/* Returns whether SIGUSR1 came since the last call. */
bool signals_take_reopen(void);
/* The same for SIGUSR2. */
bool signals_take_report(void);
