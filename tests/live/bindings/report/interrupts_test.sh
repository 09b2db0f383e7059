#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events that happen in interrupts are missing in a run of named threads: a line says so, and only then.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint timer:timer_start block:block_rq_complete sched:sched_switch

said() { grep -c "also happens in interrupts" "$TMP/err"; }

"$PROFSCRIPT" exec -e timer:timer_start 'count()' -- true >"$TMP/out" 2>"$TMP/err"
expect_line 'a command' '^exec: timer:timer_start also happens in interrupts, .* are missing' "$TMP/err"
"$PROFSCRIPT" trace -e block:block_rq_complete -e timer:timer_start -p $$ --duration 0.1 >"$TMP/out" 2>"$TMP/err"
expect_line 'two events, of a process' ': block:block_rq_complete \(and 1 more\) also happens' "$TMP/err"
check 'one line' test "$(said)" -eq 1
"$PROFSCRIPT" exec -e timer:timer_start 'count()' --duration 0.1 >"$TMP/out" 2>"$TMP/err"
check 'not if all tasks are traced' test "$(said)" -eq 0
"$PROFSCRIPT" exec -e sched:sched_switch 'count()' -- true >"$TMP/out" 2>"$TMP/err"
check 'not about other events' test "$(said)" -eq 0
"$PROFSCRIPT" exec -q -e timer:timer_start 'count()' --record "$TMP/r.data" -- true >/dev/null 2>&1
"$PROFSCRIPT" exec -e timer:timer_start 'count()' --input "$TMP/r.data" >"$TMP/out" 2>"$TMP/err"
check 'not about recordings' test "$(said)" -eq 0
