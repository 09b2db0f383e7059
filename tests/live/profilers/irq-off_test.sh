#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# irq-off: a clock whose samples are late.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch

timeout 20 "$PROFSCRIPT" irq-off --period 1ms --than 1000001ns -N 2 >"$TMP/out" # any jitter is more than 1 ns
check 'it prints late samples' test "$(grep -c 'irq-off: cpu-clock [0-9]* ns' "$TMP/out")" -eq 2
timeout 20 "$PROFSCRIPT" irq-off --period 1ms -L 1001 --precise -N 2 >"$TMP/out" # us
check '-L is --than' test "$(grep -c 'irq-off: cpu-clock [0-9]* ns' "$TMP/out")" -eq 2
refused '-L is in us' 2 '.*--than must be longer than --period' irq-off -L 1000 --period 1ms
refused 'it needs a limit' 2 ".*option '--than T' is required" irq-off
refused 'nothing can be late' 2 '.*--than must be longer than --period' irq-off --than 1ms
