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
check_status 'a limit alone has a period that fits' 0 timeout 20 "$PROFSCRIPT" irq-off -L 10000 --duration 0.3
"$PROFSCRIPT" irq-off --dry-run >"$TMP/plan"
expect_line 'without a limit, it is 20 ms, and the period 10 ms' 'cpu-clock: .* every 10000000th event' "$TMP/plan"
timeout 20 "$PROFSCRIPT" irq-off -L 15 -N 1 >"$TMP/out" # half of it is less than the shortest period
expect_line 'the time between the interrupts' 'irq-off: cpu-clock [0-9]{5,} ns' "$TMP/out"
refused 'nothing can be late' 2 '.*--than must be longer than --period' irq-off --than 1ms --period 1ms
