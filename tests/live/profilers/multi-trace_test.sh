#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# multi-trace: system calls of a program, the wakeups of two threads, a nap and the events in it.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup
nanosleep=115
[ "$(uname -m)" != x86_64 ] || nanosleep=230

for key in '' '-k common_pid' '-k _tid'; do
	# shellcheck disable=SC2086 # an option and its value
	"$PROFSCRIPT" multi-trace -m 1024 -e "raw_syscalls:sys_enter/id==$GETPPID/" -e "raw_syscalls:sys_exit/id==$GETPPID/" $key --format json -- "$TOP/build/workloads/syscalls" 20000 >"$TMP/out"
	expect_line "${key:-by thread}" '"calls":20000,' "$TMP/out"
done

# A nap of 100 ms: the call lasts that long, the task is switched out at its start and woken at its end.
workload relations 1
taskset -cp 0 "$WORKLOAD" >/dev/null # some kernels report nothing of other CPUs while they are idle
mine="common_pid==$WORKLOAD&&id==$nanosleep"
trace_workload multi-trace -m 512 -e "raw_syscalls:sys_enter/$mine/key=common_pid/" \
	-e "raw_syscalls:sys_exit/$mine/key=common_pid/,sched:sched_wakeup/pid==$WORKLOAD/untraced/,sched:sched_switch/prev_pid==$WORKLOAD||next_pid==$WORKLOAD/untraced/" \
	--than 90ms --detail=samecpu,sametid --format json
grep -n . "$TMP/out" | sed 's/,"comm":[^}]*"part"/ "part"/' >"$TMP/parts"
expect_line 'the nap begins with its call' '^1:\{"event":"raw_syscalls:sys_enter".*"part":"first"' "$TMP/parts"
expect_line 'it sleeps' '"event":"sched:sched_switch".*"part":"between".*"note":"sleeping"' "$TMP/out"
expect_line 'it is woken' '"event":"sched:sched_wakeup".*"part":"between".*"note":"wakeup"' "$TMP/out"
expect_line 'it runs again' '"event":"sched:sched_switch".*"part":"between".*"note":"running"' "$TMP/out"
sed -nE 's/.*"event":"(raw_syscalls:sys_exit|sched:sched_[a-z]+)".*"offset_ns":([0-9]+).*/\1 \2/p' "$TMP/out" >"$TMP/offsets"
awk '/switch/ && !out { out = $2 } /wakeup/ { woken = $2 } /sys_exit/ { exit_ = $2 }
	END { exit !(out < woken && woken >= 100e6 && woken <= exit_ && exit_ >= 100e6) }' "$TMP/offsets"
result $? 'in that order, and after at least 100 ms' "$TMP/offsets"
expect_line 'it is one call of that length' '"calls":1,.*"than":1[,}]' "$TMP/out"

# Wakeups between two threads on one CPU: each is followed by a switch.
workload pingpong -c 0 3000
trace_workload multi-trace -m 1024 -e "sched:sched_wakeup/comm==\"ping\"||comm==\"pong\"/key=pid/" \
	-e 'sched:sched_switch/next_comm=="ping"||next_comm=="pong"/key=next_pid/' --format csv -C 0 -v
expect_line '6000 wakeups' '^latency,.*,sched_wakeup,sched_switch,600[0-2],' "$TMP/out"
