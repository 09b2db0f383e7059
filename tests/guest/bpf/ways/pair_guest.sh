#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pairs in the kernel on a distribution's kernel: programs load, and find those of an exact workload.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter

workload syscalls 5000
ours=common_pid==$WORKLOAD
trace_workload syscalls -e "raw_syscalls:sys_enter/$ours/" -e "raw_syscalls:sys_exit/$ours/" --capture=bpf --csv
check 'system calls' grep -q ",$GETPPID,5000," "$TMP/out"

workload syscalls 500
trace_workload syscalls --than 1ns -p "$WORKLOAD" --capture=bpf
check 'syscalls --than: those that return' test "$(grep -c "sys_exit: NR $GETPPID " "$TMP/out")" -eq 500
check 'syscalls --than: one that ends with its task' grep -A 1 'sys_enter: NR 231 ' "$TMP/out"
expect_line 'syscalls --than: and its end' " exit: pid=$WORKLOAD tid=$WORKLOAD" "$TMP/out"

workload pingpong -c 0 500
trace_workload rundelay --perins --capture=bpf --csv
awk -F, '$4 ~ /^p[io]ng$/ && $5 == "sched_wakeup" { n += $7 } END { print n " waits"; exit n < 990 || n > 1010 }' \
	"$TMP/out" >"$TMP/waits"
result $? 'waits of tasks that wake each other' "$TMP/waits"
for p in '' -p; do
	workload pingpong -c 0 500
	# shellcheck disable=SC2086 # words
	trace_workload rundelay $p ${p:+$WORKLOAD} --than 1ns --capture=bpf
	check "rundelay $p --than: both events of each wait" awk '
		/sched:sched_wakeup: comm=p[io]ng / { woken = $0; sub(/.* pid=/, "", woken); sub(/ .*/, "", woken); next }
		woken && / next_pid=/ { n += index($0, " next_pid=" woken " ") > 0; woken = "" }
		END { print n " waits"; exit n < 990 || n > 1010 }' "$TMP/out"
done

"$PROFSCRIPT" blktrace --capture=bpf -v --duration 1ms >"$TMP/out" 2>&1
check 'programs for block requests' test "$(grep -c 'paired in the kernel' "$TMP/out")" -eq 4
