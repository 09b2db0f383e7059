#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --capture: BPF programs count what perf's samples would have, in the same run: keys, names, sums, histograms. What they
# cannot do is refused with a reason. Nothing of them stays.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_switch

exec_once=('count()' -e sched:sched_switch --duration 1ms -q)
"$PROFSCRIPT" exec --capture bpf "${exec_once[@]}" >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"

# agree NAME ROWS PROFILER ARG...: both paths print the same table about the workload, with a row that matches ROWS
agree() {
	capture_agrees "$1" "${@:3}"
	expect_line "$1: the workload's events" "$2" "$TMP/out"
}

# A system call of one process: exact, and nobody else makes any that match.
calls() { workload -C 0 syscalls "$1" && ours="raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/"; }
exits() { workload -C 0 syscalls "$1" && ours="raw_syscalls:sys_exit/id==$GETPPID&&_tid==$WORKLOAD/"; }

calls 20000
agree 'top by thread' ",$WORKLOAD,20000,syscalls\$" top -e "$ours"
calls 3000
agree 'top with sums' "^top,$GETPPID,$((6000 * GETPPID)),-$((3000 * (200 - GETPPID))),syscalls\$" \
	top -e "${ours}key=id/comm=_comm/top-by=id*2/top-add=id-200/"
calls 3000
agree 'sums of large numbers' 'e\+22,-[0-9.]+e\+20$' top -e "${ours}key=id/top-by=(unsigned long)id<<57/top-add=-((long)id<<50)/"
calls 3000
agree 'text that is found later' ',3000,getppid$' top -e "${ours}comm=syscall_name(id)/" --only-comm
calls 3000
agree 'keys of two events' ",$GETPPID,3000,3000\$" \
	top -e "${ours}key=id/,raw_syscalls:sys_exit/id==$GETPPID&&common_pid==$WORKLOAD/key=id/"
calls 100
agree 'a key of -1' ',-1,100$' top -e "${ours}key=id-$((GETPPID + 1))/"
calls 100
agree 'no key after a division by zero' ",$GETPPID,0,100\$" \
	top -e "${ours}key='1/(id-$GETPPID)'/,raw_syscalls:sys_exit/id==$GETPPID&&common_pid==$WORKLOAD/key=id/"
expect_line 'which is told' 'ignored 100 events without a key' "$TMP/err"
calls 2000
agree 'printkey' ',call-[0-9]+,2000$' top -e "${ours}key=id/printkey='printf(\"call-%d\",key)'/" -C 0

exits 3000
agree 'num-dist' ',sys_exit,3000,' num-dist -e "${ours}num=ret/,${ours}num=-ret/,${ours}num=ret-$((WORKLOAD + 1))/"
calls 3000
agree 'num-dist by CPU' ',0,sys_enter,3000,' num-dist --perins -e "${ours}num=id*id/"
calls 500
agree 'huge numbers, and none' ',sys_enter,500,' \
	num-dist -e "${ours}num=(unsigned long)-id/,${ours}num=(long)id<<57/,${ours}num='1/(id-$GETPPID)'/"

calls 3000
agree 'count()' ',3000$' exec -e "$ours" 'count()'
calls 3000
agree 'count() by keys' ",raw_syscalls:sys_enter,syscalls,$GETPPID,0,3000\$" \
	exec -e "$ours" 'count(ev._event, ev._comm, ev.id, ev._cpu)'
exits 3000
agree 'under a condition' ',syscalls,3000$' exec -e raw_syscalls:sys_exit/id=="$GETPPID"/ \
	"if ev._tid == $WORKLOAD and (ev.ret > 0 or ev.id ~= $GETPPID) then count(ev._comm) end"
exits 3000
agree 'sum()' ',syscalls,[0-9]+$' exec -e "$ours" 'sum(ev.ret, ev._comm)'
exits 3000
agree 'hist() by key' ',syscalls,[0-9]+,[0-9]+,3000$' exec -e "$ours" 'hist(ev.ret, ev._comm)'
exits 3000
agree 'stats()' ',3000,' exec -e "$ours" 'stats(ev.ret, ev._comm)'
exits 3000
agree 'quantiles()' ',3000,' exec -e "$ours" 'quantiles(ev.ret)'
exits 3000
agree 'quantiles() by keys' ",$GETPPID,3000," exec -e "$ours" 'quantiles(ev.ret, ev._comm, ev.id)'

