/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SIGINT and SIGTERM ask a run to end; another one, some time later, kills the process. The request
 * is a flag that is checked between batches; where no batch ends, see watchdog.h. SIGUSR1 asks to
 * reopen the output file, SIGUSR2 to report on the run.
 */
#pragma once
#include <stdbool.h>

void signals_install(void);
/* Returns whether the user asked the run to end. The answer stays true. */
bool signals_stop_requested(void);
/* Returns whether SIGUSR1 came since the last call. */
bool signals_take_reopen(void);
/* The same for SIGUSR2. */
bool signals_take_report(void);
