#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# exec: programs that do an exact number of things are counted exactly.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_waking sched:sched_wakeup sched:sched_process_fork
enter=raw_syscalls:sys_enter/id==$GETPPID/

# counted NAME WANTED COLUMN...: the only row of the CSV in $TMP/out ends with WANTED
counted() {
	tail -n +2 "$TMP/out" >"$TMP/row"
	expect_line "$1" ",$2\$" "$TMP/row"
}

# A running program: by process, by thread, by filter on all CPUs.
workload syscalls 20000
trace_workload exec -m 1024 -e "$enter" --format csv 'count()' -p $WORKLOAD
counted 'exec -p' 20000
workload syscalls 20000
trace_workload exec -m 1024 -e "$enter" --format csv 'count()' -t $WORKLOAD
counted 'exec -t' 20000
workload syscalls 20000
trace_workload exec -m 1024 -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/" --format csv 'count()'
counted 'exec on all CPUs' 20000
workload syscalls 20000
trace_workload exec -m 1024 -e "$enter" --format csv 'lhist(ev.id, 0, 400, 10, syscall(ev.id))' -p $WORKLOAD
counted 'a linear histogram' "getppid,$((GETPPID / 10 * 10)),$((GETPPID / 10 * 10 + 10)),20000"
for capture in auto perf; do
	workload syscalls 20000
	trace_workload exec -m 1024 -e "$enter" --format csv --capture $capture '@[comm] = avg(ev.id); @m = max(ev.id)' -p $WORKLOAD
	expect_line "avg, --capture $capture" ",20000,$((GETPPID * 20000)),$GETPPID\$" "$TMP/out"
	expect_line "max, --capture $capture" ",$GETPPID\$" <(tail -n 1 "$TMP/out")
done
"$PROFSCRIPT" explain exec -e "$enter" '@[comm] = avg(ev.id); lhist(ev.id, 0, 400, 10, syscall(ev.id))' >"$TMP/out"
expect_line 'averages and linear histograms count in the kernel' 'counted in the kernel, by a BPF program' "$TMP/out"

# Wakeups between two pinned threads.
workload pingpong -c 0 3000
trace_workload exec -m 1024 -e sched:sched_wakeup,sched:sched_waking --format csv \
	"if ev.comm == 'ping' or ev.comm == 'pong' then count(ev._event, ev.comm) end"
for event in wakeup waking; do
	for name in ping pong; do
		expect_line "one cpu: $event of $name" "sched_$event,$name,3000\$" "$TMP/out"
	done
done
if [ "$(nproc)" -gt 1 ]; then
	workload pingpong -c 0,1 3000
	trace_workload exec -m 1024 -e sched:sched_waking --format csv \
		"if ev.comm == 'ping' or ev.comm == 'pong' then count(ev._comm, ev.comm) end" # others may wake them
	for name in ping,pong pong,ping; do
		expect_line "two cpus: waking of $name" ",$name,3000\$" "$TMP/out"
	done
else
	skip 'two CPUs: waking' 'there is one cpu'
fi

# Children.
workload forker 300
trace_workload exec -m 1024 -e sched:sched_process_fork,sched:sched_process_exit --format csv \
	"if ev._comm == 'forker' then count(ev._event) end"
expect_line forks 'sched_process_fork,300$' "$TMP/out"
expect_line 'exits, one is its own' 'sched_process_exit,301$' "$TMP/out"

# Stacks as keys of one-liners: as the event has it, and as bpftrace writes it.
for key in ev._stack stack 'stack()'; do
	"$PROFSCRIPT" exec -e cpu-clock -F 997 "count($key, ev._comm)" -q -- "$TOP/build/workloads/burn" 20 >"$TMP/counts"
	expect_line "count($key, ...) heads a stack by its other keys" '^comm=burn: [0-9]+$' "$TMP/counts"
	expect_line 'and prints it' '^    [0-9a-f]{16} hot\+0x[0-9a-f]+ \(.*/burn\)$' "$TMP/counts"
done
"$PROFSCRIPT" exec -e cpu-clock -F 997 'count(stack)' -q --format json -- "$TOP/build/workloads/burn" 20 >"$TMP/counts"
expect_line 'as a list of frames in JSON' '"stack":\["[0-9a-f]{16} hot\+0x[0-9a-f]+ .*\],"count":[0-9]+\}$' "$TMP/counts"
sed -E 's/.*"stack":\[(.*)\],"count.*/\1/; s/[0-9a-f]{16} |\+0x[0-9a-f]+//g' "$TMP/counts" | sort | uniq -d >"$TMP/twice"
check 'stacks of the same functions are one' diff /dev/null "$TMP/twice"
"$PROFSCRIPT" exec -e cpu-clock -F 997 'hist(ev._period, stack)' -i 100 -q -- "$TOP/build/workloads/burn" 20 >"$TMP/counts"
expect_line 'histograms by stack' '^hist\(ev._period, stack\):$' "$TMP/counts"