workload -C 0 states fork 40
agree 'forks' ',states,40$' exec -e sched:sched_process_fork "if ev._tid == $WORKLOAD then count(ev._comm) end"
workload -C 0 states fork 40
agree 'switches to a process' ",$WORKLOAD,[0-9]+,states\$" \
	top -e "sched:sched_switch/next_pid==$WORKLOAD/key=next_pid/comm=next_comm/top-add=prev_state/"

workload -C 0 states fork 40
agree 'the variance by process' ",$WORKLOAD,[0-9.e+]+,states\$" \
	top -e "sched:sched_switch/next_pid==$WORKLOAD/key=next_pid/comm=next_comm/top-variance=prev_prio/"

# Intervals lose nothing, and count nothing twice.
cp "$TOP/build/workloads/syscalls" "$TMP/tly$$"
start top -e "raw_syscalls:sys_enter/id==$GETPPID&&_comm==\"tly$$\"/" --capture bpf -i 100 --csv
for _ in 1 2 3 4 5 6 7 8; do "$TMP/tly$$" 50000; sleep 0.2; done
stop
echo "$(total sys_enter), not 400000, in $(wc -l <"$TMP/out") lines" >"$TMP/sum"
[ "$(total sys_enter)" -eq 400000 ] && [ "$(wc -l <"$TMP/out")" -gt 4 ]
result $? 'intervals' "$TMP/sum"

if [ -r /sys/kernel/tracing/events/exceptions/page_fault_user/id ]; then
	# Each key has four events. The slots are fewer than the keys.
	workload -C 0 pages 4000
	agree 'keys without slots' '^top,[0-9]+,4$' top -e "exceptions:page_fault_user/common_pid==$WORKLOAD/key=address>>14/"

	# More keys than there is room for are one row.
	workload -C 0 pages 80000
	trace_workload top -e "exceptions:page_fault_user/common_pid==$WORKLOAD/key=address/" --capture bpf -i 100s --csv
	rows 'keys without room' 'c["address"] == "(other)" && c["page_fault_user"] >= 10000'
	echo "$(total page_fault_user), with $(wc -l <"$TMP/out") lines" >"$TMP/sum"
	[ "$(total page_fault_user)" -ge 80000 ] && [ "$(wc -l <"$TMP/out")" -le $((65536 + 2)) ]
	result $? 'none is missing' "$TMP/sum"
else
	skip 'keys without room' 'no exceptions:page_fault_user'
fi

# What perf must do.
not() { refused "$1" 2 ".*--capture=bpf is not possible: $2" "${@:3}" --capture bpf --duration 1ms; }
call=raw_syscalls:sys_enter
not 'a copy of the stack' '.* recorded with a copy of its stack' exec -e $call --call-graph=dwarf 'count()'
not 'an attribute' 'raw_syscalls:sys_enter has the attribute cpus=' top -e "$call//cpus=0/"
not 'a field in a filter' "the arguments of .* do not have 'common_flags'" top -e "$call/common_flags==0/"
not 'a clock' 'cpu-clock is not a tracepoint' top -e cpu-clock
refused 'a wrong value' 2 ".*'perf', 'bpf'|.*auto" top -e $call --capture bfp

# What only profscript can do: it sees each event.
each() {
	"$PROFSCRIPT" "${@:3}" --duration 1ms -v >"$TMP/out" 2>"$TMP/err"
	expect_line "$1" "(events are captured one by one|events are read through perf): $2" "$TMP/err"
}
each 'short intervals' 'the interval is less than 100 ms' top -e $call -i 50
each '-N' '--exit-n' top -e $call -N 5
each '--than' 'the script looks at each event' num-dist -e "$call//num=id/" --than 5
each 'an array' "'args' is an array|the arguments of .* do not have 'args'" num-dist -e "$call//num=args[1]/"
"$PROFSCRIPT" top -e $call --dry-run >"$TMP/out"
expect_line '--dry-run' 'sys_enter: id [0-9]+, counted in the kernel, by a BPF program' "$TMP/out"
check 'without rings' bash -c "! grep rings: '$TMP/out'"
"$PROFSCRIPT" top -e $call --dry-run --capture perf >"$TMP/out"
expect_line '--capture perf' '^rings:' "$TMP/out"

# Programs end with the process.
leaves_no_program 1 top -e "$call/id==$GETPPID/" --capture bpf -i 100s
