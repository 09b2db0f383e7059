# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
# Profilers on the events of a sender on this machine: they report what they report without a link.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch

# link ARG...: profscript ARG... sends to a profiler while the workload runs. The arguments after -- are the profiler's.
# CSV or text of the profiler is in $TMP/out.
link() {
	local sender receiver send=()
	while [ "$1" != -- ]; do
		send+=("$1")
		shift
	done
	rm -f "$TMP/err" "$TMP/sent"
	"$PROFSCRIPT" "${send[@]}" --push "unix:$TMP/s" -m 2048 >"$TMP/sent" 2>&1 &
	sender=$!
	wait_for 20 grep -q '^Listen at' "$TMP/sent"
	wait_ready $sender
	"$PROFSCRIPT" "${@:2}" >"$TMP/out" 2>"$TMP/err" &
	receiver=$!
	wait_for 20 grep -q 'Connected to' "$TMP/err"
	go
	kill -INT $sender 2>/dev/null # it may end with the workload
	wait $sender $receiver
	check "${2}: the run ends with its sender" test $? -eq 0
}

workload syscalls 5000
link syscalls -p "$WORKLOAD" -- syscalls --input "unix:$TMP/s" --format csv -i 100s
check "syscalls: all calls" grep -q ",getppid,$GETPPID,5000," "$TMP/out"

# The kernel hides a switch now and then: one task that switches often.
workload pingpong -c 0 2000
link trace -e sched:sched_switch -- oncpu --input "unix:$TMP/s" -i 100s
expect_line 'oncpu: tasks have their names' "ping:$WORKLOAD" "$TMP/out"

workload syscalls 5000
link task-state -- task-state --input "unix:$TMP/s" --format csv -i 100s
check 'task-state: states have rows' awk -F, 'NR > 1 && /(^|,)"?S"?,/ { found = 1 } END { exit !found }' "$TMP/out"

workload syscalls 500000
link profile -g -p "$WORKLOAD" -- profile -g --input "unix:$TMP/s"
expect_line 'profile -g: functions of the kernel' '^ +ffff[0-9a-f]+ [a-z_0-9]+\+0x[0-9a-f]+ \(\[kernel.kallsyms\]\)' "$TMP/out"
expect_line 'profile -g: functions of programs' "^ +[0-9a-f]+ [a-z_0-9]+\\+0x[0-9a-f]+ \\(.*/(syscalls|libc[.].*)\\)" "$TMP/out"

workload syscalls 200
link trace -e "raw_syscalls:sys_enter/id==$GETPPID/,raw_syscalls:sys_exit/id==$GETPPID/" -p "$WORKLOAD" -- \
	multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit --than 1ns --detail --input "unix:$TMP/s" -i 100s
check 'multi-trace --detail: each pair' test "$(grep -c 'raw_syscalls:sys_exit: ' "$TMP/out")" -eq 200
check 'multi-trace --detail: latencies' test "$(grep -c '^|+ [0-9.]* us' "$TMP/out")" -eq 200

# A sender that only has perf.
workload syscalls 1000
rm -f "$TMP/s" "$TMP/err"
mkfifo "$TMP/pipe"
perf record -a -k CLOCK_MONOTONIC -e raw_syscalls:sys_enter --filter "id == $GETPPID" -o - >"$TMP/pipe" 2>"$TMP/perf" &
recorder=$!
python3 "$TOP/tests/tools/link.py" "$TMP/s" - <"$TMP/pipe" >"$TMP/link" 2>&1 &
wait_for 20 grep -q listening "$TMP/link"
"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter//pull=\"unix:$TMP/s\"/" >"$TMP/out" 2>"$TMP/err" &
receiver=$!
wait_for 20 grep -q 'Connected to' "$TMP/err"
wait_ready $recorder
go
kill -INT $recorder
wait $receiver
check 'perf record: the run ends with its sender' test $? -eq 0
check 'perf record: all calls' test "$(grep -c " G .* $WORKLOAD .*raw_syscalls:sys_enter" "$TMP/out")" -eq 1000
