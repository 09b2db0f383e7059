#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# hrtimer: counts in the samples of a clock. Each system call of a program is in some period, and the counts of each
# event are next to its name.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch

workload syscalls 20000
start hrtimer -e "sched:sched_switch//cpus=0/alias=zero/,raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/alias=calls/" \
	--period 5ms 'calls > 0' --format json
go_until calls 20000
expect_line 'all calls are in periods with calls' '^20000$' "$TMP/sum"
check 'an event of CPU 0 is on CPU 0' awk '/"cpu":0/ != /"zero":[0-9]/ { exit 1 }' "$TMP/out"
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 'sched_switch * 0 + 2' -N 3 >"$TMP/out"
check 'every value but 0 is true' test "$(grep -c 'hrtimer: cpu-clock [0-9]* ns' "$TMP/out")" -eq 3
expect_line 'with its counts' '^    sched_switch [0-9]+$' "$TMP/out"
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 -g 'period > 0' -N 4 >"$TMP/out"
expect_line 'and stacks' '^    [0-9a-f]{16} ' "$TMP/out"
began=$(date +%s)
"$PROFSCRIPT" hrtimer -e sched:sched_switch -F 100 -g 'period > 0' -N 1 --format json >"$TMP/out"
expect_line 'stacks in JSON' '"sched_switch":[0-9]+,"stack":\["[0-9a-f]{16} ' "$TMP/out"
check 'and the time' test "$(sed 's/.*"time":\([0-9]*\).*/\1/' "$TMP/out")" -ge "$began"

# As a source: its clock is printed with the events.
"$PROFSCRIPT" trace -e 'hrtimer/-F 20 -e sched:sched_switch 1/' --duration 0.3 >"$TMP/out"
expect_line 'as a source: its events' ': sched:sched_switch: prev_comm=' "$TMP/out"
expect_line 'as a source: its clock' ': hrtimer: cpu-clock$' "$TMP/out"
"$PROFSCRIPT" trace -e 'hrtimer/-F 20 -e sched:sched_switch "sched_switch > 1000000000"/' --duration 0.3 >"$TMP/out"
check 'as a source: only if its condition is true' test "$(grep -c ': hrtimer: cpu-clock$' "$TMP/out")" -eq 0
while sleep 0.01; do :; done &
load=$!
timeout 60 "$PROFSCRIPT" trace -e 'hrtimer/-F 20 -e sched:sched_switch "sched_switch > 1 && period > 40000000"/' -o "$TMP/clock" &
tracer=$!
wait_for 50 grep -q ': hrtimer: cpu-clock$' "$TMP/clock"
result $? 'as a source: its counts are those of its period'
stop
kill $load
refused 'no clock' 2 'hrtimer: .*--period or -F' hrtimer -e sched:sched_switch 1
