#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# How a run starts and ends: signals, the end of its targets, -N, --duration, readers that go away, full disks. It
# leaves nothing behind and its memory stays small.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
count=(exec -m 1024 -e sched:sched_switch --format csv 'count()')

# ends_by SIGNAL STATUS
ends_by() {
	kill -"$1" $tracer
	wait $tracer
	[ $? -eq "$2" ]
	result $? "$1 ends it with status $2" "$TMP/err"
}

for signal in INT TERM HUP; do
	start "${count[@]}"
	ends_by $signal 0
	expect_line 'the last table is printed' '^count\(\),[0-9.]+,[1-9][0-9]*$' "$TMP/out"
done

# Two at once are one request: timeout(1) sends its signal to its child and to the child's process group.
start "${count[@]}"
kill -INT $tracer
ends_by INT 0
expect_line 'two SIGINT at once are one' '^count\(\),[0-9.]+,[1-9][0-9]*$' "$TMP/out"

# The second signal kills: the first one cannot stop a handler that does not return.
cat >"$TMP/stuck.lua" <<'END'
return { summary = 'never returns', start = function()
  return { ['sched:sched_switch'] = function() while true do end end }
end }
END
"$PROFSCRIPT" "$TMP/stuck.lua" 2>"$TMP/err" &
tracer=$!
stuck() { [ "$(awk '{ print $14 + $15 }' /proc/$tracer/stat)" -gt 30 ]; } # ticks of CPU time
wait_for 20 stuck
kill -INT $tracer
handled=$(awk '{ print $14 + $15 + 2 }' /proc/$tracer/stat)
went_on() { [ "$(awk '{ print $14 + $15 }' /proc/$tracer/stat)" -gt "$handled" ]; }
wait_for 20 went_on
kill -STOP $tracer # it does not get further, however long this takes
sleep 0.3
check 'one SIGINT waits for the handler' kill -0 $tracer
kill -INT $tracer
kill -CONT $tracer
wait $tracer 2>/dev/null
test $? -eq 130
result $? 'a second SIGINT kills'

# Runs that end by themselves.
check_status '-N ends it' 0 timeout 20 "$PROFSCRIPT" trace -e sched:sched_switch -N 3
"$PROFSCRIPT" trace -e sched:sched_switch -N 3 >"$TMP/out"
check '-N 3 prints three lines' test "$(wc -l <"$TMP/out")" -eq 3
begin=$(date +%s%N)
check_status '--duration ends it' 0 timeout 20 "$PROFSCRIPT" "${count[@]}" --duration 0.5
check '--duration 0.5 takes at least that' test $(($(date +%s%N) - begin)) -ge 500000000
for attach in -p -t; do
	sleep 1000 &
	target=$!
	start "${count[@]}" $attach $target
	kill $target
	check_status "the end of $attach ends it" 0 wait $tracer
done
sleep 1000 &
first=$!
sleep 1000 &
last=$!
start "${count[@]}" -p $first,$last
kill $first
sleep 0.3
check 'the end of the first of -p does not end it' kill -0 $tracer
kill $last
check_status 'the end of all of them does' 0 wait $tracer
check_status 'the end of the workload ends it' 0 timeout 20 "$PROFSCRIPT" "${count[@]}" -- sleep 0.2
check_status "the workload's status is ours" 7 timeout 20 "$PROFSCRIPT" "${count[@]}" -- sh -c 'exit 7'
check_status 'so is the signal that ends it' 143 timeout 20 "$PROFSCRIPT" "${count[@]}" -- sh -c 'kill $$'

# A run that only counts waits for the end of its interval, but also sees everything else that ends it.
counts=(stat -e context-switches -i 100000)
start "${counts[@]}"
waits() { awk '/^voluntary/ { print $2 }' /proc/$tracer/status; }
naps() { # other wakeups, such as for news about devices, are rare
	local before
	before=$(waits)
	sleep 1
	[ $(($(waits) - before)) -le 3 ]
}
check 'a run that only counts waits for its interval' wait_for 20 naps
kill -USR2 $tracer
check 'SIGUSR2 is answered meanwhile' wait_for 20 grep -q '^target: all online CPUs$' "$TMP/err"
ends_by TERM 0
for attach in -p -t; do
	sleep 1000 &
	target=$!
	start "${counts[@]}" $attach $target
	kill $target
	check_status "the end of $attach ends its counts" 0 wait_for 20 bash -c "! kill -0 $tracer"
	wait $tracer
