#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The account: what the kernel counted is read, lost or told. Faults are put in by what users can do: filters that
# reject everything, keys that never match, rings that are too small, another tracer that hides events.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
cd "$TMP" || exit 1
N=20000
call="raw_syscalls:sys_enter/id==$GETPPID/"

# account EVENT EXPRESSION NAME: awk's EXPRESSION holds for the row of EVENT in the account; c["fired"] is a column
account() {
	awk -v event="$1" '/: account$/ { is_next = 1; next } is_next { split($0, name); is_next = 0; next }
		$1 == event { for (i in name) c[name[i]] = $i; if ('"$2"') found = 1 } END { exit !found }' err
	result $? "$3: $2" err
}

no_difference() { check "$1: nothing is missing" bash -c "! grep -E 'are missing|more than (the kernel|perf)|hidden' err"; }

# Known counts, in all ways.
for way in perf:sample bpf:capture; do
	workload syscalls $N
	start trace -v -m 4096 --capture ${way%:*} -e "$call" -p "$WORKLOAD"
	go
	wait $tracer
	account raw_syscalls:sys_enter "c[\"read\"] == $N && c[\"used\"] == $N && c[\"way\"] == \"${way#*:}\"" 'each call'
	no_difference "${way%:*}"
done
account raw_syscalls:sys_enter "c[\"fired\"] == \"-\" && c[\"perf\"] == $N" 'perf counts what programs capture'
workload syscalls $N
start exec -v --capture bpf -e "$call" 'count(ev.id)' -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_enter "c[\"fired\"] == $N && c[\"perf\"] == $N && c[\"way\"] == \"count\"" 'counted calls'
no_difference 'counted calls'
workload syscalls $N
start multi-trace -v --capture bpf -e "$call" -e "raw_syscalls:sys_exit/id==$GETPPID/" -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_exit "c[\"fired\"] == $N && c[\"perf\"] == $N && c[\"way\"] == \"pair\"" 'paired calls'
no_difference 'paired calls'
for way in perf bpf; do
	"$PROFSCRIPT" syscalls -v -m 4096 --capture $way -- bash -c 'for i in 1 2 3 4 5; do (exit 0); done' >out 2>err
	expect_line "$way: ends without a start" \
		'^syscalls: 6 ends of calls without a start: 5 of clone in new tasks, 1 of calls that had begun before the run$' err
	"$PROFSCRIPT" syscalls -v -m 4096 --capture $way -- bash -c 'for i in 1 2 3; do (kill -9 $BASHPID); done; exit 0' >out 2>err
	expect_line "$way: tasks that are killed outside a call" \
		'^syscalls: 4 ends of calls without a start: 3 of clone in new tasks, 1 of calls that had begun before the run$' err
done

# A part of them is used.
workload syscalls $N
start exec -v -m 4096 --capture perf -e "${call%/} && args[0]*1<100/" 'count(ev.id)' -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_enter "c[\"fired\"] == $N && c[\"used\"] == 100 && c[\"filtered\"] == $N - 100" 'a filter in user space'
workload syscalls $N
start trace -v -m 4096 --capture perf -e "$call" -N 10 -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_enter 'c["used"] == 10 && c["fired"] == c["lost"] + c["outside"] + c["read"]' '-N'
no_difference '-N'

# Losses are no difference, whatever is in the rings when the run ends, and however it ends. (Some kernels hide certain
# tasks from perf, so this is about tasks of the test.)
balance='c["fired"] - c["lost"] - c["outside"] - c["read"]'
for pages in 1 4096; do
	workload syscalls 80000 # of which 4096 pages hold all, also if nobody reads them
	start exec -v -m $pages --capture perf -e raw_syscalls:sys_enter,raw_syscalls:sys_exit 'count(ev._cpu)' -i 100 -p "$WORKLOAD,$$"
	go
	stop
	account raw_syscalls:sys_enter \
		"c[\"fired\"] >= 80000 && $balance >= 0 && $balance <= $(nproc) && (c[\"lost\"] > 0) == ($pages == 1)" "-m $pages, Ctrl-C"
	no_difference "-m $pages"
done
"$PROFSCRIPT" exec -v --capture perf -e raw_syscalls:sys_enter,page-faults,context-switches,raw_syscalls:sys_exit 'count(ev._cpu)' -i 50 \
	-- bash -c 'for i in {1..50}; do /bin/true; done' >out 2>err
