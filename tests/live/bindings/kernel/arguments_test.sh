#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Filters in BPF programs on a tracepoint's arguments (bindings/kernel/arguments.lua): the counts are those of exact
# workloads, and of perf's filters in the same run.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch sched:sched_waking

# in_kernel EVENT FILTER COMMAND: prints the number of events that match, or what is wrong
in_kernel() {
	if "$PROFSCRIPT" --lua "$TOP/tests/tools/kernel_filter.lua" "$@" >"$TMP/out" 2>"$TMP/err"; then
		awk '{ print $1 }' "$TMP/out"
	else
		cat "$TMP/out" "$TMP/err"
	fi
}

# of_workload NAME COUNT EVENT FILTER: the waiting workload makes so many events; PID in the filter is its process
of_workload() {
	local got filter=${4//PID/$WORKLOAD}
	got=$(in_kernel "$3" "$filter" "$RUN")
	echo "$3/$filter/: $got, not $2" >"$TMP/.counts"
	[ "$got" = "$2" ]
	result $? "$1" "$TMP/.counts"
}

# prepare NAME ARG...: starts a workload that waits; $RUN lets it run, and returns when it has ended
prepare() {
	workload "$@"
	RUN="echo >$TMP/go; while grep -q '^State:.[^Z]' /proc/$WORKLOAD/status 2>/dev/null; do sleep 0.02; done"
}

why=$(in_kernel raw_syscalls:sys_enter 'id == 1' true)
case $why in
*[!0-9]*) skip_all "$why" ;;
esac

prepare syscalls 20000
of_workload 'a number and the task' 20000 raw_syscalls:sys_enter \
	"id == $GETPPID && _comm == \"syscalls\" && _pid == PID && _tid == PID"
prepare syscalls 20000
of_workload 'a converted member' 20000 raw_syscalls:sys_exit \
	"id * 2 == $((2 * GETPPID)) && ret > 0 && _comm ~ \"*sysc?lls\" && _pid == PID"
prepare pingpong -c 0 5000
of_workload 'names, field against field' 10000 sched:sched_waking \
	'_pid == PID && comm ~ "p[io]ng" && _comm ~ "p?ng" && comm != _comm && target_cpu == _cpu'
prepare pingpong -c 0 5000
of_workload 'no event' 0 sched:sched_waking '_pid == PID && comm == "ping" && comm == "pong"'

if ! command -v perf >/dev/null; then
	skip "perf's count" 'perf is not installed'
else
	prepare pingpong -c 0 5000
	in_kernel sched:sched_switch "prev_pid == $WORKLOAD && prev_prio == next_prio * 1" \
		"perf stat -a -x, -o $TMP/stat -e sched:sched_switch --filter 'prev_pid == $WORKLOAD && next_prio == 120' \
		sh -c \"$RUN\"" >"$TMP/got"
	awk -F, '/sched_switch/ { print $1 }' "$TMP/stat" >"$TMP/want"
	check "as many switches as perf's filter finds" diff "$TMP/want" "$TMP/got"
	check 'and some' test "$(cat "$TMP/got")" -ge 5000
fi

RUN=true
of_workload 'says what it cannot' "the arguments of sched:sched_switch do not have 'prev_state'" \
	sched:sched_switch 'prev_state > 0'
of_workload 'says that an event is not in the table' 'not in the table' sched:sched_process_exec 'pid > 0'
