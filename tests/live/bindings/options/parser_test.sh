#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Whatever cannot work ends with one line that says what and where, and the status that tells a mistake in
# the command line (2) from one of the world (1); never with a traceback, a crash, or half an output.
. "$(dirname "$0")/../lib.sh"
here=$TOP/tests/golden
sched=$here/sched.data
switch=sched:sched_switch
cd "$TMP" || exit 1

# one_line STATUS WANT_STATUS REGEX: checks $TMP/err, appends what is wrong to $TMP/wrong
one_line() {
	[ "$1" -eq "$2" ] || echo "exit status $1, expected $2"
	head -n 1 err | grep -Eq -- "^profscript: $3" || echo "the message does not match: $3"
	grep -Eq 'stack traceback|attempt to|internal error' err && echo 'the inside shows'
	# A caret points into the line above it; a hint names the command that helps.
	awk 'NR == 1 { next }
		/^try .profscript.* -h.$/ { next }
		/^ +\^$/ && NR == 3 { next }
		/^  / && NR == 2 { next }
		{ print "more than one line" }' err
	LC_ALL=C grep -q $'[\001-\010\013-\037]' err && echo 'control characters'
}

# refused NAME STATUS REGEX ARG...: the command fails so, and prints nothing
refused() {
	local name=$1 want=$2 regex=$3 status
	shift 3
	timeout 20 "$PROFSCRIPT" "$@" >out 2>err </dev/null
	status=$?
	{
		one_line $status "$want" "$regex"
		[ -s out ] && echo 'something was printed'
	} >wrong
	[ -s wrong ] && cat err >>wrong
	[ ! -s wrong ]
	result $? "$name" wrong
}

# partly NAME STATUS REGEX OUT_REGEX ARG...: the same, but what was found until then is printed
partly() {
	local name=$1 want=$2 regex=$3 out=$4 status
	shift 4
	timeout 20 "$PROFSCRIPT" "$@" >out 2>err </dev/null
	status=$?
	{
		one_line $status "$want" "$regex"
		grep -Eq -- "$out" out || echo "no partial result matches $out"
	} >wrong
	[ -s wrong ] && cat err out >>wrong
	[ ! -s wrong ]
	result $? "$name" wrong
}

# The command line.
refused 'an unknown profiler' 2 "no profiler 'trce'; did you mean 'trace'\\?" trce
refused 'a path without file' 2 "no file './no/such.lua'" ./no/such.lua
refused 'an unknown option' 2 "trace: unknown option '--intervall'; did you mean '--interval'\\?" trace --intervall 1
refused 'an unknown global option' 2 "unknown option '--bogus'" --bogus
refused 'a control character' 2 "no profiler '.x1b\\[31mx'" $'\e[31mx'
refused 'no event' 2 'trace: no events: name some with -e' trace
refused 'a missing value' 2 "multi-trace: option '--than' needs a value" multi-trace --than
refused 'a missing argument' 2 'exec: missing LUA' exec -e $switch
refused 'a duration with a bad unit' 2 "multi-trace: option '--than': bad duration '1.5xs': unit 'xs' is none of" \
	multi-trace --than 1.5xs
refused 'no duration' 2 "trace: option '--duration': bad duration 'soon'" trace --duration soon
refused 'an interval of nothing' 2 "trace: option '-i': '0' is not a time of at least 1ms" trace -i 0
refused '-N 0' 2 "trace: option '-N': '0' is not a whole number of at least 1" trace -N 0
refused '-N 1.5' 2 "trace: option '-N': '1.5' is not a whole number" trace -N 1.5
refused '-m 3' 2 "trace: option '-m': '3' is not a power of two; the nearest are 2 and 4" trace -m 3
refused '-m 0' 2 "trace: option '-m': '0' is not a power of two from 1" trace -m 0
refused '--usage-self 0' 2 "trace: option '--usage-self': '0' is not a time of at least 1ms" trace --usage-self 0
refused '--usage-self soon' 2 "trace: option '--usage-self': bad duration 'soon'" trace --usage-self soon
refused '--usage-self of a source' 2 "bad event .*profile: --usage-self is not for a source" trace -e 'profile/--usage-self 1/'
refused '--overwrite of a source' 2 'bad event .*trace: --overwrite is not for a source' exec -e 'trace/-e sched:sched_switch --overwrite/' 'count()'
refused '--perfeval-cpus without -i' 2 'trace: --perfeval-cpus needs -i' trace --input "$sched" --perfeval-cpus 0
refused '--perfeval-pids without -i' 2 'trace: --perfeval-pids needs -i' trace --input "$sched" --perfeval-pids 1
refused '--perfeval-cpus x' 2 "trace: option '--perfeval-cpus': 'x' is not a CPU list" trace --perfeval-cpus x
refused '--perfeval-pids 0' 2 "trace: option '--perfeval-pids': '0' is not a list of positive ids" trace --perfeval-pids 0
refused '--sampling-limit 0' 2 "trace: option '--sampling-limit': '0' is not a whole number of at least 1" trace --sampling-limit 0
refused '--sampling-limit of nothing' 2 'trace: --sampling-limit needs --perfeval-cpus or --perfeval-pids' \
	trace --input "$sched" -i 1 --sampling-limit 1