no_difference 'a workload with children'
account page-faults "c[\"fired\"] > 1000 && $balance >= 0 && $balance <= $(nproc)" 'inherited counters'
"$PROFSCRIPT" exec -v -e page-faults/period=10/ 'count(ev._cpu)' -- bash -c 'for i in {1..50}; do /bin/true; done' >out 2>err
account page-faults 'c["fired"] > 5 * c["read"]' 'a period'
no_difference 'a period'
workload syscalls $N
start exec -v -m 4096 -e "${call}period=7/" 'count(ev.id)' -p "$WORKLOAD" --no-inherit
go
wait $tracer
account raw_syscalls:sys_enter "c[\"fired\"] == $N && c[\"read\"] == int($N / 7)" 'a period of 7'
no_difference 'a period of 7'

# Only the sum is known of what programs capture and of what they add up.
for args in "trace --capture bpf -e $call" "trace --capture bpf --overwrite -e $call" \
	"multi-trace --capture bpf -e $call -e raw_syscalls:sys_exit/id==$GETPPID/ -k common_pid"; do
	workload syscalls 500
	# shellcheck disable=SC2086 # the arguments
	start $args -v -m 256 -p "$WORKLOAD"
	go
	wait $tracer
	no_difference "$args"
	check "$args: a sum" grep -qE '^(bytes of captured events|ends of pairs) +[1-9][0-9]* +0 +0 +[1-9]' err
done
check 'each end of a pair is in a sum' grep -qE '^ends of pairs +500 +0 +0 +500 ' err
workload syscalls 500
start multi-trace -v --capture bpf -e "$call" -e "raw_syscalls:sys_exit/id==$GETPPID/" -k common_pid --than 0ns --detail=1us -p "$WORKLOAD"
go
wait $tracer
check 'each outlier came' grep -qE '^outliers +500 +0 +[0-9]+ +[0-9]+ .* outliers$' err
check 'each event for details is kept' grep -qE '^events kept for details +1000 +0 +0 +1000 ' err
no_difference 'outliers'
for calls in 'hist(ev.id, ev._tid)' 'hist(ev.id, ev._tid) count(ev._cpu)'; do # declared, and found in a handler
	workload syscalls 500
	start exec -v --capture bpf -e "$call" "$calls" -p "$WORKLOAD"
	go
	wait $tracer
	check "$calls: each value is in a bucket" grep -qE '^values in histograms +500 +0 +0 +500 ' err
	no_difference "$calls"
done
for profiler in oncpu task-state; do
	"$PROFSCRIPT" $profiler -v --duration 100ms >out 2>err
	no_difference $profiler
	awk '/^ns on CPUs / { ok = $4 > 0 && $7 > 0 && $7 <= $4 } END { exit !ok }' err
	result $? "$profiler: no more than the CPUs can do" err
done

for profiler in oncpu task-state; do # no less than their threads and commands have used
	sh -c 'while :; do :; done' &
	"$PROFSCRIPT" $profiler -t $! --duration 100ms >out 2>err
	no_difference "$profiler -t"
	kill $!
	"$PROFSCRIPT" $profiler -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done; true' >out 2>err
	no_difference "$profiler with a command"
done

workload syscalls $N
start trace -v --capture bpf -m 4 -e "$call" -p "$WORKLOAD"
go
wait $tracer
no_difference 'programs whose records are lost'

# Overwritten rings are compared if nothing was overwritten, and events that are sent when they are taken.
workload syscalls 500
start trace -v --capture perf --overwrite -m 256 -e "$call" -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_enter 'c["fired"] == 500 && c["read"] == 500' 'a ring that is large enough'
no_difference 'a ring that is large enough'
workload syscalls $N
start trace -v --capture perf --overwrite -m 1 -e "$call" -p "$WORKLOAD"
go
wait $tracer
account raw_syscalls:sys_enter "c[\"fired\"] == $N && c[\"read\"] < $N" 'a ring that was overwritten'
no_difference 'a ring that was overwritten'
for option in push record; do
	workload syscalls $N
	start trace -v -m 4096 --capture perf -e "$call" --$option $option.data -p "$WORKLOAD"
	go
	wait $tracer
	account raw_syscalls:sys_enter "c[\"fired\"] == $N && c[\"used\"] == $N" "--$option"
	no_difference "--$option"
	"$PROFSCRIPT" trace -v -e "raw_syscalls:sys_enter//pull=\"$TMP/$option.data\"/" >out 2>err
	check "--$option: all that the sender has counted is received" grep -qE "^events of .* $N +0 +0 +$N +0 +$N pull\$" err
	no_difference "--$option"
done

