#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Pairs that BPF programs find: the counts of exact workloads, as through perf.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup

why=$("$PROFSCRIPT" syscalls --capture=bpf --duration 0.01 2>&1 >/dev/null) || skip_all "$why"

# figures COLUMN...: these columns of the CSV in $TMP/out
figures() {
	awk -F, -v wanted="$*" '
		BEGIN { n = split(wanted, names, " ") }
		!(FNR > 1 && at[names[1]]) { for (i = 1; i <= NF; i++) at[$i] = i; next }
		{ line = ""; for (i = 1; i <= n; i++) line = line $at[names[i]] " "; print line }' "$TMP/out" | sort
}

# plausible: in each row of the CSV, min <= p50 <= p95 <= max, and calls * min <= total <= calls * max
plausible() {
	figures calls total_ns min_ns p50_ns p95_ns max_ns | awk '
		!($3 > 0 && $3 <= $4 && $4 <= $5 && $5 <= $6 && $1 * $3 <= $2 && $2 <= $1 * $6) { bad = 1 } END { exit bad || !NR }'
}

for how in perf bpf; do
	workload syscalls 20000
	ours=common_pid==$WORKLOAD
	trace_workload syscalls -e "raw_syscalls:sys_enter/$ours/" -e "raw_syscalls:sys_exit/$ours/" --capture=$how -m 2048 --csv -v
	check "syscalls, $how: all calls" test "$(figures nr calls err | grep "^$GETPPID ")" = "$GETPPID 20000 0 "
	figures nr calls err >"$TMP/rows.$how"
	check "syscalls, $how: as many events as calls" awk -v n="$(awk '{ n += $2 } END { print n }' "$TMP/rows.$how")" \
		'$1 ~ /^raw_syscalls:sys_(enter|exit)$/ && NF >= 8 { read += $5 } END { exit read < 2 * n - 2 || read > 2 * n + 2 }' "$TMP/err"

	workload syscalls 20000
	ours=common_pid==$WORKLOAD
	trace_workload syscalls --perins -e "raw_syscalls:sys_enter/$ours/" -e "raw_syscalls:sys_exit/$ours/" --capture=$how -m 2048 --csv
	check "syscalls --perins, $how" test "$(figures thread nr calls | awk -v nr="$GETPPID" '$2 == nr')" = \
		"$WORKLOAD $GETPPID 20000 "

	cp "$(command -v rmdir)" "$TMP/fail$$"
	start syscalls -e "raw_syscalls:sys_enter/id==rmdir&&comm==\"fail$$\"/" -e "raw_syscalls:sys_exit/id==rmdir&&comm==\"fail$$\"/" \
		--capture=$how -m 2048 --csv
	for _ in {1..25}; do "$TMP/fail$$" "$TMP/none" "$TMP" 2>/dev/null; done
	stop
	check "syscalls, $how: calls that fail" test "$(figures calls err | awk '{ print ($1 == $2 && $1 >= 50) }')" = 1

	workload syscalls 20000
	ours=common_pid==$WORKLOAD
	trace_workload multi-trace -e "raw_syscalls:sys_enter/$ours && id == $GETPPID/" \
		-e "raw_syscalls:sys_exit/$ours && id == $GETPPID/" -k common_pid --perins --capture=$how -m 2048 --csv -i 200
	check "multi-trace --perins, $how" test "$(figures key calls | awk '{ n += $2; key = $1 } END { print key, n }')" = \
		"$WORKLOAD 20000"
	check "multi-trace --perins, $how: latencies" plausible

	workload -C 0 syscalls 20000
	ours=common_pid==$WORKLOAD
	trace_workload multi-trace -e "raw_syscalls:sys_enter/$ours && id == $GETPPID/" \
		-e "raw_syscalls:sys_exit/$ours && id == $GETPPID/" --perins --capture=$how -m 2048 --csv
	check "multi-trace by CPU, $how" test "$(figures key calls)" = '0 20000 '
	check "multi-trace by CPU, $how: latencies" plausible

	# Both stages in a cycle: calls, and the times between them.
	workload syscalls 20000
	ours=common_pid==$WORKLOAD
	trace_workload multi-trace -e "raw_syscalls:sys_enter/$ours && id == $GETPPID/" \
		-e "raw_syscalls:sys_exit/$ours && id == $GETPPID/" -k common_pid --cycle --capture=$how -m 2048 --csv
	check "multi-trace --cycle, $how" test "$(figures start stop calls | tr '\n' ' ')" = \
		'sys_enter sys_exit 20000  sys_exit sys_enter 19999  '
	check "multi-trace --cycle, $how: latencies" plausible
