#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Filters in BPF programs on a tracepoint's arguments (bpf/gen/arguments.lua): the counts are those of exact
# workloads, and of perf's filters in the same run.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch sched:sched_waking

# in_kernel EVENT FILTER COMMAND: prints the number of events that match, or what is wrong. Returns 3 if the kernel or the
# filter allows no such program.
in_kernel() {
	local status
	"$PROFSCRIPT" --lua "$TOP/tests/tools/kernel_filter.lua" "$@" >"$TMP/out" 2>"$TMP/err"
	status=$?
	if [ $status -eq 0 ]; then
		awk '{ print $1 }' "$TMP/out"
	else
		cat "$TMP/out" "$TMP/err"
	fi
	return $status
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
[ $? -ne 3 ] || skip_all "$why"

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
of_workload 'says what it cannot' "the arguments of block:block_rq_issue do not have 'rwbs'" \
	block:block_rq_issue 'rwbs == "R"'
of_workload 'says that an event is not in the table' \
	"the arguments of sched:sched_process_exec do not have 'old_pid'" sched:sched_process_exec 'old_pid > 0'

command -v perf >/dev/null || skip_all 'perf is not installed'

# as_perf EVENT FILTER SHELL: counts events in BPF and by perf's filter while a shell command runs, and prints both
as_perf() {
	local got
	got=$(in_kernel "$1" "$2" "perf stat -a -x, -o $TMP/stat -e $1 --filter '$2' sh -c '$3'")
	echo "$got $(awk -F, -v event="$1" '$3 == event { print $1 }' "$TMP/stat")"
}

# A task that sleeps, shares a CPU, is stopped and dies; its children have its name.
cat >"$TMP/states" <<-'END'
	printf kp_states >/proc/$$/comm
	spin() { local i; for ((i = 0; i < 60000; i++)); do :; done; }
	spin & spin & wait
	for i in 1 2 3 4 5; do (kill -STOP $BASHPID) & sleep 0.01; kill -CONT $!; wait $!; done
END
seen=0
for state in 0 1 2 4 8 16 32 64 128 256; do
	read -r bpf perf <<<"$(as_perf sched:sched_switch "prev_state == $state && prev_comm == \"kp_states\"" \
		"exec taskset -c 0 bash $TMP/states")"
	echo "$bpf in BPF, $perf by perf" >"$TMP/.counts"
	[ "$bpf" = "$perf" ]
	result $? "as many switches with prev_state $state as perf finds" "$TMP/.counts"
	case $state in
	0 | 1 | 4 | 32) [ "$bpf" -gt 0 ] && seen=$((seen + 1)) ;;
	esac
done
check 'and some that yield, sleep, are stopped and die' test "$seen" -eq 4
# Threads of the kernel are idle, and some kernels preempt nothing else. perf counts for less time.
for state in 128 256; do
	read -r bpf perf <<<"$(as_perf sched:sched_switch "prev_state == $state" 'sleep 0.7')"
	check "prev_state $state" test "$bpf" -ge "$perf" -a "$perf" -ge "$((state == 128))"
done

truncate -s 1M "$TMP/image"
if loop=$(losetup -f --show "$TMP/image" 2>/dev/null); then
	IFS=: read -r major minor <"/sys/class/block/${loop#/dev/}/dev"
	echo mq-deadline 2>/dev/null >"/sys/class/block/${loop#/dev/}/queue/scheduler" # without one, nothing is inserted
	dev="dev == $((major * (1 << 20) + minor))"
	inserts=
	! grep -q '\[mq-deadline\]' "/sys/class/block/${loop#/dev/}/queue/scheduler" || inserts='block_rq_insert:bytes == 4096'
	for test in block_getrq:'sector % 8 == 0' block_rq_issue:'bytes == 4096' ${inserts:+"$inserts"} \
		block_rq_complete:'sector >= 8'; do
		filter="$dev && nr_sector == 8 && ${test#*:}"
		got=$(in_kernel "block:${test%%:*}" "$filter" "dd if=$loop of=/dev/null bs=4k count=40 iflag=direct status=none")
		want=40
		[ "${test#*:}" != 'sector >= 8' ] || want=39
		echo "$got, not $want" >"$TMP/.counts"
		[ "$got" = "$want" ]
		result $? "requests of block:${test%%:*} with ${test#*:}" "$TMP/.counts"
	done
	losetup -d "$loop"
else
	skip 'block requests' 'no loop device'
fi