done
check_status 'the end of the workload ends its counts' 0 timeout 20 "$PROFSCRIPT" "${counts[@]}" -- sleep 0.2
check_status '--duration ends counts' 0 timeout 20 "$PROFSCRIPT" "${counts[@]}" --duration 0.2

# A table after each interval with events, with the time of its end, and one at the end.
"$PROFSCRIPT" "${count[@]}" -i 100 --duration 1.05 >"$TMP/out"
awk -F, '/^count/ {
		if (n > 1 && (d < 0.9 || d - int(d + 0.5) > 0.001 || int(d + 0.5) - d > 0.001)) { print "after " d / 10 " s"; bad = 1 }
		d = ($2 - last) * 10
		last = $2
		n++
	} END { print n " tables"; exit bad || n < 2 || n > 11 }' "$TMP/out" >"$TMP/tables"
result $? 'the tables are multiples of 100 ms apart' "$TMP/tables"

# Nothing is left behind.
# shellcheck disable=SC2016 # sh expands it
start "${count[@]}" -- sh -c 'echo $$ >"$0"; exec sleep 1234' "$TMP/pid"
wait_for 20 grep -q sleep "/proc/$(<"$TMP/pid")/comm"
child=$(<"$TMP/pid")
check 'the workload runs' test "$(cat "/proc/$child/comm")" = sleep
stop
gone() { ! [ -e /proc/$child ]; }
check 'it ends with the tracer and is not a zombie' wait_for 5 gone
# bash calls getppid(2) too, when it starts.
timeout 20 "$PROFSCRIPT" trace -e "raw_syscalls:sys_enter/id==$GETPPID&&comm==\"syscalls\"/" -N 1 -- \
	bash -c 'sleep 4321 & echo $$ $! >"$1"; "$0" 1; wait' "$TOP/build/workloads/syscalls" "$TMP/pids" >/dev/null 2>&1
read -r child grandchild <"$TMP/pids"
check 'nor does it run on after -N' wait_for 5 gone
kill "$grandchild" # the workload's child belongs to the workload

# A reader that goes away is not an error.
timeout 20 "$PROFSCRIPT" trace -e sched:sched_switch 2>"$TMP/err" | head -n 1 >"$TMP/out"
status=("${PIPESTATUS[@]}")
check 'head -n 1 ends it' test "${status[0]}" -eq 0
check 'it says nothing about that' test ! -s "$TMP/err"
check 'head has its line' test "$(wc -l <"$TMP/out")" -eq 1
timeout 20 "$PROFSCRIPT" trace -e sched:sched_switch -N 5 >&- 2>"$TMP/err"
check 'a closed stdout is an error' test $? -eq 1
expect_line 'that says so' 'cannot write the output: Bad file descriptor' "$TMP/err"

# -o also gets the warnings, and SIGUSR1 reopens the file.
start "${count[@]}" -v -i 100 -o "$TMP/log"
rows() { [ "$(grep -c ^count "$1" 2>/dev/null)" -ge 2 ]; }
wait_for 20 rows "$TMP/log"
mv "$TMP/log" "$TMP/log.1"
kill -USR1 $tracer
check 'SIGUSR1 reopens the file of -o' wait_for 20 rows "$TMP/log"
stop
cp "$TMP/err" "$TMP/err.csv"
text=(exec -v -m 1024 -e sched:sched_switch 'count()' --duration 0.1 -o "$TMP/text")
"$PROFSCRIPT" "${text[@]}" >"$TMP/out" 2>"$TMP/err"
check 'all messages are in the file of -o' test ! -s "$TMP/out" -a ! -s "$TMP/err"
expect_line 'the warnings are there' '^profscript: [0-9]+ events, 0 lost, [0-9]+ late$' "$TMP/text"
expect_line 'with the table' '^count$' "$TMP/text"
check 'a table of CSV has no warnings' bash -c '! grep -v "^table,\|^count" "$0"' "$TMP/log"
expect_line 'they are on stderr' '^profscript: [0-9]+ events' "$TMP/err.csv"
mkdir "$TMP/dir"
start trace -e sched:sched_switch -o "$TMP/dir/log"
wait_for 20 test -s "$TMP/dir/log"
mv "$TMP/dir" "$TMP/moved"
kill -USR1 $tracer
check 'a file that cannot be opened anew is told on stderr' wait_for 20 grep -q "^profscript: cannot open '$TMP/dir/log'" "$TMP/err"
stop