done
check 'the same system calls' diff "$TMP/rows.perf" "$TMP/rows.bpf"

# The waits of two tasks that wake each other 5000 times. perf may miss some switches.
workload pingpong -c 0 5000
watch_tasks 'p[io]ng'
trace_workload rundelay --perins --capture=bpf --csv -v
if all_reported 'rundelay: a wait for each wakeup'; then
	n=$(figures comm start calls | awk '/^p[io]ng sched_wakeup / { n += $3 } END { print n }')
	echo "$n waits" >"$TMP/.waits"
	[ "$n" -ge 9990 ] && [ "$n" -le 10010 ]
	result $? 'rundelay: a wait for each wakeup' "$TMP/.waits"
fi
check 'rundelay: latencies' plausible
workload pingpong -c 0 5000
trace_workload rundelay --capture=bpf --csv -v -i 100
check 'rundelay: with intervals' test "$(figures calls | awk '{ n += $1 } END { print n }')" -ge 9990
check 'in the kernel' grep -q 'sched:sched_switch: id .*, paired in the kernel, by a BPF program' "$TMP/err"

"$PROFSCRIPT" multi-trace -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit,sched:sched_switch//trigger/untraced/ \
	--dry-run -v >"$TMP/out" 2>&1
expect_line 'triggers' 'captured one by one: an interval ends just where its trigger is among the events' "$TMP/out"
refused 'details' 2 '.*not possible: .*; nor can programs count or pair them: details are printed' rundelay --than 1s \
	--detail --heatmap "$TMP/map" --capture bpf --duration 0.1
"$PROFSCRIPT" multi-trace -e sched:sched_wakeup//key=pid/ -e sched:sched_switch//key=next_pid/ --than 1s --dry-run >"$TMP/out"
check 'wakeups that are printed: of other tasks' test "$(grep -c 'paired in the kernel' "$TMP/out")" = 2
# The waits of two tasks that wake each other 1000 times, and their children's, as outliers.
for args in '--than 1ns' '--lower 100s' '--only-than 1ns'; do
	workload pingpong -c 0 1000
	# shellcheck disable=SC2086 # words
	trace_workload rundelay $args -p "$WORKLOAD" -m 2048 --capture=bpf -v
	# An odd line is the wakeup of a task, or the switch from it, and the next line the switch to it. The table counts them.
	awk '
		function pid(name) { match($0, " " name "=[0-9]+"); return substr($0, RSTART + length(name) + 2, RLENGTH - length(name) - 2) }
		/: sched:/ && !first { first = $0; sub(/.*: sched:/, "", first); sub(/:.*/, "", first)
			task = pid(first == "sched_switch" ? "prev_pid" : "pid"); next }
		/: sched:/ { if (!/: sched:sched_switch:/ || pid("next_pid") != task) { print; bad = 1 } pairs[first]++; first = ""; next }
		$2 == "=>" && $4 ~ /^[0-9]/ { rows++; if (pairs[$1] != $4) { print pairs[$1] " pairs:", $0; bad = 1 } if ($1 == "sched_wakeup") wakeups = $4 }
		END { print rows " rows, " wakeups " wakeups"; exit bad || !rows || wakeups < 1990 || wakeups > 2010 }
	' "$TMP/out" >"$TMP/.wrong"
	wrong=$?
	cat "$TMP/err" >>"$TMP/.wrong"
	result $wrong "rundelay -p $args: both events of each wait" "$TMP/.wrong"
	check "rundelay -p $args: in the kernel" grep -q ', paired in the kernel, by a BPF program; those' "$TMP/err"
done

leaves_no_program 4 rundelay --capture=bpf -i 100
