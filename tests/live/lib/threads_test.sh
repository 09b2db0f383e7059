#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --cgroups of profilers about tasks: the task that an event is about must be in the group, not the current one. The
# group has a process from before the run, and gets another one, in a group that did not exist, during it.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch cgroup:cgroup_mkdir
hierarchy=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
group=tasks$$
mkdir "$hierarchy/$group" 2>/dev/null || skip_all 'no control group of version 2 can be made'
at_end() {
	local status=$?
	kill "${others[@]}" 2>/dev/null
	wait "${others[@]}" 2>/dev/null
	rmdir "$hierarchy/$group/late" "$hierarchy/$group" 2>/dev/null
	(exit $status)
	finish
}
trap at_end EXIT
pingpong=$TOP/build/workloads/pingpong
run_in() { exec bash -c 'echo $$ >"$0/cgroup.procs" && exec "${@}"' "$hierarchy/$1" "${@:2}"; }

"$pingpong" -c 0 1000000000 100 &
others=($!)
"$PROFSCRIPT" oncpu --cgroups "$group" --duration 0.01 >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"
(run_in "$group" "$pingpong" -c 0 1000000000 100) &
others+=($!)
first=$!
wait_for 20 eval "[ \$(ls /proc/$first/task | wc -l) -eq 2 ]"

# only_ours NAME ARG...: the profiler prints rows of both processes in the group, and none of another task.
only_ours() {
	start "${@:2}" --format csv --cgroups "$group"
	mkdir -p "$hierarchy/$group/late"
	(run_in "$group/late" "$pingpong" -c 0 200) &
	late=$!
	wait $late
	stop
	ls "/proc/${others[0]}/task" >"$TMP/outside"
	awk -F, -v late=$late -v first=$first '
		NR == FNR { outside[$1]; next }
		FNR == 1 { for (i = 1; i <= NF; i++) column[$i] = i; at = column["thread"] + column["tid"] + column["key"]; next }
		{ n[$at]++ }
		$at in outside || $column["comm"] !~ /^(bash|ping|pong)$/ { print "not in the group: " $0; bad = 1 }
		END { print first, n[first] + 0, late, n[late] + 0; exit bad || !n[first] || !n[late] }
	' "$TMP/outside" "$TMP/out" >"$TMP/wrong" 2>&1
	result $? "$1" "$TMP/wrong"
}
for how in auto perf; do
	only_ours "oncpu, $how" oncpu --capture $how
	only_ours "task-state, $how" task-state --perins --capture $how
	only_ours "rundelay, $how" rundelay --perins --capture $how
done
