#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# cpu-util: the CPU time of a program, which the program measures itself, and perf stat too.
# Runs on an idle machine.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_stat_runtime

# An attached program waits first, so that both count the same. The clocks of tasks and of the kernel may differ by a
# millisecond.
workload states run 300
perf stat -x, -o "$TMP/perf.csv" -e task-clock -p $WORKLOAD &
peer=$!
start cpu-util --format json -i 100s -p $WORKLOAD
wait_for 20 grep -q -E 'nanosleep|poll' /proc/$peer/wchan
go
wait $tracer $peer
sum_of busy_ns
ours=$(<"$TMP/sum")
perfs=$(awk -F, '/task-clock/ { print int($1 * 1e6) }' "$TMP/perf.csv")
check "the CPU time of the program: $ours ns" test "$ours" -ge 299000000
check "the CPU time of perf stat: $perfs ns" test $((ours - perfs)) -lt 3000000 -a $((perfs - ours)) -lt 3000000

# A CPU that belongs to the program from its start to its end.
workload states pin 0 run 300
began=${EPOCHREALTIME/./}
trace_workload cpu-util -C 0 --format json -i 100s
took=$((${EPOCHREALTIME/./} - began))
sum_of busy_ns
busy=$(<"$TMP/sum")
check "-C 0: the time of the program on it: $busy ns" test "$busy" -ge 299000000
check '-C 0: not more than the elapsed time' test "$busy" -le $((took * 1000))

# in_mode NAME USER|KERNEL COMMAND...: the command spends most of its time in this mode
in_mode() {
	local name=$1 mode=$2 other
	shift 2
	for other in user kernel; do
		csv cpu-util --exclude-$other -i 100s -- "$@"
		total busy_ns >"$TMP/without_$other"
	done
	other=user
	[ "$mode" != user ] || other=kernel
	echo "$(<"$TMP/without_$other") ns in $mode mode, $(<"$TMP/without_$mode") ns in $other mode" >"$TMP/modes"
	[ "$(<"$TMP/without_$other")" -ge 50000000 ] && [ "$(<"$TMP/without_$other")" -gt $((3 * $(<"$TMP/without_$mode"))) ]
	result $? "$name" "$TMP/modes"
}
in_mode '--exclude-kernel' user bash -c 'for ((i = 0; i < 300000; i++)); do :; done'
in_mode '--exclude-user' kernel dd if=/dev/zero of=/dev/null bs=16M count=1000
csv cpu-util --exclude-user -i 100 -N 2 -- dd if=/dev/zero of=/dev/null bs=16M count=1000
check '-N reports' test "$(column time | sort -u | grep -c .)" -le 2 -a -s "$TMP/out"

# Guests cannot be told from the host: the options are accepted as in perf-prof, with a line.
for option in -G --exclude-host --exclude-guest; do
	"$PROFSCRIPT" cpu-util $option --duration 0.1 >"$TMP/out" 2>"$TMP/err"
	expect_line "$option" '^cpu-util: --exclude-(host|guest) has no effect: guests count as the tasks that run them$' "$TMP/err"
	expect_line 'and the table' '^\[000\] ' "$TMP/out"
done
