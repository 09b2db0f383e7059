#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What is kept by thread goes on with the thread when the kernel gives it the id of its process's first thread, which
# it does at an execve() of another thread. Compared with what perf script's text says.
. "$(dirname "$0")/../../../lib.sh"
export TZ=UTC

run() { "$PROFSCRIPT" "$@" --input "$DATA/execs.data" --csv >"$TMP/out" 2>"$TMP/err"; }

# Calls, their sum and what the threads run, by thread, in ns. A thread's former id is that of its new one.
perf script -i "$DATA/execs.data" --ns -G -F tid,time,event,trace 2>/dev/null |
	sed -E 's/^ *([0-9]+) +([0-9]+)\.([0-9]+): +/\1 \2\3 /' |
	awk 'function field(name) { match($0, " " name "=[^ ]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		{ time = $2 }
		$3 == "raw_syscalls:sys_enter:" { began[$1] = time }
		$3 == "raw_syscalls:sys_exit:" && $1 in began { calls++; sum += time - began[$1]; delete began[$1] }
		$3 == "sched:sched_process_exec:" {
			old = field("old_pid"); pid = field("pid")
			if (old != pid) moved++
			if (old != pid && old in began) { began[pid] = began[old]; delete began[old] }
			if (runs == old) runs = pid }
		$3 == "sched:sched_switch:" {
			pid = field("prev_pid")
			if (runs != "" && runs != pid) missing++
			if (runs != "" && pid > 0) { ran[pid] += time - since }
			runs = field("next_pid"); since = time }
		END {
			print calls "," sum "," moved + 0 "," missing + 0
			for (pid in ran) print pid "," ran[pid] | "sort -n" }' >"$TMP/want"
check 'two threads execute a program, and no switch is missing' grep -q ',2,0$' "$TMP/want"

run syscalls
check 'execve of all threads' diff <(head -n 1 "$TMP/want" | cut -d, -f1,2) <(tail -n 1 "$TMP/out" | cut -d, -f5,6)
run multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --than 1ns
check 'outliers have both events' test "$(grep -c '^raw_syscalls:sys_enter,' "$TMP/out")" -eq 7 -a \
	"$(grep -c '^raw_syscalls:sys_exit,' "$TMP/out")" -eq 7
for profiler in rundelay oncpu task-state; do
	run $profiler
	check "$profiler: no switch is missing" diff /dev/null "$TMP/err"
done
run task-state --perins
awk -F, 'NR > 1 && $5 == "R" { print $3 "," $7 }' "$TMP/out" | sort -n >"$TMP/got"
check 'task-state: what the threads run' diff <(tail -n +2 "$TMP/want") "$TMP/got"
run oncpu
awk -F, 'NR > 1 { print $4 "," $6 }' "$TMP/out" | sort -n >"$TMP/got"
check 'oncpu: the same, or more at the start and the end' awk -F, 'NR == FNR { got[$1] = $2; next }
	FNR > 1 && got[$1] < $2 { print; bad = 1 } END { exit bad }' "$TMP/got" "$TMP/want"