# SIGUSR1 and SIGUSR2 do not kill, even before a run begins.
mkfifo "$TMP/lua"
"$PROFSCRIPT" --lua "$TMP/lua" &
tracer=$!
exec {lua}>"$TMP/lua" # returns when profscript opens it
kill -USR1 $tracer
kill -USR2 $tracer
exec {lua}>&-
check_status 'SIGUSR1 and SIGUSR2 before the run' 0 wait $tracer

# SIGUSR2 prints the status, and the run continues.
start "${count[@]}" --json
kill -USR2 $tracer
check 'SIGUSR2 is answered' wait_for 20 grep -q '^profscript: [0-9]* events, [0-9]* lost, [0-9]* late$' "$TMP/err"
expect_line 'with its CPU and memory use' ' CPU %usr [0-9.]+ %sys [0-9.]+ MAXRSS [0-9]+k, since [0-9.]+ s$' "$TMP/err"
expect_line 'and what is traced' '^target: all online CPUs$' "$TMP/err"
stop
check 'and the run continues' test $? -eq 0
expect_line 'to its report' '^[{]"table":' "$TMP/out"

# A full disk is one line and status 1.
for where in '-o /dev/full' ''; do
	# shellcheck disable=SC2086 # an option and its value
	timeout 20 "$PROFSCRIPT" trace -e sched:sched_switch -N 50 $where >/dev/full 2>"$TMP/err"
	check "a full device ${where:-on stdout} is status 1" test $? -eq 1
	check 'and one line' test "$(wc -l <"$TMP/err")" -eq 1
	expect_line 'that says why' '^profscript: cannot write .*: No space left on device$' "$TMP/err"
done

# Memory does not grow with events: 1 M of them, and 4 M.
"$TOP/build/workloads/syscalls" 1000000000 >/dev/null &
load=$!
"$PROFSCRIPT" multi-trace -m 256 -v -i 100 -e raw_syscalls:sys_enter -e raw_syscalls:sys_exit -k common_pid --perins \
	-p $load >"$TMP/out" 2>"$TMP/err" &
tracer=$!
calls() { awk '$3 == "sys_enter" || $2 == "sys_enter" { for (i = 1; i <= NF; i++) if ($i == "sys_exit") sum += $(i + 1) }
	END { print sum + 0 }' "$TMP/out"; }
made() { [ "$(calls)" -ge "$1" ]; }
rss() { awk '/VmRSS/ { print $2 }' /proc/$tracer/status; }
wait_for 30 made 500000
small=$(rss)
wait_for 60 made 2000000
large=$(rss)
kill $load
wait $tracer
check 'four times as many pairs take no more memory' test "$large" -le $((small + small / 5 + 2048))
echo "$small KiB, $large KiB, $(calls) pairs" >"$TMP/n"
expect_line 'enough pairs were seen' '[0-9]{7} pairs' "$TMP/n"

# The rings are read in time even if all CPUs are busy: short time slices, or a real-time priority that children lack.
start trace -e sched:sched_process_exec
if [ "$(uname -r | awk -F. '{ print $1 * 100 + $2 }')" -ge 612 ] && grep -q '^se.slice' /proc/$tracer/sched 2>/dev/null; then
	expect_line 'the time slices are short' '^se.slice +: +100000$' /proc/$tracer/sched
else
	skip 'the time slices are short' 'se.slice that a process may choose (6.12, CONFIG_SCHED_DEBUG)'
fi
stop
if chrt -f 7 true 2>/dev/null; then
	"$PROFSCRIPT" trace -q -e sched:sched_process_exec --realtime 7 -- sh -c 'chrt -p $PPID; chrt -p $$' \
		>"$TMP/out" 2>"$TMP/err"
	expect_line '--realtime is a priority of SCHED_FIFO' 'scheduling policy: SCHED_FIFO' "$TMP/out"
	expect_line 'the requested one' 'scheduling priority: 7$' "$TMP/out"
	expect_line 'the workload keeps its own' 'scheduling policy: SCHED_OTHER$' "$TMP/out"
	setpriv --bounding-set=-sys_nice --inh-caps=-sys_nice "$PROFSCRIPT" trace -e sched:sched_process_exec -r 1 -N 1 \
		>"$TMP/out" 2>"$TMP/err"
	check '--realtime without the permission is status 3' test $? -eq 3
	expect_line 'and names the missing permission' '^profscript: --realtime 1: .*CAP_SYS_NICE$' "$TMP/err"
else
	skip '--realtime' 'chrt -f, real-time scheduling'
fi
check_status '--realtime 100 is a usage error' 2 "$PROFSCRIPT" trace -e sched:sched_switch -r 100
