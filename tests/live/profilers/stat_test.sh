#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Events that are only counted: programs that do an exact number of things are counted to do just that,
# as often as perf stat says, at the price of one read per CPU and period.
. "$(dirname "$0")/../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter sched:sched_process_fork sched:sched_switch
case $(uname -m) in
x86_64) getppid=110 read=0 ;;
aarch64 | riscv64) getppid=173 read=63 ;;
*) skip_all "the number of getppid on $(uname -m) is not known here" ;;
esac
enter=raw_syscalls:sys_enter/id==$getppid/
programs=$TOP/build/workloads
cd "$TMP" || exit 1

# start ARG...: runs profscript in the background until it counts; its pid is $tracer
start() {
	"$PROFSCRIPT" "$@" >out 2>err &
	tracer=$!
	wait_ready $tracer
}

# total [EVENT]: the sum of a CSV's column total, and of the counts behind it if that is another one
total() {
	awk -F, -v event="${1-}" 'NR > 1 && index($0, event) {
		sum += $(NF - 2)
		n = split($NF, list, ";")
		for (i = 1; i <= n; i++) cells += list[i]
	} END { print sum + 0; exit sum != cells }' out
}

# counted NAME WANTED [EVENT]
counted() {
	total "${3-}" >sum
	expect_line "$1" "^$2\$" sum
}

# Workloads of our own: all their threads and children, from their first instruction on.
"$PROFSCRIPT" stat -e "$enter" --format csv -- "$programs/syscalls" 5000 >out
counted 'N system calls' 5000
"$PROFSCRIPT" stat -e "$enter" --format csv --period 1ms -i 10 -- "$programs/syscalls" 5000 100000 >out
counted 'N system calls over many periods' 5000
check 'in reports of ten periods' test "$(sed -n 2p out | tr -cd ';' | wc -c)" -eq 9
"$PROFSCRIPT" stat -e "$enter" --format csv -- "$programs/threads" 20 >out
counted 'threads and a child' 820
"$PROFSCRIPT" stat -e sched:sched_process_fork,"$enter" --format csv -- "$programs/forker" 300 >out
counted 'N forks' 300 fork

# Attached to one that runs; it ends when its target does.
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
counted 'a row for each thread holds what it started' 820
cut -d, -f3 out | sort -u | grep -c '^[0-9]' >rows
expect_line 'rows of 21 threads' '^21$' rows

# On all CPUs, by CPU: the first interval already counts (members of a group could stay off).
for cpu in $(taskset -cp $$ | sed 's/.*: //; s/[,-].*//' ) ; do
	workload syscalls -c "$cpu" 20000
	start stat -e "raw_syscalls:sys_enter/id==$getppid&&common_pid==$WORKLOAD/,sched:sched_switch,cs" --perins \
		--format csv
	taskset -pc "$cpu" $WORKLOAD >/dev/null
	go
	kill -INT $tracer
	wait $tracer
	counted "a process on CPU $cpu" 20000 "sys_enter"
	counted "all of it on CPU $cpu" 20000 ",$cpu,raw_syscalls:sys_enter"
	check 'the others in the group count too' test "$(total ,cs,)" -gt 0 -a "$(total sched_switch)" -gt 0
done
"$PROFSCRIPT" stat -e "sched:sched_switch//cpus=0/alias=zero/,sched:sched_switch" --perins --format csv -N 2 -i 50 >out
cut -d, -f3,4 out | grep zero | sort -u >cpus
check 'cpus= counts there and nowhere else' diff - cpus <<<'0,zero'

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
check 'N switches each' test "$(total context-switches)" -ge 3999

# An event of a recording has all of its names.
perf record -q -c 1 -e cs -o cs.data -- "$programs/pingpong" -c 0 50 2>/dev/null
want=$(perf script -i cs.data -F event 2>/dev/null | grep -c cs)
"$PROFSCRIPT" stat -e context-switches --input cs.data -i 100s --format csv >out
check 'stat: cs is context-switches' test "$want" -ge 100 -a "$(total cs)" = "$want"
"$PROFSCRIPT" percpu-stat --input cs.data -i 100s --format csv >out
expect_line 'percpu-stat: in its panel' ",ALL,$want\$" out
check_status 'percpu-stat: none of it is recorded' 2 "$PROFSCRIPT" percpu-stat --input "$TOP/tests/recordings/sched.data"
expect_line 'and it says where' 'the recording has none of its events' .check

