#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --perfeval-* prints how many events others have during a run, --sampling-limit ends it.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
cd "$TMP" || exit 1

# The kernel's own counts: the calls of a thread among all calls.
workload syscalls 5000
start exec -m 1024 -e raw_syscalls:sys_enter 'count()' --filter "id == $GETPPID" -i 500 --perfeval-pids "$WORKLOAD" \
	--perfeval-cpus "$(</sys/devices/system/cpu/online)"
go
of_pids="perfeval pids\($WORKLOAD\)"
matched() { sed -En "s/.* exec: $of_pids: sampled [0-9]+ events matched ([0-9]+) on [01] instances\$/\1/p" out | awk '{ sum += $1 } END { print sum / 2 + 0 }'; }
all() { [ "$(matched)" -ge 5000 ]; }
wait_for 20 all
stop
check "all calls of a thread are counted ($(matched))" test "$(matched)" -eq 5000
check 'no other messages' test ! -s err
# Nothing else calls getppid: the count of the processes is that of the CPUs.
check 'by CPU there are as many' test "$(sed -En 's/.* perfeval cpus\(.*matched ([0-9]+) on .*/\1/p' out | awk '{ sum += $1 } END { print sum / 2 }')" \
	-ge 5000

# Above the limit the run ends by itself, with its results, and names the thread.
workload syscalls 100000000
of_pids="perfeval pids\\($WORKLOAD\\)"
start exec -m 1024 -e raw_syscalls:sys_enter 'count()' -p "$WORKLOAD" --duration 60 -i 200 --perfeval-pids "$WORKLOAD" \
	--sampling-limit 1000
echo >&"$workload_go"
wait $tracer
check 'the limit ends the run' test $? -eq 0
expect_line 'the limit' "^[0-9-]+ [0-9:.]+ exec: $of_pids: sampled [0-9]+ events matched [0-9]+ on 1 instances, limit exceeded, stopping\$" out
expect_line 'the thread' "^[0-9-]+ [0-9:.]+ exec: perfeval: tid $WORKLOAD sampled [0-9]+ events\$" out
check 'the workload runs on' kill -0 "$WORKLOAD"
kill "$WORKLOAD"
check_status 'a limit that is not reached ends nothing' 0 timeout 60 "$PROFSCRIPT" exec -e sched:sched_switch 'count()' -i 100 \
	--perfeval-cpus 0 --sampling-limit 1000000000 --duration 0.5
grep -q exceeds "$TMP/.check"
check 'nor is it reported' test $? -eq 1

sleep 0 &
dead=$!
wait $dead
refused 'a process that has ended' 1 "trace: --perfeval-pids: no such process: $dead" \
	trace -e sched:sched_switch -i 1 --perfeval-pids $dead
refused 'a CPU that does not exist' 3 'trace: --perfeval-cpus: CPU 99 is not online .online: 0.*' \
	trace -e sched:sched_switch -i 1 --perfeval-cpus 99
"$PROFSCRIPT" exec -e sched:sched_switch 'count()' -i 100 --perfeval-cpus 0,99 --duration 0.3 >out 2>err
check 'one of several: the run goes on' test $? -eq 0
expect_line 'with a line' '^exec: --perfeval-cpus: CPU 99 is not online, watching CPU 0$' err
expect_line 'and counts those of the others' 'exec: perfeval cpus\(0\): sampled [0-9]+ events matched' out