refused '--perfeval-cpus of counters' 2 "stat: option '--perfeval-cpus' does not apply to this profiler" stat -e $switch --perfeval-cpus 0
refused '--period 0' 2 "trace: option '--period': '0' is not a time of at least 1ns" trace --period 0
refused '--period x' 2 "trace: option '--period': bad duration 'x'" trace --period x
refused '--lost x' 2 "trace: option '--lost': 'x' is not one of warn, error, ignore" trace --lost x
partly '--lost error' 1 'trace: lost 1274 events, and --lost=error ends the run$' 'sys_exit' trace --input "$here/lost.data" --lost error
refused '--watermark 150' 2 "trace: option '--watermark': '150' is not a whole number from 0 to 100" trace --watermark 150
refused '--format xml' 2 "trace: option '--format': 'xml' is not one of text, json, csv" trace --format xml
refused '-C x' 2 "trace: option '-C': 'x' is not a CPU list" trace -C x
refused '-C 1-0' 2 "trace: option '-C': '1-0' is not a CPU list" trace -C 1-0
refused '-p 12,0' 2 "trace: option '-p': '12,0' is not a list of processes" trace -e $switch -p 12,0
refused '-p of a name that nobody has' 1 "no such process: 'a.x1bb'" trace -e $switch -p $'a\x1bb'
refused 'a recording and a target' 2 'trace: a recording is read as it is' trace --input "$sched" -p 1
refused 'a recording and a workload' 2 'trace: a recording is read as it is' trace --input "$sched" -- true

# Events, attributes, filters, keys.
refused 'an unknown event' 2 "no such event 'sched:sched_swich'; did you mean 'sched:sched_switch'\\?" trace -e sched:sched_swich
refused 'an unknown system' 2 "no such event system 'shced'; did you mean 'sched'\\?" trace -e shced:sched_switch
refused 'an event without system' 2 "cannot trace 'sched_switch'" trace -e sched_switch
refused 'a glob without match' 2 "no event matches 'sched:nosu\\*'" trace -e 'sched:nosu*'
refused 'no event at all' 2 "bad event '': event name is missing at column 1" trace -e ''
refused 'an empty event' 2 "bad event 'sched:sched_switch,,': event name is missing at column 20" trace -e "$switch,,"
refused 'an unknown attribute' 2 "bad event .*unknown attribute 'kye' at column 21; did you mean 'key'\\?" \
	multi-trace -e $switch//kye=next_pid/
expect_line 'with a caret' '^ {22}\^$' err
refused 'an attribute for others' 2 ".*trace does not use the attribute 'key'" trace -e $switch//key=next_pid/
refused 'a field in a filter' 2 "bad filter 'prev_pdi==1': .*'prev_pdi' at column 1; did you mean 'prev_pid'\\?" \
	trace -e $switch/prev_pdi==1/
refused 'an attribute for a filter' 2 "bad filter .*'stack'.*; attributes stand behind the filter: $switch//stack/" \
	trace -e $switch/stack/
refused 'a filter that ends early' 2 "bad filter 'prev_pid==': expected a value, found the end at column 11" \
	trace -e $switch/prev_pid==/
expect_line 'with a caret' '^ {12}\^$' err
refused 'a field in --filter' 2 "bad filter 'prev_pdi==1': .*did you mean 'prev_pid'" trace -e $switch --filter prev_pdi==1
refused 'a field in a key' 2 "bad key of sched:sched_wakeup 'pdi': unknown variable 'pdi' at column 1; did you mean 'pid'\\?" \
	multi-trace -e sched:sched_wakeup//key=pdi/ -e $switch//key=next_pid/
