#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# On a terminal, a run says what it traces and how to end it.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch
command -v script >/dev/null || skip_all 'script is not installed'

# on_terminal ARG...: runs profscript on a terminal, output in $TMP/out
on_terminal() { script -qec "$(printf '%q ' "$PROFSCRIPT" "$@")" /dev/null </dev/null >"$TMP/out" 2>&1; }

on_terminal rundelay --duration 0.1
expect_line 'events' '^rundelay: tracing sched:sched_wakeup, .*sched:sched_switch' "$TMP/out"
expect_line 'target and end, on a line of their own' '^  on all online CPUs for 100 ms; Ctrl-C prints the result' "$TMP/out"
on_terminal trace -e sched:sched_switch -- true
expect_line 'a workload' '^  on the workload true, and its children, until true ends' "$TMP/out"
on_terminal exec -e sched:sched_switch 'count()' --duration 0.1 -q
check 'not with -q' bash -c "! grep -q tracing '$TMP/out'"
on_terminal trace -e sched:sched_switch --input "$DATA/sched.data" -N 1
check 'not of a recording' bash -c "! grep -q tracing '$TMP/out'"
"$PROFSCRIPT" exec -e sched:sched_switch 'count()' --duration 0.1 >"$TMP/out" 2>"$TMP/err"
check 'not into a pipe' test ! -s "$TMP/err"
on_terminal exec -e sched:sched_switch 'count(ev.next_comm)' --duration 2.5
expect_line 'what is drawn meanwhile is not the result' '^profscript +[0-9]+' <(tr -d '\r' <"$TMP/out")
check 'which is printed once' test "$(tr -d '\r' <"$TMP/out" | grep -c '^next_comm  *count$')" -eq 1
