#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Programs that do an exact number of things are seen doing just that, and what a tiny ring loses is
# counted exactly.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_waking sched:sched_wakeup \
	sched:sched_process_fork sched:sched_process_exit
case $(uname -m) in
x86_64) getppid=110 ;;
aarch64 | riscv64) getppid=173 ;;
*) skip_all "the number of getppid on $(uname -m) is not known here" ;;
esac
enter=raw_syscalls:sys_enter/id==$getppid/
exits=raw_syscalls:sys_exit/id==$getppid/
syscalls=$TOP/build/workloads/syscalls

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

# counted NAME WANTED COLUMN...: the one row of the CSV in $TMP/out ends with WANTED
counted() {
	tail -n +2 "$TMP/out" >"$TMP/row"
	expect_line "$1" ",$2\$" "$TMP/row"
}

# A workload of our own.
"$PROFSCRIPT" trace -m 1024 -e "$enter,$exits" -- "$syscalls" 5000 >"$TMP/out"
for event in sys_enter sys_exit; do
	grep -c "$event: NR $getppid " "$TMP/out" >"$TMP/n"
	expect_line "trace sees each $event" '^5000$' "$TMP/n"
done
awk '{ enter = /sys_enter/ ? "yes" : "no"; if (enter == last) bad = 1; last = enter } END { exit bad }' "$TMP/out"
result $? 'they alternate'
for key in '' '-k common_pid' '-k _tid'; do
	# shellcheck disable=SC2086 # an option and its value
	"$PROFSCRIPT" multi-trace -m 1024 -e "$enter" -e "$exits" $key --format json -- "$syscalls" 20000 >"$TMP/out"
	expect_line "multi-trace ${key:-by thread}" '"calls":20000,' "$TMP/out"
done

# Rings that are overwritten keep what is newest: all of it, or the end.
"$PROFSCRIPT" trace --overwrite -m 1024 -e "$enter" -- "$syscalls" 5000 >"$TMP/out"
expect_line 'trace --overwrite: all that fits' '^5000$' <(grep -c " syscalls .*sys_enter: NR $getppid " "$TMP/out")
"$PROFSCRIPT" trace --overwrite -m 4 -e raw_syscalls:sys_enter -- "$syscalls" 5000 >"$TMP/out"
check 'trace --overwrite: fewer, up to the last' awk '
	/ NR 231 / { last = NR } END { exit !(NR > 100 && NR < 4 * 4096 / 64 && last == NR) }' "$TMP/out"
check 'trace --overwrite: in the order of time' sort -c -s -k1,2 <(cut -c1-26 "$TMP/out")
workload syscalls 300000
trace_workload trace --overwrite -i 10 -v -m 4096 -e "$enter" -p $WORKLOAD
read -r seen lost < <(sed -n "s/^profscript: \([0-9]*\) events, \([0-9]*\) lost, 0 late$/\1 \2/p" "$TMP/err")
expect_line 'trace --overwrite -i: those and the lost are all' '^300000$' <(echo $((seen + lost)))

# A running one: by process, by thread, by filter on all cpus.
workload syscalls 20000
trace_workload exec -m 1024 -e "$enter" --format csv 'count()' -p $WORKLOAD
counted 'exec -p' 20000
workload syscalls 20000
trace_workload exec -m 1024 -e "$enter" --format csv 'count()' -t $WORKLOAD
counted 'exec -t' 20000
workload syscalls 20000
trace_workload exec -m 1024 -e "raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/" --format csv 'count()'
counted 'exec on all cpus' 20000

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
	skip 'two cpus: waking' 'there is one cpu'
fi

# Children.
workload forker 300
trace_workload exec -m 1024 -e sched:sched_process_fork,sched:sched_process_exit --format csv \
	"if ev._comm == 'forker' then count(ev._event) end"
expect_line forks 'sched_process_fork,300$' "$TMP/out"
expect_line 'exits, one is its own' 'sched_process_exit,301$' "$TMP/out"

# Overload: what was seen and what was lost make what was done.
# seen_and_lost NAME MADE
seen_and_lost() {
	read -r seen lost < <(sed -n 's/^profscript: \([0-9]*\) events, \([0-9]*\) lost.*/\1 \2/p' "$TMP/err")
	echo "seen $seen, lost $lost, made $2" >"$TMP/sum"
	[ $((seen + lost)) -eq "$2" ] && [ "$lost" -gt 0 ]
	result $? "$1: seen and lost make $2" "$TMP/sum"
	grep -q "[,:]$seen\b" "$TMP/out"
	result $? "$1: the script saw $seen" "$TMP/out"
}

for pages in 1 2; do
	for run in 1 2 3; do
		"$PROFSCRIPT" exec -v -m $pages -e "$enter" --format csv 'count()' -- "$syscalls" 200000 \
			>"$TMP/out" 2>"$TMP/err"
		seen_and_lost "-m $pages, run $run, a thread" 200000
	done
	workload syscalls 200000
	trace_workload exec -v -m $pages -e "raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/" \
		--format csv 'count()'
	seen_and_lost "-m $pages, all cpus" 200000
	workload syscalls 200000
	trace_workload multi-trace -v -m $pages -e "raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/" \
		-e "raw_syscalls:sys_exit/id==$getppid&&common_pid==$WORKLOAD/" -k common_pid --format json
	read -r seen lost < <(sed -n 's/^profscript: \([0-9]*\) events, \([0-9]*\) lost.*/\1 \2/p' "$TMP/err")
	calls=$(sed -n 's/.*"calls":\([0-9]*\),.*/\1/p' "$TMP/out")
	echo "seen $seen, lost $lost, pairs $calls" >"$TMP/sum"
	[ $((seen + lost)) -eq 400000 ] && [ $((2 * calls)) -le "$seen" ]
	result $? "-m $pages, pairs: seen and lost make 400000, no pair without both" "$TMP/sum"
done
