#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# epoll: a thread that waits a known number of times for another one, and for a timeout.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint syscalls:sys_enter_epoll_wait sched:sched_waking
count=50
loop="$TOP/build/workloads/epolls"

taskset -c 0 "$PROFSCRIPT" epoll -m 1024 --csv -- "$loop" $count >"$TMP/out" 2>"$TMP/err"
check 'waits' test "$(total waits)" -eq $((count + 3))
check 'events' test "$(total events)" -eq $count
rows 'waits that nothing ends' 'c["woken_by"] == "[timeout]" && c["waits"] == 3 && c["events"] == 0'
rows 'who wakes it' 'c["woken_by"] == "feeder" && c["waits"] > 0 && c["latency_ns"] > 0 && c["handling_ns"] > 0'

workload epolls $count
trace_workload epoll -m 1024 --csv --than 0 -p "$WORKLOAD" -i 100s
check '-p, --than 0: each time that a thread handles events' test "$(grep -c '^handled,.*,waiter,' "$TMP/out")" -eq $((count + 2))