# Empty results say why.
for way in perf bpf; do
	"$PROFSCRIPT" multi-trace --capture $way -e "raw_syscalls:sys_enter//key=common_pid+4194304/" \
		-e raw_syscalls:sys_exit//key=common_pid/ --duration 100ms >out 2>err
	expect_line "$way: a key that never matches" \
		'^multi-trace: nothing to report: none of [0-9]+ raw_syscalls:sys_exit had the key common_pid\+4194304 of one of [0-9]+ raw_syscalls:sys_enter before it$' err
	"$PROFSCRIPT" multi-trace --capture $way -e raw_syscalls:sys_enter/id==12345/ -e raw_syscalls:sys_exit -k common_pid \
		--duration 100ms >out 2>err
	expect_line "$way: a filter in the kernel" \
		"^multi-trace: nothing to report: no raw_syscalls:sys_enter passed the filter 'id==12345'\$" err
done
"$PROFSCRIPT" trace --capture perf -e 'raw_syscalls:sys_enter/id*1==12345/' --duration 100ms >out 2>err
expect_line 'a filter in user space' "^trace: the filter 'id\\*1==12345' rejected all [0-9]+ raw_syscalls:sys_enter\$" err
"$PROFSCRIPT" multi-trace -e sched:sched_process_hang -e sched:sched_process_exec -k common_pid -p $$ --duration 10ms >out 2>err
expect_line 'an event that does not happen' \
	'^multi-trace: nothing to report: no sched:sched_process_hang happened in the target' err
"$PROFSCRIPT" multi-trace -v -e raw_syscalls:sys_enter//key=common_pid+4194304/ -e raw_syscalls:sys_exit -k common_pid \
	--input "$DATA/syscalls.data" >out 2>err
expect_line 'a recording' '^multi-trace: nothing to report: none of [0-9]+ ' err
account raw_syscalls:sys_exit 'c["fired"] == "-" && c["used"] > 0 && c["way"] == "recording"' 'a recording'

# Numbers of tasks mean something else in other pid namespaces.
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	unshare --pid --fork --mount-proc --kill-child sleep 100 &
	within() { pgrep -P $! sleep >inside; }
	check 'a process in a pid namespace' wait_for 20 within
	"$PROFSCRIPT" multi-trace -e sched:sched_process_hang -e sched:sched_process_exec -k common_pid -p 1 --duration 10ms >out 2>err
	expect_line 'a pid of another namespace' \
		"happened in the target; .*1 of another pid namespace is $(cat inside) \\(sleep\\) here" err
	kill -KILL "$(cat inside)" # unshare ignores SIGTERM until its child ends, and an init in a namespace all but this
	wait $!
	unshare --pid --fork --mount-proc "$PROFSCRIPT" multi-trace -e sched:sched_wakeup/pid==1/ -e sched:sched_switch/next_pid==1/ \
		-k common_pid --duration 10ms >out 2>err
	expect_line 'a pid of this namespace in a field' \
		"passed the filter 'pid==1'; .*; fields have the numbers that tasks have on the host, not those of this pid namespace\$" err
else
	skip 'another pid namespace' 'the kernel does not allow one'
fi

# A program on a tracepoint that returns 0 hides the event from perf.
export XDG_CACHE_HOME=$TOP/build/cache
if ! "$PROFSCRIPT" --check | grep -q '^ok  BPF from scripts'; then
	skip 'events that another tracer hides' 'no clang to compile a BPF program with'
else
	cat >hides.lua <<'LUA'
return {
  summary = 'Hide system calls of user 54321 from perf',
  start = function(_, out, session)
    session.bpf { source = [[
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("tracepoint/raw_syscalls/sys_exit") int hides(void *ctx) { return (unsigned)bpf_get_current_uid_gid() != 54321; }
char LICENSE[] SEC("license") = "GPL";
]] }:attach()
    return { interval = function() out:print 'attached' end }
  end,
}
LUA
	"$PROFSCRIPT" hides.lua -i 100 >hides.out 2>&1 &
	hides=$!
	check 'a program that hides events' wait_for 60 grep -q attached hides.out
	chmod 755 .
	# The account compares perf's count with a later one, so calls of other tasks might be in perf's alone.
	workload -u 54321 syscalls 500
	start exec --capture perf -e "raw_syscalls:sys_exit/id==$GETPPID&&common_pid==$WORKLOAD/" 'count(ev.id)'
	go
	stop
	expect_line 'another tracer hides events' \
		"^exec: [0-9]+ of [0-9]+ raw_syscalls:sys_exit are hidden from perf by another tracer's BPF program \(hides\); --capture bpf has them\$" err
	check 'with their number' test "$(sed -n 's/^exec: \([0-9]*\) of .* hidden .*/\1/p' err)" -eq 500
	kill $hides
	wait $hides
fi
