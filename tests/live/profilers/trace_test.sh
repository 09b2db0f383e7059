#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# trace: a program that does an exact number of things has that many events; rings that are overwritten.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit
enter=raw_syscalls:sys_enter/id==$GETPPID/
exits=raw_syscalls:sys_exit/id==$GETPPID/
syscalls=$TOP/build/workloads/syscalls

# Our own workload.
"$PROFSCRIPT" trace -m 1024 -e "$enter,$exits" -- "$syscalls" 5000 >"$TMP/out"
for event in sys_enter sys_exit; do
	grep -c "$event: NR $GETPPID " "$TMP/out" >"$TMP/n"
	expect_line "it sees each $event" '^5000$' "$TMP/n"
done
awk '{ enter = /sys_enter/ ? "yes" : "no"; if (enter == last) bad = 1; last = enter } END { exit bad }' "$TMP/out"
result $? 'they alternate'

# Rings that are overwritten keep the newest events: all of them, or the last ones.
"$PROFSCRIPT" trace --overwrite -m 1024 -e "$enter" -- "$syscalls" 5000 >"$TMP/out"
expect_line '--overwrite: all that fits' '^5000$' <(grep -c " syscalls .*sys_enter: NR $GETPPID " "$TMP/out")
"$PROFSCRIPT" trace --overwrite -m 4 -e raw_syscalls:sys_enter -- "$syscalls" 5000 >"$TMP/out"
check '--overwrite: fewer, up to the last' awk '
	/ NR 231 / { last = NR } END { exit !(NR > 100 && NR < 4 * 4096 / 64 && last == NR) }' "$TMP/out"
check '--overwrite: in the order of time' sort -c -s -k1,2 <(cut -c1-26 "$TMP/out")
workload syscalls 300000
trace_workload trace --overwrite -i 10 -v -m 4096 -e "$enter" -p $WORKLOAD
read -r seen lost < <(sed -n "s/^profscript: \([0-9]*\) events, \([0-9]*\) lost, 0 late$/\1 \2/p" "$TMP/err")
expect_line '--overwrite -i: printed and lost events are all events' '^300000$' <(echo $((seen + lost)))

# Flame graphs.
"$PROFSCRIPT" trace -e page-faults --flame-graph "$TMP/faults" -q -- "$TOP/build/workloads/burn" 1 >"$TMP/lines"
expect_line 'trace has flame graphs' '^burn;.* [0-9]+$' "$TMP/faults.folded"
check 'and prints no stacks then' bash -c "! grep -q '^ *[0-9a-f]\{16\}' '$TMP/lines'"


# What the scheduler does with a thread in the time of others: it is woken by a timer's interrupt, and switched to. A
# system call is in the time of the thread itself.
cp "$(type -P bash)" "$TMP/sleeper"
for capture in auto perf; do
	# shellcheck disable=SC2016 # expanded by the command
	"$PROFSCRIPT" trace -e "sched:sched_switch,sched:sched_waking,raw_syscalls:sys_enter/id==$GETPPID/" --capture $capture --raw-fields \
		--no-inherit -- "$TMP/sleeper" -c 'for _ in {1..30}; do read -rt 0.005 <> <(:); done; :' >"$TMP/out" 2>"$TMP/err"
	check "--capture $capture: a thread is woken by interrupts" grep -q ' d.[hHsi].*sched_waking: comm=sleeper ' "$TMP/out"
	check "--capture $capture: others switch to it" grep -q '==> next_comm=sleeper ' "$TMP/out"
	check "--capture $capture: all is about it" \
		awk '/sched_/ && !/sleeper|profscript/ { print > "/dev/stderr"; exit 1 }' "$TMP/out"
done