refused 'a key that ends early' 2 "bad key of $switch 'next_pid\\+': expected a value, found the end at column 10" \
	multi-trace -e sched:sched_wakeup//key=pid/ -e $switch//key=next_pid+/
refused 'a key that one event lacks' 2 "bad key of $switch 'pid': unknown variable 'pid'" \
	multi-trace -e sched:sched_wakeup -e $switch -k pid
refused 'a key for one of two' 2 "multi-trace: sched:sched_wakeup has a key and $switch has none: they never match" \
	multi-trace -e sched:sched_wakeup//key=pid/ -e $switch
refused 'keys of two types' 2 'the key of .* is a string and that of .* is a number' \
	multi-trace -e sched:sched_wakeup//key=comm/ -e $switch//key=next_pid/
refused 'one stage' 2 'multi-trace: a latency needs two stages or more' multi-trace -e $switch
refused 'nothing traced' 2 'multi-trace: -e number 1: all of its events are untraced' \
	multi-trace -e sched:sched_wakeup//untraced/ -e $switch

# One-liners.
refused 'Lua that does not parse' 2 "exec: exec:1: unexpected symbol near '='" exec -e $switch 'x = = 1'
refused 'Lua that does not end' 2 "exec: exec:.*'end' expected" exec -e $switch 'if true then'
refused 'too many keys' 2 'exec: line 1: count takes 0 to 4 arguments' exec -e $switch 'count(1,2,3,4,5)'
refused 'a field in Lua' 1 "exec:1: event $switch has no field 'prev_pdi'; did you mean 'prev_pid'" \
	exec -e $switch 'count(ev.prev_pdi)'
refused 'an undeclared name' 1 "exec:1: undeclared global 'coun'" exec --input "$sched" 'coun(1)'
refused 'a name that is computed' 1 "exec:1: event .* has no field 'x1'" exec --input "$sched" 'local n = "x" .. 1  print(ev[n])'
refused 'a key that is none' 1 'exec:1: a table cannot be a key' exec --input "$sched" 'count({})'
refused 'a sum of text' 1 'exec:1: sum takes numbers, not a string' exec --input "$sched" 'sum("a")'
refused 'a histogram of nothing' 1 'exec:1: hist takes numbers, not a nil' exec --input "$sched" 'hist(nil)'
partly 'an error in between' 1 'exec:1: boom$' '^ +48$' exec --input "$sched" 'count() if ev._time > 7.6e6 then error("boom") end'

