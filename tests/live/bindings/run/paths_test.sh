#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# --capture: every profiler prints the same about an exact workload, however its events arrive: as perf's samples, captured,
# and as `auto` takes them. Others say why BPF programs cannot take their events. What programs count and pair is tested in
# in_kernel_test.sh, and those of bpf/ways.
# Runs on an idle machine.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new
"$PROFSCRIPT" trace -e raw_syscalls:sys_enter --capture bpf --duration 1ms >/dev/null 2>"$TMP/err" ||
	skip_all "$(sed -n '1s/.*not possible: //p' "$TMP/err")"
seen=' top num-dist '

# waiting NAME ARG...: `workload`, when all of its threads wait
waiting() {
	workload "$@"
	# shellcheck disable=SC2317 # wait_for calls it
	all_wait() { grep -q pipe "/proc/$WORKLOAD/wchan" && ! grep -Lqx '0' /proc/"$WORKLOAD"/task/*/wchan; }
	wait_for 20 all_wait
}

# shown COLUMNS FILE: these columns of a CSV, sorted; text: lines of events without times, nor flags that others may set, nor
# tables of times
shown() {
	if [ "$1" = text ]; then
		sed -E 's/^[-0-9]+ [:.0-9]+ *//; s/^(.+ [0-9]+) [^ ]+ (\[[0-9]+\]) [.0-9]+:/\1 \2/; /^ *[a-z_]+ => |^[a-z0-9_]+\([0-9]+\) /d' "$2"
	else
		sed 's/^"[^"]*"/table/' "$2" | awk -F, -v wanted="$1" '
			BEGIN { n = split(wanted, names, ",") }
			NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
			{ line = ""; for (i = 1; i <= n; i++) line = line $at[names[i]] " "; print line }' | sort
	fi
}

# unwritten FILE: how many of the scheduler's events the run that wrote this has no record of, by the kernel's counters, or
# because tasks ran that were not switched to. They are of any task.
unwritten() {
	awk '/ sched:[a-z_]+ are missing: the kernel counted them/ { n += $2 }
		/ the kernel did not report / { for (i = 2; i <= NF; i++) if ($i ~ /^(switch(es)?|wakeups?)$/) n += $(i - 1) }
		END { print n + 0 }' "$1"
}

# the_same COLUMNS N PERF OTHER: the files are equal, but for N events that only OTHER may have. Lines of text are two of
# each: the wait that they begin or end.
# shellcheck disable=SC2317 # check calls it
the_same() {
	diff "$3" "$4" && return
	if [ "$1" = text ]; then
		diff "$3" "$4" | awk -v n="$2" '/^</ { bad = 1 } /^>/ { n -= 0.5 } END { exit bad || n < 0 }'
		return
	fi
	awk -v columns="$1" -v n="$2" '
		BEGIN { count = split(columns, names, ",") }
		{ key = ""; number = 0
		  for (i = 1; i <= count; i++) if (names[i] ~ /^(calls|runs|total)$/) number = $i; else key = key $i " "
		  if (FILENAME == ARGV[1]) few[key] = number; else many[key] = number }
		END { for (key in few) if (!(key in many)) bad = 1
			for (key in many) { if (many[key] < few[key]) bad = 1; n -= many[key] - few[key] }
			exit bad || n < 0 }' "$3" "$4"
}

# agree NAME HOWS COLUMNS REGEX PROFILER ARG...: runs of the profiler while the workload runs print the same of COLUMNS,
# among which a line matches. Not if perf's samples about the tasks $watched are incomplete: ftrace and perf's counters
# show that of what perf does not count, and the run itself of what perf counts, but writes no record of.
watched=
agree() {
	local name=$1 hows=$2 columns=$3 regex=$4 how few=0 tracers=()
	shift 4
	seen+="$1 "
	[ "$columns" = text ] || set -- "$@" --csv
	# Of those with -p, `auto` weighs only profilers that do not look at all tasks, and these run with `bpf` here.
	"$PROFSCRIPT" "$@" --capture "${hows##* }" --dry-run >"$TMP/out" 2>&1
	expect_line "$name: programs are used" '(captured|by a BPF program)' "$TMP/out"
	for how in $hows; do
		"$PROFSCRIPT" "$@" --capture "$how" -m 2048 >"$TMP/$how" 2>"$TMP/$how.err" <"${input-/dev/null}" &
		tracers+=($!)
	done
	for how in "${tracers[@]}"; do wait_ready "$how"; done
	[ -z "$watched" ] || watch_tasks $watched
	go
	[ -z "$watched" ] || end_watch
	kill -INT "${tracers[@]}" 2>/dev/null
	wait "${tracers[@]}"
	[ -z "$watched" ] || few=$(unwritten "$TMP/perf.err")
	for how in $hows; do
		shown "$columns" "$TMP/$how" >"$TMP/$how.shown"
		[ "$(unwritten "$TMP/$how.err")" -gt "$few" ] || sed -i '/ the kernel did not report /d' "$TMP/$how.err"
		# What perf alone says, of any task.
		sed -Ei '/ are missing: the kernel counted them| system calls of i386, in any task, /d' "$TMP/$how.err"
	done
	expect_line "$name" "$regex" "$TMP/perf.shown"
	for how in ${hows#perf }; do
		if all_reported "$name: $how" "$TMP/perf.err" "$TMP/$how.err"; then
			check "$name: $how" the_same "$columns" "$few" "$TMP/perf.shown" "$TMP/$how.shown"
			check "$name: $how: the same warnings" diff "$TMP/perf.err" "$TMP/$how.err"
		fi
	done
}

# calls N: the system calls of a process
calls() {
	waiting syscalls "$1"
	enter=raw_syscalls:sys_enter/id==$GETPPID\&\&common_pid==$WORKLOAD/
	leave=raw_syscalls:sys_exit/id==$GETPPID\&\&common_pid==$WORKLOAD/
}
all='perf bpf auto'

# --- system calls: all fields are equal -----------------------------------------------------------

calls 60
agree 'trace' "$all" text 'raw_syscalls:sys_exit: NR' trace -e "$enter" -e "$leave"
calls 60
agree 'trace --overwrite' "$all" text 'raw_syscalls:sys_exit: NR' trace --overwrite -e "$enter" -e "$leave"
calls 60
agree 'expr' "$all" text "^result: .*\\($((GETPPID * 2 + 1))\\)" expr -e "$enter" 'id * 2 + 1' -N 40
calls 60
agree 'exec, in Lua' "$all" event,id,count ".*sys_exit $GETPPID 60" exec -e "$enter" -e "$leave" \
	'if ev.id * 2 > 1 then count(ev._event, ev.id) end'
calls 60
agree 'sql' "$all" 'id,count(*),max(_cpu)-min(_cpu)' "^$GETPPID 60 " sql -e "$enter" \
	--query 'SELECT id, count(*), max(_cpu)-min(_cpu) FROM sys_enter GROUP BY id'
calls 60
echo 'count(ev.id)' >"$TMP/lines"
input=$TMP/lines agree 'repl' "$all" text "$GETPPID +60\$" repl -e "$enter"
calls 60
agree 'syscalls --than' 'perf bpf' thread,nr,calls,err,than " $GETPPID 60 0 0 " syscalls --perins --than 10s -p "$WORKLOAD"
calls 60
agree 'multi-trace --than' "$all" start,stop,calls,than 'sys_enter sys_exit 60 0' multi-trace -e "$enter" -e "$leave" \
	-k common_pid --than 10s
calls 60
agree 'multi-trace --cycle --than' "$all" start,stop,calls 'sys_exit sys_enter 59' multi-trace -e "$enter" -e "$leave" \
	-k common_pid --cycle --than 10s
calls 60
agree 'multi-trace --impl pair' "$all" start,end,count 'sys_exit 60' multi-trace -e "$enter" -e "$leave" -k common_pid \
	--impl pair
calls 60
agree 'multi-trace --impl syscalls' "$all" nr,calls,err "^$GETPPID 60 0" multi-trace -e "$enter" -e "$leave" -k common_pid \
	--impl syscalls
calls 60
agree 'nested-trace' "$all" text '^sys_enter' nested-trace -e "$enter,$leave" --impl call -k common_pid
calls 60
agree 'nested-trace --impl delay' "$all" start,stop,calls 'sys_enter sys_exit 60' nested-trace -e "$enter,$leave" \
	--impl delay -k common_pid

# --- the scheduler, with a task that keeps the CPU busy: some kernels do not report the switches of idle tasks --------

taskset -c 0 bash -c 'while :; do :; done' &
watched=states
states() {
	waiting states pin 0 sleep 2 fork 6 vfork 2 "$@"
	tasks="prev_comm == \"states\" || next_comm == \"states\""
}
states
agree 'task-state' "$all" thread,state,calls ' S [1-9]' task-state -S --perins --filter states
states
agree 'oncpu' "$all" cpu,tid,runs "^0 $WORKLOAD [1-9]" oncpu -C 0 --filter "$tasks" -i 100s
states
agree 'rundelay' 'perf auto' key,start,stop,calls "^$WORKLOAD sched_wakeup sched_switch [1-9]" rundelay --perins --filter states
states
agree 'task-state of a process' 'perf auto' thread,state,calls "^$WORKLOAD RD [1-9]" task-state --perins --than 1h -p "$WORKLOAD"
states
agree 'rundelay of a process' 'perf auto' key,start,stop,calls "^$WORKLOAD sched_wakeup sched_switch [1-9]" \
	rundelay --perins -p "$WORKLOAD"
states
agree 'rundelay --than of a process' 'perf auto' text 'sched_wakeup: comm=states ' rundelay --than 1ns -p "$WORKLOAD"
states
agree 'rundelay --than: sums' 'perf auto' start,stop,calls,than '^sched_wakeup_new sched_switch [1-9]' rundelay --than 1h \
	-p "$WORKLOAD"
states
agree 'syscalls --than with exits' 'perf bpf' text 'exit: pid=' syscalls --than 1ns -p "$WORKLOAD"
states migrate 6
agree 'sched-migrate of a process' 'perf auto' total '^[1-9]' sched-migrate -p "$WORKLOAD"

# --- what perf must do ----------------------------------------------------------------------------

# not REASON PROFILER ARG...: BPF programs cannot take the events: `explain` and -v say why
not() {
	local why=$1
	shift
	seen+="$1 "
	"$PROFSCRIPT" "$@" --capture bpf --duration 1ms >"$TMP/out" 2>"$TMP/err" </dev/null
	if unavailable $? "$1"; then return; fi
	one_line 2 2 "$1: --capture=bpf is not possible: .*$why" >"$TMP/.wrong"
	result $((0 != $(wc -l <"$TMP/.wrong"))) "$1: $why" "$TMP/err"
}

call=raw_syscalls:sys_enter
not 'have parts that programs do not write' event-lost -e $call
not 'is only counted' hrcount -e $call
not '--freq' hrtimer -F 10 'sys_enter > 5' -e $call
not '--period' irq-off --period 1ms --than 20ms
not '--freq' watchdog
not 'is not a tracepoint' profile
not 'is not a tracepoint' page-faults
not 'is not a tracepoint' misc
not 'is not a tracepoint' breakpoint 0xffffffff81000000
not 'arguments of signal' signal
not 'arguments of kmem' kmemprof -e kmem:kmalloc//stack/ -e kmem:kfree//stack/
not 'arguments of kmem' kmemleak --alloc kmem:kmalloc --free kmem:kfree
not 'a BPF program writes' task-state -N 5 -p $$
not 'a BPF program writes' files
not 'a BPF program writes' tcp
not 'arguments of skb' drops
not 'arguments of block' iostat
not 'arguments of compaction' reclaim
not 'arguments of oom' oom
not 'the common_flags of sched:sched_waking' epoll
not 'do not know the arguments' pagecache
not 'the common_flags of sched:sched_waking' offcpu
not 'stacks of syscalls:sys_enter_futex' lock
not 'the common_flags of sched:sched_wakeup' rundelay -p $$ --than 1s --detail --heatmap "$TMP/map"

# Those that only count, two with an event that has a string without a fixed size in some kernels, and those that need a disk, virtual machines or hardware counters.
seen+='sched sched-migrate stat percpu-stat cpu-util blktrace bpf-kvm_exit kvm-exit kvmmmu hwstat ldlat-loads ldlat-stores llcstat tlbstat split-lock '
for profiler in "$TOP"/scripts/profilers/*.lua; do
	profiler=$(basename "$profiler" .lua)
	[[ $seen == *" $profiler "* ]] || echo "$profiler"
done >"$TMP/unseen"
check 'every profiler' test ! -s "$TMP/unseen"
