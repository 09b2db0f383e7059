/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signals: SIGINT and SIGTERM ask a run to end; a second one, some time later, ends the process at
 * once. The request is a flag that is looked at between batches; where that does not happen, see
 * watchdog.h. SIGUSR1 asks for the output's file to be opened anew, SIGUSR2 for a report about the
 * run.
 *
 * This header is read by C and by LuaJIT's ffi.cdef: plain declarations only.
 */
#pragma once
#include <stdbool.h>

void signals_install(void);
/* Whether the user asked for the end; the same answer until the process ends. */
bool signals_stop_requested(void);
/* Whether SIGUSR1 has come since the last call. */
bool signals_take_reopen(void);
/* The same of SIGUSR2. */
bool signals_take_report(void);
