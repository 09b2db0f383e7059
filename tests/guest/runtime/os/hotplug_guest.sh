#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# CPUs go offline and come online while they are traced: events before and after are counted exactly, and the
# unknown ones are reported.
. "$(dirname "$0")/../../../lib.sh"
cd "$TOP" || exit 1

CPU=/sys/devices/system/cpu/cpu

# start ARGS...: a tracer that counts getppid calls by CPU
start() {
	"$PROFSCRIPT" exec -v --capture perf -e syscalls:sys_enter_getppid 'count(ev._event, ev._cpu)' "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

# online CPU: it is back, and with -v the tracer has said that it has its events
online() {
	said=$(notices "$1")
	echo 1 >${CPU}$1/online
	wait_for 20 noticed "$1"
}
notices() { grep "CPU #$1 came online" "$TMP/err" | grep -vc 'its events before'; }
noticed() { [ "$(notices "$1")" -gt "$said" ]; }

finish_tracer() {
	sleep 0.3
	kill -INT $tracer
	wait $tracer
	cat "$TMP/err" >>"$TMP/out"
}

counted() {
	expect_line "$1: $3 calls on CPU $2" "getppid +$2 +$3$" "$TMP/out"
}

start
calls_on 2 1000
echo 0 >${CPU}2/online
calls_on 1 100
sleep 0.3
online 2
calls_on 2 2000
finish_tracer
counted 'offline and online again' 2 3000
counted 'the others meanwhile' 1 100
expect_line 'it is reported' '^exec: CPU #2 went offline$' "$TMP/out"
expect_line 'it is reported' '^exec: CPU #2 came online$' "$TMP/out"
expect_line 'the gap is reported' '^exec: CPU #2 came online; its events before [0-9.]+ s are missing$' "$TMP/out"

start
for _ in 1 2 3; do
	calls_on 2 1000
	echo 0 >${CPU}2/online
	online 2
done
calls_on 2 1000
finish_tracer
counted 'away for a moment' 2 4000

echo 0 >${CPU}3/online
start
online 3
calls_on 3 1000
finish_tracer
counted 'online later than the tracer' 3 1000

start -C 1-2
echo 0 >${CPU}2/online
echo 0 >${CPU}3/online
sleep 0.3
echo 1 >${CPU}3/online
online 2
calls_on 1 100
calls_on 2 1000
calls_on 3 500
finish_tracer
counted 'CPUs of a list' 2 1000
counted 'CPUs of a list' 1 100
check 'CPUs that are not in the list' bash -c "! grep -E 'getppid +3 +' '$TMP/out'"

# BPF programs run on every CPU, also on one that has just come online, so nothing is missing.
for code in 'count(ev._event, ev._cpu)' 'count(ev._event .. "", ev._cpu)'; do
	"$PROFSCRIPT" exec -v -e "raw_syscalls:sys_enter/id == $GETPPID/" "$code" --capture bpf >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
	calls_on 2 1000
	echo 0 >${CPU}2/online
	calls_on 1 100
	echo 1 >${CPU}2/online
	calls_on 2 2000
	finish_tracer
	expect_line "by BPF: $code" 'sys_enter +2 +3000$' "$TMP/out"
	expect_line "by BPF: $code" 'sys_enter +1 +100$' "$TMP/out"
	check 'nothing is missing' bash -c "! grep missing '$TMP/out'"
done

# Endless events do not block the tracer.
build/workloads/pingpong -c 0,1 100000000 &
start -e sched:sched_switch
echo 0 >${CPU}2/online
online 2
calls_on 2 1000
kill %1
finish_tracer
expect_line 'under load' '^exec: CPU #2 came online; ' "$TMP/out"

cat >"$TMP/toggle" <<END
taskset 4 build/workloads/syscalls 1000
echo 0 >${CPU}2/online
build/workloads/syscalls 100
echo 1 >${CPU}2/online
taskset 4 build/workloads/syscalls 2000
END
"$PROFSCRIPT" exec -e syscalls:sys_enter_getppid 'if ev._comm == "syscalls" then count(ev._event, ev._cpu == 2 and 2 or 0) end' \
	-- bash "$TMP/toggle" >"$TMP/out" 2>&1
counted 'a workload' 2 3000
counted 'a workload' 0 100

# The BPF sample filter also applies to the new events of the CPU.
"$PROFSCRIPT" exec -e cpu-clock/freq=100/ 'count(ev._pid, ev._cpu)' --prio 125 -v >"$TMP/out" 2>"$TMP/err" &
tracer=$!
wait_ready $tracer
echo 0 >${CPU}2/online
sleep 0.2
online 2
nice -n 5 taskset 4 sh -c 'while :; do :; done' &
nice=$!
taskset 4 sh -c 'while :; do :; done' &
plain=$!
sleep 2
kill $nice $plain
finish_tracer
expect_line 'a BPF filter: samples of the CPU that is back' "^ *$nice +2 +[1-9][0-9]*\$" "$TMP/out"
check 'a BPF filter: no other task' bash -c "! grep -E '^ *$plain ' '$TMP/out'"

# A BPF ring buffer belongs to all CPUs. Perf event arrays and perf events of scripts follow the CPUs.
export XDG_CACHE_HOME=$TOP/build/cache
[ -d "$XDG_CACHE_HOME/profscript/bpf" ] || {
	skip 'records of BPF programs' 'no BPF programs: live/bindings/bpf/program_test compiles them, on the host'
	exit
}
"$PROFSCRIPT" tests/scripts/bpf/records.lua --comm syscalls -m 1024 -- bash "$TMP/toggle" >"$TMP/out" 2>&1
expect_line 'records of a ring buffer' '^ring	3100	' "$TMP/out"

# follow ARGS...: a tracer of BPF programs
follow() {
	"$PROFSCRIPT" tests/scripts/bpf/hotplug.lua --comm syscalls -v "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
}

# away SECONDS: CPU 2 is offline for this time
away() {
	echo 0 >${CPU}2/online
	sleep "$1"
	online 2
	sleep 0.5 # a script attaches its programs a little later
}

follow
calls_on 2 1000
files=$(ls /proc/$tracer/fd | wc -l)
for _ in 1 2 3 4; do away 0; done
away 0.3
calls_on 2 2000
result $(($(ls /proc/$tracer/fd | wc -l) != files)) 'the rings of offline CPUs are closed'
calls_on 1 500
finish_tracer
expect_line 'a perf event array: before and after' '^calls	2	3000$' "$TMP/out"
expect_line 'a perf event array: the others' '^calls	1	500$' "$TMP/out"
expect_line 'the gap is reported' 'CPU #2 came online; its events before [0-9.]+ s are missing$' "$TMP/out"

follow
away 0.3
calls_on 2 2000
finish_tracer
expect_line 'a perf event array: only after' '^calls	2	2000$' "$TMP/out"
expect_line 'a perf event of a script' '^faults	2	[1-9]' "$TMP/out"

echo 0 >${CPU}2/online
follow
online 2
sleep 0.5
calls_on 2 2000
finish_tracer
expect_line 'online later: a perf event array' '^calls	2	2000$' "$TMP/out"
expect_line 'online later: a perf event of a script' '^faults	2	[1-9]' "$TMP/out"

follow -C 0-1
away 0.3
calls_on 2 2000
finish_tracer
expect_line 'not in the list: records of all CPUs' '^calls	2	2000$' "$TMP/out"
check 'not in the list: no perf event' bash -c "! grep '^faults	2' '$TMP/out'"

# With a workload, only BPF programs belong to CPUs.
cat >"$TMP/return" <<END
echo 0 >${CPU}2/online
sleep 0.3
echo 1 >${CPU}2/online
sleep 0.5
taskset 4 build/workloads/syscalls 2000
END
"$PROFSCRIPT" tests/scripts/bpf/hotplug.lua --comm syscalls -- bash "$TMP/return" >"$TMP/out" 2>&1
expect_line 'a workload: a perf event array' '^calls	2	2000$' "$TMP/out"
expect_line 'a workload: a perf event of a script' '^faults	2	[1-9]' "$TMP/out"
expect_line 'a workload: the gap is reported' 'CPU #2 came online; its events before [0-9.]+ s are missing$' "$TMP/out"
