#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# What `make demo` shows: scheduling latency, live for three seconds while two threads wake each other, or
# from a recording if the kernel does not permit tracing.
set -u
cd "$(dirname "$0")/.." || exit 1

command=(./profscript multi-trace -e sched:sched_wakeup//key=pid/
	-e sched:sched_switch//key=next_pid/ -i 1000)

show() {
	echo "\$ $*"
	"$@"
}

[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
if [ -r /sys/kernel/tracing/events/sched/sched_switch/id ]; then
	build/workloads/pingpong -c 0 1000000000 5000 &
	trap 'kill $!' EXIT
	show "${command[@]}" --duration 3
	status=$?
else
	status=1
fi
if [ $status -ne 0 ]; then
	echo 'Live tracing is not possible here (it needs root, tracefs and perf_event_open): a recording instead.'
	show "${command[@]}" --input tests/recordings/sched.data
	status=$?
fi
exit $status