# Scripts.
script() {
	printf '%s\n' "$2" >"$TMP/$1.lua"
}
start() {
	script "$1" "return { summary = 's', start = function(opt, out) $2 end }"
}
script syntax $'return {\n  summary = "s"\n  start = 1,\n}'
refused 'a syntax error' 2 "./syntax.lua:3: '}' expected" ./syntax.lua
script number 'return 42'
refused 'no table' 2 './number.lua: the file returns a number, not a table' ./number.lua
script nostart 'return { summary = "s" }'
refused 'no start' 2 "./nostart.lua: 'start' is missing" ./nostart.lua
script badstart 'return { summary = "s", start = 3 }'
refused 'a start that is none' 2 "./badstart.lua: 'start' is a number, not a function" ./badstart.lua
script typo 'return { sumary = "s", start = function() end }'
refused 'an unknown key' 2 "./typo.lua: unknown key 'sumary'; did you mean 'summary'" ./typo.lua
script badopt 'return { summary = "s", options = { a = { type = "intger", help = "" } }, start = function() end }'
refused 'an unknown type' 2 "./badopt.lua: option 'a': unknown type 'intger'; did you mean 'integer'" ./badopt.lua
script global 'x = 1'
refused 'a global' 2 "./global.lua:1: assignment to undeclared global 'x'" ./global.lua
script raises 'error "at load"'
refused 'an error at load' 2 './raises.lua:1: at load' ./raises.lua
script needs 'return require "nosuch"'
refused 'a missing module' 2 "./needs.lua:1: module 'nosuch' not found|./needs.lua: module 'nosuch' not found" ./needs.lua
printf '\033LJ\002' >bytecode.lua
refused 'bytecode' 2 './bytecode.lua: is bytecode; scripts are text' ./bytecode.lua
start loose 'return {}'
chmod o+w loose.lua
refused 'a file that anyone may write' 2 './loose.lua: refused, anyone may write it' ./loose.lua
mkdir dir.lua
refused 'a directory' 2 "no file './dir.lua'" ./dir.lua
start nothing ''
refused 'start returns nothing' 1 './nothing.lua:1: start returned a nil, not a table of handlers' ./nothing.lua
start seven 'return 7'
refused 'start returns a number' 1 './seven.lua:1: start returned a number' ./seven.lua
start event "return { ['sched:sched_swich'] = function() end }"
refused 'a handler of no event' 1 "./event.lua:1: no event 'sched:sched_swich'; did you mean" ./event.lua
start life 'return { intervall = function() end }'
refused 'a handler of nothing' 1 "./life.lua:1: unknown handler 'intervall'; did you mean 'interval'" ./life.lua
start nofunction "return { ['$switch'] = 3 }"
refused 'a handler that is none' 1 "./nofunction.lua:1: handler '$switch' is a number, not a function" ./nofunction.lua
start field "return { ['$switch'] = function(ev) return ev.next_pdi end }"
refused 'a field in a handler' 1 "./field.lua:1: event $switch has no field 'next_pdi'; did you mean 'next_pid'" ./field.lua
start instart 'error "in start"'
refused 'an error in start' 1 './instart.lua:1: in start' ./instart.lua
start refuses 'return nil, "say what"'
refused 'start refuses' 2 'refuses: say what$' ./refuses.lua
start throws "local n = 0 return { ['$switch'] = function(ev) n = n + 1 if n == 10 then
error('boom') end end, stop = function() out:printf('%d seen\n', n) end }"
partly 'a handler that throws' 1 './throws.lua:2: boom' '^10 seen$' ./throws.lua --input "$sched"
"$PROFSCRIPT" ./throws.lua -v --input "$sched" >out 2>err
expect_line '-v shows where from' '^stack traceback:' err
start stops "return { ['$switch'] = function() end, stop = function() out:write('part\n') error('late') end }"
partly 'a stop that throws' 1 './stops.lua:1: late' '^part$' ./stops.lua --input "$sched"

# Recordings.
refused 'no such file' 1 '/nonexistent: No such file or directory' trace --input /nonexistent
refused 'text' 1 '/etc/passwd: no perf recording' trace --input /etc/passwd
refused 'an empty file' 1 '/dev/null: no perf recording .empty.' trace --input /dev/null
refused 'an empty pipe' 1 'standard input: no perf recording .empty.' trace --input -
refused 'a directory as recording' 1 '/tmp: no perf recording .a directory.' trace --input /tmp
refused 'an event that a profiler needs' 2 "oncpu: the recording has no event system 'sched'" \
	oncpu --input "$TOP/tests/golden/syscalls.data"
refused 'an event it does not have' 2 "trace: the recording has no event system 'irq'" trace -e irq:irq_handler_entry --input "$sched"

# Cut anywhere: what is there is printed, it is a beginning of the whole (but for the wall time, which
# may be cut off), and one line says so.
no_wall='s/^[0-9][-0-9]* [0-9:.]*  //'
for data in sched syscalls zstd pipe lost; do
	"$PROFSCRIPT" trace --input "$here/$data.data" -q | sed "$no_wall" >whole
	size=$(stat -c %s "$here/$data.data")
	: >wrong
	for part in 1 3 7 9 13 17 23 31 41 53 61 71 79 83 89 97 99; do
		at=$((size * part / 100 | 1)) # odd: within a record
		head -c $at "$here/$data.data" >cut.data
		timeout 20 "$PROFSCRIPT" trace --input cut.data -q >printed 2>err
		one_line $? 1 'cut.data: ' >this
		sed "$no_wall" printed >out
		head -c "$(stat -c %s out)" whole | cmp -s - out || echo 'not a beginning of the whole' >>this
		[ -s this ] && { echo "cut at $at:"; cat this err; } >>wrong
	done
	[ ! -s wrong ]
	result $? "$data.data, cut anywhere" wrong
done
head -c $(($(stat -c %s "$here/pipe.data") * 90 / 100 | 1)) "$here/pipe.data" >cut.data
partly 'a pipe cut near its end' 1 'cut.data: ends inside a record' 'sys_enter: NR 12 ' trace --input cut.data

