#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# Events that BPF programs capture (--capture): the same as those of perf, in the same order, and none is lost untold.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch sched:sched_wakeup irq:softirq_entry exceptions:page_fault_user
SEEN=$TOP/tests/tools/seen.lua

"$PROFSCRIPT" "$SEEN" -e sched:sched_switch --capture bpf --duration 1ms >"$TMP/out" 2>"$TMP/err" ||
	skip_all "$(sed -n '1s/.*not possible: //p' "$TMP/err")"
"$PROFSCRIPT" "$SEEN" -e sched:sched_switch --capture bpf --dry-run >"$TMP/out" 2>"$TMP/err"
expect_line 'the plan tells it' 'sched_switch: .*captured by a BPF program' "$TMP/out"

# --- the same records -----------------------------------------------------------------------------

# loads: what the events are of
loads="$TOP/build/workloads/pingpong 300; $TOP/build/workloads/syscalls 500
	$TOP/build/workloads/states signal 20 migrate 20 fork 20"

# equal NAME MINIMUM EVENT...: captured events and perf's are the same, at least so many of each. Another CPU may ask for
# a switch between the two. A few of perf's at the start and the end are missing, but none in between; perf may miss more.
# Nothing is lost. $only: events of the loads, not of all CPUs, on which others may have more than can be compared.
# $with: attributes of the events, each with a slash.
equal() {
	local name=$1 minimum=$2 online events=(-m 2048 --no-user-callchain) event
	shift 2
	read -r online </sys/devices/system/cpu/online
	for event in "$@"; do events+=(-e "$event//${with-}" -e "$event//cpus=$online/${with-}"); done
	"$PROFSCRIPT" "$TOP/tests/tools/captured.lua" "${events[@]}" --dry-run >"$TMP/out" 2>&1
	expect_line "$name: one of each two is captured" "^$#\$" <(grep -c 'captured by a BPF program' "$TMP/out")
	if [ -n "${only-}" ]; then
		"$PROFSCRIPT" "$TOP/tests/tools/captured.lua" "${events[@]}" -- bash -c "$loads" >"$TMP/out" 2>"$TMP/err"
	else
		start "$TOP/tests/tools/captured.lua" "${events[@]}"
		bash -c "$loads"
		stop
	fi
	# What the kernel counts but does not write while programs of others run is perf's, and told.
	grep -Ev ': [0-9]+ of [0-9]+ [a-z_:]+ are missing: the kernel counted them, but wrote no record of them$' "$TMP/err" >"$TMP/lost"
	result $((0 != $(wc -l <"$TMP/lost"))) "$name: nothing is lost" "$TMP/lost"
	awk -v minimum="$minimum" -v events=$# '
		/ equal, / { n++; if ($2 >= minimum && $4 <= $2 / 50 + 5 && $8 == 0 && $10 == 0 && $14 <= $2 / 20 + 20) next }
		{ print; bad = 1 }
		END { if (n != events) print n " of " events " events"; exit bad || n != events }
	' "$TMP/out" >"$TMP/wrong"
	result $? "$name" "$TMP/wrong"
}

# Newer kernels write the name of a task that migrates behind the record.
migrations=(sched:sched_migrate_task)
if grep -q '__data_loc char\[\] comm' /sys/kernel/tracing/events/sched/sched_migrate_task/format; then
	migrations=()
	refused 'a name without a fixed size' 2 "seen: --capture=bpf is not possible: 'comm' has no fixed size" "$SEEN" \
		-e sched:sched_migrate_task --capture bpf
fi
equal 'switches, new tasks, migrations' 20 sched:sched_switch sched:sched_wakeup_new "${migrations[@]}"
only=1 equal 'system calls' 500 raw_syscalls:sys_enter raw_syscalls:sys_exit
equal 'interrupts' 5 irq:softirq_entry irq:softirq_exit irq:softirq_raise
only=1 equal 'page faults' 500 exceptions:page_fault_user
with=stack/ equal 'with the stack in the kernel' 20 sched:sched_switch "${migrations[@]}"
only=1 with=stack/ equal 'system calls with the stack in the kernel' 500 raw_syscalls:sys_enter

# stack HOW ARG...: the symbols of the stack of a system call. Where the kernel calls several tracers of an event, it
# does so in a function of its own.
stack() {
	"$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id == $GETPPID/" --call-graph fp --capture "$@" -- "$TOP/build/workloads/syscalls" 1 |
		sed -n 's/^ *[0-9a-f]* \([^ ]*+0x[0-9a-f]*\) .*/\1/p' | grep -v __traceiter
}
for part in '' --no-user-callchain --no-kernel-callchain; do
	stack perf $part >"$TMP/perf"
	stack bpf $part >"$TMP/bpf"
	check "the same stack${part:+ with $part}" diff "$TMP/perf" "$TMP/bpf"
	check 'which is not empty' test -s "$TMP/bpf"
done

# --- order, losses, targets -----------------------------------------------------------------------

# seen ARG...: runs tests/tools/seen.lua during the workload of GETPPID; sets $seen, $lost and $early
seen() {
	start "$SEEN" "$@"
	go
	stop
	read -r seen _ lost _ early _ <"$TMP/out"
}

calls=100000
[ -z "${IN_GUEST-}" ] || calls=20000
workload syscalls $calls
seen -e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/" --capture bpf -m 4096
check "sees all of $((seen)) calls" test "$seen,$lost" = $calls,0

