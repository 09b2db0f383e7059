#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# hrcount: counts in the periods of a clock. Each system call of a program is in some period.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch

for period in 1ms 10ms; do
	workload syscalls 20000
	start hrcount -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/alias=calls/" \
		--period $period -i 50 --perins --format json
	go_until total 20000
	expect_line "--period $period: N system calls" '^20000$' "$TMP/sum"
	check 'in the rows of an interval' awk -F'[][]' -v cells=$((50 / ${period%ms})) '
		split($2, n, ",") > cells { exit 1 }' "$TMP/out"
done
"$PROFSCRIPT" hrcount -e sched:sched_switch -i 20 --period 2ms -N 3 >"$TMP/out"
check '-N 3: three reports' test "$(grep -c 'total' "$TMP/out")" -eq 3
expect_line 'ten periods' '^sched:sched_switch +([0-9]+\| *){9}[0-9]+ \| total [0-9]+$' "$TMP/out"
"$PROFSCRIPT" hrcount -e sched:sched_switch -i 20 -N 2 --filter 'prev_pid == -1' >"$TMP/out"
expect_line '--filter: of the counted event, not of its clock' '^sched:sched_switch 0 \| total 0$' "$TMP/out"
"$PROFSCRIPT" hrcount -e sched:sched_switch -C 0 --duration 0.1 >"$TMP/out" 2>"$TMP/err" # its period is a second
expect_line 'less than a period is unknown' 'no samples from CPU 0: its counts are unknown$' "$TMP/err"

refused 'no events' 2 'hrcount: no events; select some with -e' hrcount -N 1
for args in '-p 1' '--input x' -g '-F 9' '--prio 100'; do
	# shellcheck disable=SC2086 # an option and its value
	refused "it has no $args" 2 "hrcount: option '${args% *}' does not apply to this profiler" \
		hrcount -e sched:sched_switch $args
done
check_status 'nor a workload' 2 "$PROFSCRIPT" hrcount -e sched:sched_switch true
