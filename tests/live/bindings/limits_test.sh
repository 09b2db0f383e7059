#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# A script that does not return ends after Ctrl-C: interpreted code with its line and results, compiled code at once.
# Nothing is left in the kernel.
. "$(dirname "$0")/../../lib.sh"
sched=$DATA/sched.data
uprobes=/sys/kernel/tracing/uprobe_events
cd "$TMP" || exit 1

# loop NAME BODY [STOP]: a script whose handler reports that it has started
loop() {
	printf '%s\n' "return { summary = 's', start = function(opt, out)" 'local n = 0' \
		"return { [opt.event] = function() if n == 0 then out:print('begun') out:flush() end n = n + 1" "$2" \
		"end, stop = function() out:print('printed') ${3-} end } end }" >"$1.lua"
}
loop interpreted 'while true do local f = function() return n end f() end'
loop compiled 'while true do n = n + 1 end'
loop calls 'local h = require("lib.hist").new() while true do h:add(n) end'
loop catches 'while true do pcall(function() while true do local f = function() return n end f() end end) end'
loop returns '' "out:flush() while true do n = n + 1 end"

cpu_ticks() { awk '{ print $14 + $15 }' /proc/$pid/stat; }

# begin ARG...: starts it, and waits until its handler has started
begin() {
	rm -f out
	"$PROFSCRIPT" "$@" >out 2>err &
	pid=$!
	wait_for 20 grep -q begun out
}

# again: a second Ctrl-C, later than a double press. Once the first one has been handled, the process is stopped: it does
# not get further, however long this takes.
again() {
	local ticks
	ticks=$(cpu_ticks)
	wait_for 20 eval "[ \$(cpu_ticks) -gt $((ticks + 2)) ]"
	kill -STOP $pid
	sleep 0.4
	kill -INT $pid
	kill -CONT $pid
}

# ended NAME STATUS SECONDS: it exits with this status, and has taken at most SECONDS of CPU time. The limits are such
# times, so a busy machine changes only when they are reached.
ended() {
	local status seconds
	times >before
	wait $pid
	status=$?
	times >after
	seconds=$(awk -F '[ms ]+' 'FNR == 2 { n = 60 * ($1 + $3) + $2 + $4 - n } END { print int(n) }' before after)
	{
		[ $status -eq "$2" ] || echo "exit status $status, expected $2"
		[ "$seconds" -le "$3" ] || echo "it took $seconds s of CPU time"
	} >wrong
	[ -s wrong ] && cat err >>wrong
	[ ! -s wrong ]
	result $? "$1" wrong
}

begin ./interpreted.lua --input "$sched"
kill -INT $pid
ended 'an interpreted loop ends after Ctrl-C' 1 15
expect_line 'at its line' '^profscript: ./interpreted.lua:4: the script does not return; interrupted$' err
expect_line 'with its results' '^printed$' out

begin ./compiled.lua --input "$sched"
kill -INT $pid
ended 'a compiled loop ends after Ctrl-C' 1 20
expect_line 'and says why and where' '^profscript: ./compiled.lua:[0-9]+: the script does not return; terminated without results$' err

begin ./calls.lua --input "$sched"
kill -INT $pid
ended 'one that calls C most of the time ends' 1 30
expect_line 'like one that does not' '^profscript: ./[a-z]*.lua:[0-9]*: the script does not return; terminated' err

begin ./catches.lua --input "$sched"
kill -TERM $pid
ended 'a loop that catches errors ends' 1 30
expect_line 'like a compiled one' '^profscript: .*the script does not return; terminated' err

begin ./compiled.lua --input "$sched"
kill -INT $pid
again
ended 'the second Ctrl-C ends it at once' 130 5

begin ./returns.lua --input "$sched"
wait_for 20 grep -q printed out
kill -INT $pid
again
ended 'also in the handler stop' 130 5

loop stops '' "out:flush() while true do local f = function() return n end f() end"
begin ./stops.lua --input "$sched"
wait_for 20 grep -q printed out
kill -INT $pid
ended 'the first Ctrl-C in the handler stop' 1 20
expect_line 'at its line' '^profscript: ./stops.lua:[0-9]*: the script does not return; interrupted$' err

# A handler that works for a long time but returns is not interrupted, nor is one that waits.
loop works 'local t = os.clock() while os.clock() - t < 0.01 do n = n + 1 end'
begin ./works.lua --input "$sched" -N 20
kill -INT $pid
ended 'handlers that return are not interrupted' 0 15
expect_line 'with their results' '^printed$' out
loop waits "io.popen('sleep 3'):read '*a'"
begin ./waits.lua --input "$sched" -N 1
kill -INT $pid
ended 'nor is one that waits' 0 15
expect_line 'with its results' '^printed$' out

# What the interpreter and the compiler cannot interrupt: Lua's own functions, also one that the host wraps, another
# coroutine, a call that waits.
loop pattern "string.find(('a'):rep(40000), ('a*'):rep(20) .. 'b')"
loop coroutine 'coroutine.wrap(function() while true do n = n + 1 end end)()'
loop wrapped "while true do local _ = ('a'):rep(1e6):gsub('a', 'b') end"
loop reads "local f = io.open 'fifo' while true do local _ = f:read(1) end"
mkfifo fifo
sleep 100 >fifo &
writer=$!
for signal in INT TERM; do
	for name in pattern coroutine wrapped reads; do
		begin ./$name.lua --input "$sched"
		kill -$signal $pid
		ended "$name ends after SIG$signal" 1 10
		expect_line 'at its line' "^profscript: ./$name.lua:4: the script does not return; (interrupted|terminated)" err
	done
done
kill $writer

needs_tracepoint sched:sched_switch
begin ./interpreted.lua -e sched:sched_switch --duration 0.5
ended '--duration ends an interpreted loop' 1 20
expect_line 'at its line' '^profscript: ./interpreted.lua:4: the script does not return' err
begin ./compiled.lua -e sched:sched_switch --duration 0.5
ended '--duration ends a compiled loop' 1 20

if [ ! -w $uprobes ]; then
	skip 'probes are removed' 'no uprobes in tracefs'
	exit
fi
probe='uprobe:malloc@libc.so.6(bytes=%di)'
for kind in interpreted compiled; do
	begin ./$kind.lua -m 16 -e "$probe"
	check "$kind: there is a probe" grep -q "profscript_${pid}_" $uprobes
	kill -INT $pid
	ended "$kind: Ctrl-C ends the loop" 1 20
	check "$kind: the probe is gone" test "$(grep -c "profscript_${pid}_" $uprobes)" -eq 0
done
begin ./compiled.lua -m 16 -e "$probe"
kill -INT $pid
again
ended 'a second Ctrl-C with a probe' 130 10
check 'the probe is gone' test "$(grep -c "profscript_${pid}_" $uprobes)" -eq 0
