#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Relations between live events of programs that do known things: a nap and what happened in it, the
# memory a program takes and gives, functions within functions, wakeups.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup
PROGRAM=$TOP/build/workloads/relations

# trace_workload ARG... : runs profscript in the background until `go` has ended the workload; its
# output is in $TMP/out, its stderr in $TMP/err
trace_workload() {
	"$PROFSCRIPT" "$@" >"$TMP/out" 2>"$TMP/err" &
	tracer=$!
	wait_ready $tracer
	go
	kill -INT $tracer 2>/dev/null
	wait $tracer
}

# A nap of 100 ms: the call lasts that long, the task is switched out at its beginning, woken at its end.
workload relations 1
taskset -cp 0 "$WORKLOAD" >/dev/null # kernels were seen that report nothing of other CPUs while they are idle
mine="common_pid==$WORKLOAD"
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
result $? 'in that order, and not before 100 ms are over' "$TMP/offsets"
expect_line 'one call was that long' '"than":1[,}]' "$TMP/out"

# The same as a system call.
"$PROFSCRIPT" syscalls --perins --than 90ms --format json -- "$PROGRAM" 1 >"$TMP/out"
expect_line 'syscalls: the nap' '"syscall":"clock_nanosleep".*"calls":1,"total_ns":1[0-9]{8},.*"err":0,"than":1' "$TMP/out"
expect_line 'syscalls: the end of the task ends exit_group' '"syscall":"exit_group".*"calls":1,' "$TMP/out"
workload syscalls 5000
trace_workload syscalls -m 1024 -p $WORKLOAD --format json
expect_line 'syscalls: exactly 5000 calls' '"syscall":"getppid","nr":[0-9]+,"calls":5000,.*"err":0' "$TMP/out"
"$PROFSCRIPT" syscalls --format json -- "$PROGRAM" 28 >"$TMP/out"
expect_line 'syscalls: seven that fail' '"syscall":"setns".*"calls":7,.*"err":7' "$TMP/out"

# Wakeups between two threads on one cpu: each is followed by a switch.
workload pingpong -c 0 3000
trace_workload multi-trace -m 1024 -e "sched:sched_wakeup/comm==\"ping\"||comm==\"pong\"/key=pid/" \
	-e 'sched:sched_switch/next_comm=="ping"||next_comm=="pong"/key=next_pid/' --format csv -C 0 -v
expect_line 'multi-trace: 6000 wakeups' '^latency,.*,sched_wakeup,sched_switch,600[0-2],' "$TMP/out"

# Two that want one cpu all the time: each has to wait while the other runs, without ever being woken.
hog='exec taskset -c 0 timeout 0.3 sh -c "while :; do :; done"'
"$PROFSCRIPT" rundelay -m 512 --perins --format csv -- sh -c "sh -c '$hog' & sh -c '$hog' & wait" >"$TMP/out" 2>"$TMP/err"
result $? 'rundelay of a workload and its children' "$TMP/err"
awk -F, '$5 == "sched_switch" && $7 >= 10 && $8 >= 100e6 { n++ } END { exit !(n >= 2) }' "$TMP/out"
result $? 'rundelay: both wait for long' "$TMP/out"
"$PROFSCRIPT" rundelay -m 512 --perins --than 1s --format csv --filter 'no such*' --duration 0.2 >"$TMP/out"
check 'rundelay --filter of none' diff /dev/null "$TMP/out"
workload pingpong -c 0 2000
trace_workload rundelay -m 1024 -p $WORKLOAD --format csv
awk -F, '$3 == "sched_wakeup" { n = $5 } END { exit !(n >= 4000 && n <= 4010) }' "$TMP/out"
result $? 'rundelay -p: 4000 wakeups of two threads' "$TMP/out"

# Functions, where probes can be set.
if [ -w /sys/kernel/tracing/uprobe_events ] && [ -r /sys/bus/event_source/devices/uprobe/type ]; then
	at=@\"$PROGRAM\"
	"$PROFSCRIPT" kmemprof -m 1024 -e "uprobe:take$at(id=%di:u64, bytes=%si:u64)//key=id/size=bytes/stack/" \
		-e "uprobe:give$at(id=%di:u64)//key=id/stack/" --format json -- "$PROGRAM" 400 >"$TMP/out" 2>"$TMP/err"
	result $? 'kmemprof runs' "$TMP/err"
	for what in alloc free; do
		expect_line "kmemprof: all of $what" "\"what\":\"$what\",\"bytes\":30000,\"objects\":300,\"stack\":null" "$TMP/out"
		expect_line "kmemprof: the stack of $what" "\"what\":\"$what\",\"bytes\":30000,\"objects\":300,\"stack\":\\[\"[0-9a-f]{16} (take|give)\+0x" "$TMP/out"
	done
	expect_line 'kmemprof: what is not freed' '"what":"left","bytes":10000,"objects":100,' "$TMP/out"

	functions=()
	for f in outer inner factorial; do
		functions+=(-e "uprobe:$f$at//alias=$f/,uretprobe:$f$at")
	done
	"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --format csv -- "$PROGRAM" 500 >"$TMP/out" 2>"$TMP/err"
	result $? 'nested-trace runs' "$TMP/err"
	cut -d, -f3-6 "$TMP/out" | tail -n +2 | sort >"$TMP/got"
	printf '%s\n' 'factorial,true,1,1500' 'inner,false,2,1000' 'outer,false,1,500' >"$TMP/want"
	check 'nested-trace: calls, and the recursive one' diff "$TMP/want" "$TMP/got"
	awk -F, '$3 == "outer" { outer = $7; own = $8 } $3 == "inner" { inner = $7 } END { exit !(own > 0 && own == outer - inner) }' "$TMP/out"
	result $? 'nested-trace: self is the total without the calls' "$TMP/out"
	"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --impl delay --format csv -- "$PROGRAM" 500 >"$TMP/out" 2>"$TMP/err"
	expect_line 'nested-trace --impl delay' '^latency,.*,inner,.*,1000,' "$TMP/out"

	# Within each outer lie two inner, within factorial(3) another two of it, within factorial(2) one.
	"$PROFSCRIPT" nested-trace -m 1024 "${functions[@]}" --than 1ns --detail=samekey --heatmap "$TMP/calls" --format json \
		-- "$PROGRAM" 100 >"$TMP/out" 2>"$TMP/err"
	result $? 'nested-trace --detail runs' "$TMP/err"
	for part in first between second; do
		echo "$part $(grep '"part":"'$part'"' "$TMP/out" | grep -c '"event":"[a-z]*probe:')"
	done >"$TMP/got"
	printf '%s\n' 'first 600' 'between 1000' 'second 600' >"$TMP/want"
	check 'nested-trace --detail: the calls within calls' diff "$TMP/want" "$TMP/got"
	wc -l "$TMP"/calls-*.lat | awk '{ sub(/.*calls-/, "", $2); print $2, $1 }' | grep -v total >"$TMP/got"
	printf '%s\n' 'factorial-factorial.lat 300' 'inner-inner.lat 200' 'outer-outer.lat 100' >"$TMP/want"
	check 'nested-trace --heatmap: each call' diff "$TMP/want" "$TMP/got"
else
	skip 'functions' 'no uprobes (CONFIG_UPROBE_EVENTS, uprobe PMU)'
fi