# percpu-stat: what cannot be counted is named, the row ALL is the sum of the others.
"$PROFSCRIPT" percpu-stat --syscalls --format csv -N 2 -i 100 >out 2>err
check 'ALL is the sum' awk -F, '
	NR == 1 { columns = NF; next }
	$3 == "ALL" { for (i = 4; i <= columns; i++) if ($i != sum[i]) exit bad = 1; split("", sum); all++; next }
	{ for (i = 4; i <= columns; i++) sum[i] += $i }
	END { exit bad || all != 2 }' out
check 'switches and system calls happen' awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i }
	$3 == "ALL" { if (!$at["csw"] || !$at["syscalls"]) exit 1 }' out
cut -d, -f4- out | head -n 1 | tr , '\n' | grep -c . >columns
missing=$(grep -o '[a-z_]*:[a-z_]*' err | wc -l)
expect_line 'columns and missing events are the panel' "^$((20 - missing))\$" columns
workload syscalls 30000
start percpu-stat --syscalls -p $WORKLOAD
go
wait $tracer
expect_line 'percpu-stat -p: threads' "^\[ *$WORKLOAD\] +3[0-9]{4} " out
expect_line 'percpu-stat -p: their sum' '^ *\[ALL\] +3[0-9]{4} ' out

# One read for all events of a CPU and period, and one at the end. It is known by its size: three words and
# one for each event.
"$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$read/" --format csv 'if ev.args[2] == 56 then count() end' -- \
	"$PROFSCRIPT" stat -e raw_syscalls:sys_enter,sched:sched_switch,cs,page-faults -i 20 -N 12 -o /dev/null >reads
expect_line 'one read per CPU and period' ",$((13 * $(nproc)))\$" reads
"$PROFSCRIPT" exec -e "raw_syscalls:sys_enter/id==$read/" --format csv \
	"if ev.args[2] == $(((3 + $(<columns)) * 8)) then count() end" -- \
	"$PROFSCRIPT" percpu-stat --syscalls -q -i 20 -N 12 -o /dev/null >reads
expect_line 'percpu-stat: for its whole panel, too' ",$((13 * $(nproc)))\$" reads

# Ends.
for signal in INT TERM; do
	start stat -e sched:sched_switch --format json
	sleep 0.3
	kill -$signal $tracer
	check_status "$signal ends it" 0 wait $tracer
	expect_line "what was counted until $signal" '"event":"sched:sched_switch","total":[1-9]' out
done
rm -f file
"$PROFSCRIPT" stat -e sched:sched_switch -i 50 -N 3 -o file
check '-o and -N 3: three reports' test "$(grep -c 'total' file)" -eq 3
"$PROFSCRIPT" stat -e sched:sched_switch -i 100 --duration 0.3 >out
check '--duration: three intervals' test "$(grep -c 'total' out)" -eq 3
"$PROFSCRIPT" stat >out 2>err
test $? -eq 2
result $? 'without events it says so' err
expect_line 'and how' 'no events: name some with -e' err
"$PROFSCRIPT" stat -e 'sched:sched_wakeup/pid<prio/' -N 1 >out 2>err
test $? -eq 2
result $? 'a filter that the kernel cannot evaluate' err
expect_line 'is refused' "is only counted: .* it cannot 'pid<prio'" err
check_status 'stacks of what is only counted' 2 "$PROFSCRIPT" stat -e sched:sched_switch -g -N 1
check_status 'a frequency of what is only counted' 2 "$PROFSCRIPT" stat -e cs -F 10 -N 1

# A terminal shows columns where they fit, and goes by its width when that changes.
if command -v python3 >/dev/null; then
	cat >term.py <<'PY'
import fcntl, os, pty, struct, sys, termios
def size(fd, columns): fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 24, columns, 0, 0))
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
size(fd, 100)
text, narrow = b'', False
while True:
    try:
        got = os.read(fd, 4096)
    except OSError:
        break
    if not got:
        break
    text += got
    if not narrow and text.count(b'|sched_switch') == 2:
        size(fd, 15)
        narrow = True
os.write(1, text)
PY
	python3 term.py "$PROFSCRIPT" stat -e sched:sched_switch,cs -i 200 --period 100ms -N 5 | tr -d '\r' >out
	expect_line 'columns in a terminal' '^\|sched_switch\|cs +\|$' out
	expect_line 'two periods in a column' '^\|[0-9]+ +[0-9]+ +\|[0-9]+ +[0-9]+ *\|$' out
	expect_line 'lines when it becomes narrow' '^ *sched:sched_switch +[0-9]+\| *[0-9]+ \| total [0-9]+$' out
else
	skip 'a terminal' 'python3 is not installed'
fi
