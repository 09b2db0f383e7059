#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# irq-off: a clock whose samples are late.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch

timeout 20 "$PROFSCRIPT" irq-off --period 1ms --than 1000001ns -N 2 >"$TMP/out" # any jitter is more than 1 ns
check 'it prints late samples' test "$(grep -c 'irq-off: cpu-clock [0-9]* ns' "$TMP/out")" -eq 2
refused 'nothing can be late' 2 '.*--than must be longer than --period' irq-off --than 1ms
