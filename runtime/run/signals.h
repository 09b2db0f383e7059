/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Signals: SIGINT and SIGTERM ask a run to end; a second one ends the process at once. Hooks do
 * not fire in compiled Lua, so the request is a flag that is looked at between batches.
 */
#pragma once
#include <stdbool.h>

void signals_install(void);
/* Whether the user asked for the end; the same answer until the process ends. */
bool signals_stop_requested(void);