# The last call comes when there is room again, so it tells what was lost before it, on its CPU.
for pages in 4 16; do
	workload -C 0 syscalls $calls 1000000
	mkfifo "$TMP/last.$pages"
	taskset -c 0 "$TOP/build/workloads/syscalls" -w 1 <"$TMP/last.$pages" &
	last=$!
	exec {last_go}>"$TMP/last.$pages"
	wait_for 20 grep -qx syscalls "/proc/$last/comm" # no shell any more, which would make this call, too
	start "$SEEN" --capture bpf -m $pages --slow 20 \
		-e "raw_syscalls:sys_enter/id == $GETPPID && (common_pid == $WORKLOAD || common_pid == $last)/"
	go
	sleep 0.5
	echo >&"$last_go"
	exec {last_go}>&-
	wait $last
	stop
	read -r seen _ lost _ <"$TMP/out"
	check "-m $pages: $seen seen, $lost lost" test $((seen + lost)) -eq $((calls + 1)) -a "$lost" -gt 0 -a "$seen" -gt 1
	check "-m $pages: says where they were lost" grep -q 'lost [0-9]* events on CPU #0 between' "$TMP/err"
	check "-m $pages: all of them" bash -c "! grep 'unknown CPU' '$TMP/err'"
done

workload pingpong 3000
seen -e sched:sched_switch -e "sched:sched_switch//cpus=0/" -e irq:softirq_raise -e raw_syscalls:sys_enter -m 2048 -v
# An emulated CPU may stop for long between an event's time and its record, which then comes late: that is told.
late=$(sed -n 's/^profscript: .* \([0-9]*\) late$/\1/p' "$TMP/err")
check "captured and sampled events are in order: $seen, $early early, $late late" \
	test "$early" -eq "$late" -a "$early" -le $((seen / 1000)) -a "$seen" -gt 3000

workload -C 0 syscalls 2000
seen -e "raw_syscalls:sys_enter/id == $GETPPID/" --capture bpf -C 0
check '-C: events on the CPU' test "$seen" -ge 2000
if [ "$(nproc)" -gt 1 ]; then
	workload -C 0 syscalls 2000
	seen -e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == $WORKLOAD/" --capture bpf -C 1
	check '-C: none of others' test "$seen" -eq 0
fi

# --- what profilers print -------------------------------------------------------------------------

# both NAME COLUMN WANT ARG...: the sum of the column in a CSV is WANT with perf and with BPF. PID is the workload's.
both() {
	local name=$1 column=$2 want=$3 how
	shift 3
	for how in perf bpf; do
		workload syscalls 5000
		start "${@//PID/$WORKLOAD}" --capture $how --format csv -m 2048
		go
		stop
		check "$name: $how" test "$(total "$column")" = "$want"
	done
}

both 'syscalls --than' calls 5000 syscalls --than 10s -e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == PID/" \
	-e "raw_syscalls:sys_exit/id == $GETPPID && common_pid == PID/"
both 'multi-trace --perins' calls 5000 multi-trace --perins -k common_pid --than 10s \
	-e "raw_syscalls:sys_enter/id == $GETPPID && common_pid == PID/" \
	-e "raw_syscalls:sys_exit/id == $GETPPID && common_pid == PID/"
both 'exec, with a filter that only profscript understands' count 5000 exec 'count(ev.id)' \
	-e "raw_syscalls:sys_enter/id == $GETPPID && comm_get(common_pid) == \"syscalls\" && common_pid == PID/"

# --- decisions ------------------------------------------------------------------------------------

refused 'copies of stacks' 2 'seen: --capture=bpf is not possible: .* recorded with a copy of its stack' "$SEEN" \
	-e sched:sched_switch --capture bpf --call-graph=dwarf
refused 'stacks that cause events' 2 'seen: --capture=bpf is not possible: .* causes exceptions:page_fault_kernel' \
	"$SEEN" -e sched:sched_switch -e exceptions:page_fault_kernel --capture bpf -g
"$PROFSCRIPT" "$SEEN" -e sched:sched_switch -g --dry-run -v >"$TMP/out" 2>&1
expect_line 'what costs no less' 'read through perf: .* which costs no less through BPF' "$TMP/out"
refused 'another event' 2 'seen: --capture=bpf is not possible: .*arguments of sched:sched_process_exec' "$SEEN" \
	-e sched:sched_process_exec --capture bpf
refused 'wakeups that are printed' 2 'trace: --capture=bpf is not possible: the common_flags of sched:sched_wakeup .*' \
	trace -e sched:sched_wakeup --capture bpf
"$PROFSCRIPT" exec 'count(ev.pid)' -e sched:sched_wakeup --dry-run -v >"$TMP/out" 2>&1
expect_line 'wakeups whose flags nobody reads' 'captured by a BPF program|in the kernel' "$TMP/out"
for code in 'count(ev.common_flags, 1)' 'local n = "common_flags" count(ev[n], 1)'; do
	"$PROFSCRIPT" exec "$code" -e sched:sched_wakeup --dry-run -v >"$TMP/out" 2>&1
	expect_line "and whose flags are read: $code" 'read through perf: the common_flags' "$TMP/out"
done

# task-state prints events only with --than.
"$PROFSCRIPT" task-state --filter nosuch --dry-run -v >"$TMP/out" 2>&1
expect_line 'of a profiler that could print them' 'sched:sched_wakeup: .*, captured by a BPF program' "$TMP/out"
"$PROFSCRIPT" task-state --filter nosuch --than 1s --dry-run -v >"$TMP/out" 2>&1
expect_line 'and of one that does' 'read through perf: the common_flags of sched:sched_wakeup' "$TMP/out"

# --- the end --------------------------------------------------------------------------------------

leaves_no_program 2 "$SEEN" -e sched:sched_switch -e raw_syscalls:sys_enter --capture bpf
