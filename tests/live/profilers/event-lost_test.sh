#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# event-lost: every counted event is delivered; with tiny rings it is delivered or lost.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_process_exec
syscalls=$TOP/build/workloads/syscalls
calls=raw_syscalls:sys_enter/id==$GETPPID/

csv event-care -m 1024 -e "$calls" -- "$syscalls" 3000 # as in perf-prof's command lines
rows 'nothing is lost' 'c["counted"] == 3000 && c["delivered"] == 3000 && c["missing"] == 0'
"$PROFSCRIPT" event-lost -m 1 -e "$calls" -- "$syscalls" 200000 >"$TMP/out" 2>"$TMP/err"
all_lost='^lost [1-9][0-9]*( \([0-9]+ of them other records\))?, unexplained 0, late 0$'
expect_line 'all missing events were lost' "$all_lost" "$TMP/out"
children() { echo "for i in 1 2 3; do $syscalls $1; done; :"; }
for args in '' --perins; do
	csv event-lost -m 1024 $args -e "$calls" -- sh -c "$(children 1000)"
	rows "$args: the events of children are delivered" \
		'c["counted"] >= 3000 && c["delivered"] == c["counted"] && c["missing"] == 0'
done
"$PROFSCRIPT" event-lost -m 1 -e "$calls" -- sh -c "$(children 100000)" >"$TMP/out" 2>"$TMP/err"
expect_line 'the losses of children' "$all_lost" "$TMP/out"
# On CPUs each event says how many there were before: nothing seems lost at either end, or between reports.
workload syscalls 100000
taskset -cp 0 $WORKLOAD >/dev/null
trace_workload event-lost --format csv -m 4096 -C 0 -i 50 -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/"
echo "delivered $(total delivered), missing" $(column missing | sort -u) >"$TMP/sum"
expect_line 'on CPUs: nothing is lost' '^delivered 100000, missing 0$' "$TMP/sum"
if [ "$(nproc)" -gt 1 ]; then
	# Only of two programs of an own name: others may make this call, too.
	cp "$syscalls" "$TMP/lost$$"
	start event-lost --format csv -m 1024 -e "raw_syscalls:sys_enter/id==$GETPPID&&comm==\"lost$$\"/cpus=0/"
	taskset -c 0 "$TMP/lost$$" 1000
	taskset -c 1 "$TMP/lost$$" 2000
	stop
	rows 'cpus= also applies to counts' 'c["counted"] == 1000 && c["delivered"] == 1000 && c["missing"] == 0'
else
	skip 'cpus= also applies to counts' 'there is one CPU'
fi
taskset -c 0 "$syscalls" 1000000000 &
busy=$!
csv event-lost -m 1 --perins --duration 0.3 -e raw_syscalls:sys_enter/common_pid==$busy/
lost=$(sed -n 's/^lost,\([0-9]*\),0,0$/\1/p' "$TMP/out")
echo "# missing $(total missing), lost ${lost:-none}" >>"$TMP/out"
[ "$(total missing)" -gt 0 ] && [ "$(total missing)" -le "${lost:-0}" ]
result $? 'on CPUs: all missing events were lost' "$TMP/out"
kill $busy
check_status 'an event that counts something else' 2 "$PROFSCRIPT" event-lost -e sched:sched_stat_runtime

# The count ends with the last delivered event, although nothing wakes the tracer then. The ticker cannot run while a
# tracer of real-time priority on the same CPU disables its events; each of its rounds is about eight calls.
mkfifo "$TMP/never"
taskset -c 0 bash -c "exec 3<>'$TMP/never'; while :; do read -t 0.001 -u 3; done" &
ticker=$!
if chrt -f 2 true 2>/dev/null; then
	taskset -c 0 chrt -f 2 "$PROFSCRIPT" event-lost --format csv -e raw_syscalls:sys_enter -p $ticker --duration 0.15 \
		>"$TMP/out" 2>"$TMP/err"
	rows 'nothing is counted after the end' 'c["counted"] > 10 && c["missing"] <= 16'
else
	skip 'nothing is counted after the end' 'chrt -f, real-time scheduling'
fi
csv event-lost -e raw_syscalls:sys_enter -p $ticker --duration 60 -N 30
rows '-N' 'c["delivered"] >= 30 && c["delivered"] < 3000'
kill $ticker

# Reports are ordered by time, even if nothing has happened for long.
csv event-lost -i 50 -e sched:sched_process_exec -- sleep 0.22
grep ^event-lost "$TMP/out" | cut -d, -f2 >"$TMP/times"
check 'the last report is not older than the one before' sort -c -n "$TMP/times"
check 'and each interval has one' test "$(wc -l <"$TMP/times")" -ge 5
