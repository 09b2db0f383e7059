#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# stat: programs that do an exact number of things are counted exactly, as by perf stat, at the cost of one read per CPU
# and period.
# Runs alone.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_process_fork sched:sched_switch
enter=raw_syscalls:sys_enter/id==$GETPPID/
programs=$TOP/build/workloads
cd "$TMP" || exit 1
read=63 # the number of read(2)
[ "$(uname -m)" != x86_64 ] || read=0

# counts [EVENT]: the sum of a CSV's column total; fails if the counts of the periods have another sum
counts() {
	awk -F, -v event="${1-}" 'NR > 1 && index($0, event) {
		sum += $(NF - 2)
		n = split($NF, list, ";")
		for (i = 1; i <= n; i++) cells += list[i]
	} END { print sum + 0; exit sum != cells }' out
}

# counted NAME WANTED [EVENT]
counted() {
	counts "${3-}" >sum
	expect_line "$1" "^$2\$" sum
}

# Our own workloads: all their threads and children, from their first instruction on.
"$PROFSCRIPT" stat -e "$enter" --format csv -- "$programs/syscalls" 5000 >out
counted 'N system calls' 5000
"$PROFSCRIPT" stat -e "$enter" --format csv --period 1ms -i 10 -- "$programs/syscalls" 5000 100000 >out
counted 'N system calls over many periods' 5000
check 'in reports of ten periods' test "$(sed -n 2p out | tr -cd ';' | wc -c)" -eq 9
"$PROFSCRIPT" stat -e "$enter" --format csv -- "$programs/threads" 20 >out
counted 'threads and a child' 820
"$PROFSCRIPT" stat -e sched:sched_process_fork,"$enter" --format csv -- "$programs/forker" 300 >out
counted 'N forks' 300 fork

# Attached to a running program; the run ends when its target does.
for attach in -p -t; do
	workload syscalls 20000
	start stat -e "$enter" $attach $WORKLOAD --format csv
	go
	check_status "the end of $attach ends it" 0 wait_for 20 bash -c "! kill -0 $tracer"
	wait $tracer
	counted "stat $attach" 20000
done
workload threads 20
start stat -e "$enter" -p $WORKLOAD --perins --format csv
go
wait $tracer
counted 'the row of a thread includes its children' 820
cut -d, -f3 out | sort -u | grep -c '^[0-9]' >rows
expect_line 'rows of 21 threads' '^21$' rows

# On all CPUs, by CPU: the first interval already counts (members of a group could stay off).
for cpu in $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//' ) ; do
	workload syscalls -c "$cpu" 20000
	taskset -pc "$cpu" $WORKLOAD >/dev/null
	trace_workload stat -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/,sched:sched_switch,cs" --perins \
		--format csv
	counted "a process on CPU $cpu" 20000 "sys_enter"
	counted "all of it on CPU $cpu" 20000 ",$cpu,raw_syscalls:sys_enter"
	check 'the others in the group count too' test "$(counts ,cs,)" -gt 0 -a "$(counts sched_switch)" -gt 0
done
"$PROFSCRIPT" stat -e "sched:sched_switch//cpus=0/alias=zero/,sched:sched_switch" --perins --format csv -N 2 -i 50 >out
cut -d, -f3,4 out | grep zero | sort -u >cpus
check 'cpus= counts only there' diff - cpus <<<'0,zero'

# The same as perf stat, of the same threads at the same time.
workload pingpong -c 0 2000
events=context-switches,sched:sched_switch,raw_syscalls:sys_enter
perf stat -x, -o perf.csv -e $events -p $WORKLOAD &
peer=$!
wait_for 20 grep -q -E 'nanosleep|poll' /proc/$peer/wchan
start stat -e $events -p $WORKLOAD --format csv
go
wait $tracer $peer
for event in ${events//,/ }; do
	counted "as perf stat: $event" "$(sed -n "s/,,$event.*//p" perf.csv)" "$event"
done
# The first sleep of pong was before.
check 'N switches each' test "$(counts context-switches)" -ge 3999

# An event of a recording has all of its names.
perf record -q -c 1 -e cs -o cs.data -- "$programs/pingpong" -c 0 50 2>/dev/null
want=$(perf script -i cs.data -F event 2>/dev/null | grep -c cs)
"$PROFSCRIPT" stat -e context-switches --input cs.data -i 100s --format csv >out
check 'cs is context-switches' test "$want" -ge 100 -a "$(counts cs)" = "$want"

# One read(2) covers all events of a CPU and period, and one more follows at the end. It is recognized by its size:
# three words plus one per event.
"$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$read/" --format csv 'if ev.args[2] == 56 then count() end' -- \
	"$PROFSCRIPT" stat -e raw_syscalls:sys_enter,sched:sched_switch,cs,page-faults -i 20 -N 12 -o /dev/null >reads
expect_line 'one read per CPU and period' ",$((13 * $(nproc)))\$" reads

# How it ends.
for signal in INT TERM; do
	start stat -e sched:sched_switch --format json
	"$programs/pingpong" -c 0 100
	kill -$signal $tracer
	check_status "$signal ends it" 0 wait $tracer
	expect_line "the counts until $signal" '"event":"sched:sched_switch","total":[1-9]' out
done
rm -f file
"$PROFSCRIPT" stat -e sched:sched_switch -i 50 -N 3 -o file
check '-o and -N 3: three reports' test "$(grep -c 'total' file)" -eq 3
"$PROFSCRIPT" stat -e sched:sched_switch -i 100 --duration 0.3 >out
check '--duration: three intervals' test "$(grep -c 'total' out)" -eq 3
refused 'without events there is a message' 2 'stat: no events; select some with -e' stat
refused 'a filter that the kernel cannot evaluate' 2 ".*is only counted, .* it cannot evaluate 'pid<prio'" \
	stat -e 'sched:sched_wakeup/pid<prio/' -N 1
check_status 'stacks of counted events' 2 "$PROFSCRIPT" stat -e sched:sched_switch -g -N 1
check_status 'a frequency of counted events' 2 "$PROFSCRIPT" stat -e cs -F 10 -N 1

# A terminal shows columns if they fit, and follows changes of its width.
if command -v python3 >/dev/null; then
	python3 "$TOP/tests/tools/terminal.py" "$PROFSCRIPT" stat -e sched:sched_switch,cs -i 200 --period 100ms -N 5 | tr -d '\r' >out
	expect_line 'columns in a terminal' '^\|sched_switch\|cs +\|$' out
	expect_line 'two periods in a column' '^\|[0-9]+ +[0-9]+ +\|[0-9]+ +[0-9]+ *\|$' out
	expect_line 'lines when it becomes narrow' '^ *sched:sched_switch +[0-9]+\| *[0-9]+ \| total [0-9]+$' out
else
	skip 'a terminal' 'python3 is not installed'
fi

# Pages that a program allocates are movable, its page tables are not.
if [ -d /sys/kernel/tracing/events/kmem/mm_page_alloc ]; then
	workload pages 3000
	start stat --format csv -i 100s -e kmem:mm_page_alloc/migratetype==1/ -p $WORKLOAD
	go
	wait $tracer
	counted 'N pages are allocated' 3000
else
	skip 'N pages are allocated' 'kmem:mm_page_alloc'
fi

"$PROFSCRIPT" stat -e sched:sched_switch -m 64 --order --perfeval-cpus 0 --sampling-limit 1 --duration 0.2 \
	>"$TMP/out" 2>"$TMP/err"
result $? 'options about samples do not stop a run' "$TMP/err"
expect_line 'and are said to have no effect' '^stat: --mmap-pages has no effect, because the events are only counted$' "$TMP/err"