# Output.
refused '-o into nowhere' 1 "cannot open '/no/dir/file': No such file" trace --input "$sched" -o /no/dir/file
refused '-o onto a directory' 1 "cannot open '/': Is a directory" trace --input "$sched" -o /
refused '-o on a full device' 1 "cannot write '/dev/full': No space left" trace --input "$sched" -o /dev/full

# From here on the kernel is asked.
needs_tracepoint sched:sched_switch raw_syscalls:sys_enter
sleep 0 &
dead=$!
wait $dead
refused 'a dead process' 1 "no such process: $dead" trace -e $switch -p $dead
refused 'a dead thread' 1 "no such thread: $dead" trace -e $switch -t $dead
refused 'a cpu that is not there' 1 'CPU 99 is not online; .* 0' trace -e $switch -C 0,99
refused '--perfeval-pids of a dead process' 1 "trace: --perfeval-pids: no such process: $dead" trace -e $switch -i 1 --perfeval-pids $dead
refused '--perfeval-cpus of no cpu' 1 'trace: --perfeval-cpus: CPU 99 is not online; .* 0' trace -e $switch -i 1 --perfeval-cpus 0,99
refused 'no such program' 1 "cannot execute '/no/such/program': No such file" trace -e $switch -- /no/such/program
refused 'a program that is none' 1 "cannot execute '/etc/passwd': Permission denied" trace -e $switch -- /etc/passwd

# under WORLD NAME ...: refused, run by a wrapper
printf '#!/bin/sh\nexec setpriv --bounding-set -perfmon,-sys_admin,-sys_ptrace "%s" "$@"\n' "$PROFSCRIPT" >nocaps
printf '#!/bin/sh\nulimit -v %s; exec "%s" "$@"\n' 1000000 "$PROFSCRIPT" >nomemory
printf '#!/bin/sh\nulimit -n 6; exec "%s" "$@"\n' "$PROFSCRIPT" >nofiles
printf '#!/bin/sh\nexec unshare -m sh -c '\''mount -t tmpfs none /sys/kernel && exec "$@"'\'' - "%s" "$@"\n' "$PROFSCRIPT" >notracefs
chmod +x nocaps nomemory nofiles notracefs
under() {
	local world=$1 real=$PROFSCRIPT
	shift
	PROFSCRIPT=$TMP/$world
	refused "$@"
	PROFSCRIPT=$real
}
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
	under nocaps 'no permission' 1 "no permission to open $switch: run as root or with CAP_PERFMON" trace -e $switch -N 1
else
	skip 'no permission' 'kernel.perf_event_paranoid allows everything'
fi
under nomemory 'a ring without memory' 1 'cannot map rings of 262144 pages: Cannot allocate memory' trace -e $switch -m 262144
under nofiles 'no descriptors' 1 '[0-9]+ file descriptors are needed but only 6 are allowed' trace -e $switch -N 1
under notracefs 'no tracefs' 1 'tracefs is not mounted; mount it with: mount -t tracefs' trace -e $switch -N 1

# Somebody else, who may read no tracefs.
chmod 755 "$TMP"
cp -r "$TOP/bindings" "$TOP/scripts" "$PROFSCRIPT" "$TMP" 2>/dev/null
printf '#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups "%s/profscript" "$@"\n' "$TMP" >nobody
chmod +x nobody
if ! ./nobody -h >/dev/null 2>&1; then
	skip 'as nobody' 'setpriv cannot become nobody'
elif setpriv --reuid 65534 --regid 65534 --clear-groups cat /sys/kernel/tracing/events/sched/sched_switch/id >/dev/null 2>&1; then
	under nobody 'as nobody' 1 "no permission to open $switch" trace -e $switch -N 1
else
	under nobody 'as nobody' 1 'tracefs is not readable for this user' trace -e $switch -N 1
fi

# A task's name is shown, not obeyed.
for format in text json csv; do
	"$PROFSCRIPT" trace -m 512 -e raw_syscalls:sys_exit --format $format -- \
		bash -c 'printf "\033[31mX\n" >/proc/$$/comm; kill -0 $$' >out 2>err
	LC_ALL=C grep -q $'\033' out
	check "$format: no escape character of a task's name" test $? -ne 0
	expect_line "$format: its name" 'x1b\[31mX|u001b\[31mX' out
done
