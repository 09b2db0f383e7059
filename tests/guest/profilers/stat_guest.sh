#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Counts stay exact while CPUs go offline and come back, and for cgroups.
. "$(dirname "$0")/../../lib.sh"
cd "$TOP" || exit 1
CPU=/sys/devices/system/cpu/cpu

# start ARG...: counts getppid calls until the end
start() {
	"$PROFSCRIPT" stat -e syscalls:sys_enter_getppid,cs -i 60s --format csv "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

stop_tracer() {
	sleep 0.3
	kill -INT $tracer
	wait $tracer
	cat "$TMP/err" >>"$TMP/out"
}

start --perins
calls_on 2 1000
echo 0 >${CPU}2/online
calls_on 1 100
sleep 1
echo 1 >${CPU}2/online
sleep 1
calls_on 2 2000
stop_tracer
expect_line 'before it went offline and after it came back' ',2,syscalls:sys_enter_getppid,3000,1,3000$' "$TMP/out"
expect_line 'the others meanwhile' ',1,syscalls:sys_enter_getppid,100,1,100$' "$TMP/out"
expect_line 'the rest of the group continued' ',2,cs,[1-9][0-9]*,1,' "$TMP/out"
expect_line 'the gap is reported' '^stat: CPU #2 came online; its events before [0-9.]+ s are missing$' "$TMP/out"

mkdir -p /sys/fs/cgroup/counted
start --cgroups counted
(
	echo "$BASHPID" >/sys/fs/cgroup/counted/cgroup.procs
	exec build/workloads/syscalls 777
)
build/workloads/syscalls 333
stop_tracer
expect_line 'a cgroup and no other' ',syscalls:sys_enter_getppid,777,1,777$' "$TMP/out"
