#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Profilers as sources of others: what happens to the target between two events, whichever task the events belong to.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch sched:sched_wakeup raw_syscalls:sys_enter
cd "$TMP" || exit 1

# in_order NAME REGEX...: lines of out match these in order, with others between them
in_order() {
	local name=$1 regex at=1 found
	shift
	for regex; do
		found=$(tail -n +$at out | grep -nEm 1 -- "$regex" | cut -d: -f1)
		if [ -z "$found" ]; then
			echo "not found: $regex" >>out
			result 1 "$name" out
			return
		fi
		at=$((at + found))
	done
	result 0 "$name"
}

# Some kernels report nothing through perf while certain tasks are current, such as the idle task of a CPU. So a second
# run without a target watches, through perf, too: there the kernel itself selects the same events, by the name of the
# workload, which no other task has.
name=slp$$
cp "$(command -v sleep)" "$TMP/$name"
by_name="sched:sched_switch/prev_comm==\"$name\"||next_comm==\"$name\"/,sched:sched_wakeup/comm==\"$name\"/"

# What perf has hidden is also said. watched ARGS...
watched() {
	local peer
	"$PROFSCRIPT" trace -m 1024 --capture perf -e "$by_name" >all 2>&1 &
	peer=$!
	wait_ready $peer
	watch_tasks "$name"
	"$PROFSCRIPT" "$1" -m 1024 "${@:2}" >out 2>err
	end_watch
	kill -INT $peer
	wait $peer
	grep -v ' are missing: ' err >>out
}

# reported FILE: the events of the workload up to the end of its sleep; when it ends, the run may end before it is
# switched out
reported() {
	grep -E "comm=$name " "$1" | grep -v 'prev_state=[XZ]' | grep -o ' sched:sched_.*' |
		awk -v back="next_comm=$name " '{ print } /prev_state=S/ { slept = 1 } slept && $0 ~ back { exit }'
}

# traced NAME ARGS...: skips NAME if the kernel did not report the whole sleep
traced() {
	watched "${@:2}"
	all_reported "$1" all out
}

# A task whose events are reported is current when the workload is not.
cpu=$(taskset -cp $$ | sed 's/.*: //; s/[,-].*//')
taskset -c "$cpu" sh -c 'while :; do :; done' &

# A thread sleeps in a system call: its switches and its wakeup are events of others.
test='trace: what happens to a thread that sleeps'
if traced "$test" trace -e 'raw_syscalls:sys_enter/id==230/,raw_syscalls:sys_exit/id==230/,task-state' -- \
	taskset -c "$cpu" "$TMP/$name" 0.1; then
	in_order "$test" "$name .* raw_syscalls:sys_enter: NR 230 " \
		"prev_comm=$name .* prev_state=S ==> " "sched_wakeup: comm=$name " "==> next_comm=$name " \
		"$name .* raw_syscalls:sys_exit: NR 230 = 0"
	check 'and no events of other threads' \
		awk -v ours="comm=($name|taskset|profscript)" '/sched_switch|sched_wakeup/ && $0 !~ ours { exit 1 }' out
	check 'all in time order' sort -c -s -k1,2 <(cut -c1-26 out)
fi

for _ in {1..8}; do
	watched trace -e task-state -- taskset -c "$cpu" "$TMP/$name" 0.05
	[ -z "$hidden" ] || continue
	reported all >>all_reported_lines
	reported out >>own_reported_lines
done
check 'the events selected from all CPUs are those selected by name' diff all_reported_lines own_reported_lines
check 'which is some' grep -q "prev_comm=$name" own_reported_lines

test='multi-trace: the details of a pair'
if traced "$test" multi-trace -e raw_syscalls:sys_enter -e 'raw_syscalls:sys_exit,task-state//untraced/' --order --than 20ms \
	--detail=sametid -- taskset -c "$cpu" "$TMP/$name" 0.1; then
	time='[0-9-]{10} [0-9:]{8}\.[0-9]{6}'
	in_order "$test" \
		"^$time  +$name +[0-9]+ \\S+ \\[[0-9]{3}\\] [0-9.]+: raw_syscalls:sys_enter: NR 230 " \
		"^\\|\\S* (9[0-9]|[1-9][0-9]{2,})[0-9]{3}\\.[0-9]{3} us +$name +[0-9]+ \\S+ \\[[0-9]{3}\\] [0-9.]+: sched:sched_switch: prev_comm=$name " \
		"^\\| +\\S.* sched:sched_wakeup: comm=$name " \
		"^\\| +\\S.* sched:sched_switch: .* ==> next_comm=$name " \
		"^$time  +$name +[0-9]+ \\S+ \\[[0-9]{3}\\] [0-9.]+: raw_syscalls:sys_exit: NR 230 = 0\$" \
		'^sys_enter => sys_exit +[0-9]+ .* [1-9][0-9]* \( +[0-9]+%\)$'
fi

# New threads of the target are followed, those of others are not.
workload threads 10
start exec -m 1024 -e 'task-state' 'if ev._event == "sched:sched_wakeup_new" then count(ev.comm) end' -p "$WORKLOAD" \
	--format csv
go
wait $tracer
expect_line 'new threads of a process' '^count\(\),[0-9.]+,threads,[1-9][0-9]*$|^.*threads,[1-9][0-9]*$' out
check 'and no others' awk -F, 'NR > 1 && !/threads/ { exit 1 }' out

"$PROFSCRIPT" trace -e 'task-state/-N 4/' -p $$ --no-inherit >out 2>err &
tracer=$!
wait_for 20 test ! -e /proc/$tracer # it sleeps and wakes up
wait $tracer
expect_line 'a source alone ends the run with its -N' '^4$' <(grep -c ': sched:' out)
check 'all about the process' awk -v me=$$ '!($0 ~ "pid=" me " ") { exit 1 }' out

"$PROFSCRIPT" trace -e 'raw_syscalls:sys_enter,task-state' --dry-run -p $$ >out 2>&1
in_order 'a dry run tells where each event is taken' '^  raw_syscalls:sys_enter:' '^  sched:sched_switch:' \
	'^    target: all CPUs, restricted to events about the target below$' "^target: all threads of processes $$"

if unshare -pf --mount-proc true 2>/dev/null; then
	unshare -pf --mount-proc "$PROFSCRIPT" task-state -- true >out 2>err
	expect_line 'thread ids of another namespace are not compared without a word' \
		'^task-state: prev_pid of sched:sched_switch is a thread id of the machine, not of this pid namespace' err
else
	skip 'thread ids of another namespace' 'no pid namespaces'
fi
