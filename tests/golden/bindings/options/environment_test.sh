#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# No script breaks the host: what it must not do ends it with one line that has its own file and line, never
# with a crash; and what it changes of its globals is its own.
. "$(dirname "$0")/../../../lib.sh"

sched=$DATA/sched.data
cd "$TMP" || exit 1

# script TEXT: a script whose start() is TEXT
script() {
	printf '%s\n' "local array, hist, pairs_of = require 'lib.array', require 'lib.hist', require 'lib.pairs'" \
		"return { summary = 's', options = { top = { type = 'integer', help = 'rows' } }," \
		"start = function(opt, out, session)" "local _ = array, hist, pairs_of" "$1" 'end }' >s.lua
}

# ends NAME REGEX TEXT [ARG...]: the script ends with this line, which names line 5 of it; want=2: before it begins
ends() {
	local name=$1 regex=$2 status
	script "$3"
	shift 3
	timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" "$@" >out 2>err </dev/null
	status=$?
	{
		[ $status -eq "${want:-1}" ] || echo "exit status $status, expected ${want:-1}"
		grep -Eq -- "^profscript: ./s.lua:5: $regex" err || echo "the message does not match: $regex"
		[ "$(wc -l <err)" -eq 1 ] || echo 'more than one line'
	} >wrong
	[ -s wrong ] && cat err >>wrong
	[ ! -s wrong ]
	result $? "$name" wrong
}

# in_handler NAME REGEX TEXT: the same of a handler of sched_switch
in_handler() {
	ends "$1" "$2" "return { ['sched:sched_switch'] = function(ev) $3 end }"
}

# Everything with garbage.
for data in sched hogs mixed; do
	"$PROFSCRIPT" "$HERE/garbage.lua" --top "$TOP" --input "$DATA/$data.data" >/dev/null 2>err
	result $? "garbage, $data.data" err
	expect_line 'all of it was called' 'called enough|[0-9]{4} calls' err
done
"$PROFSCRIPT" "$HERE/garbage.lua" --top "$TOP" --input - -e raw_syscalls:sys_enter,raw_syscalls:sys_exit <"$DATA/pipe.data" >/dev/null 2>err
result $? 'garbage, a pipe whose chunks are gone at the end' err

# Data structures.
ends 'an array beyond its end' 'index 1000000000 is outside of the array, which has elements 0 to 3' 'array.new(4)[1e9] = 1'
ends 'below its start' 'index -1 is outside of the array' 'return array.new(4)[-1]'
ends 'an index that is no number' "index 'x' is outside of the array" "return array.new(4).x + array.new(4)['x']"
ends 'a text in an array' "an array holds numbers, not 'x'" "array.new(4)[0] = 'x'"
ends 'too large an array' 'array.new takes the number of elements, a whole number from 1 to 2147483647, not 10000000000000' 'array.new(1e13)'
ends 'a histogram of nothing' 'hist:add takes a number, not nil' 'hist.new():add(nil)'
ends 'a dot for a colon' 'hist:add is a method: call it with a colon, not with nil' 'hist.new().add(nil, 5)'
ends 'a histogram that is not in its set' 'there is no histogram number 3' 'hist.set(3):add(3, 1)'
ends 'slots beyond their end' 'slot 4 is outside of 0..3' 'session.slots(4):put(4, 1)'
ends 'a negative slot' 'slot -1 is outside of 0..3' 'session.slots(4):get(-1)'
ends 'no slots' 'session.slots takes the number of slots, a whole number from 1 to [0-9]+, not -1' 'session.slots(-1)'
ends 'a slot of nothing' 'slots:put takes an event, not nil' 'session.slots(4):put(1, nil)'

# Functions that take an event.
in_handler 'an event that is nil' 'out:print_event takes an event, not nil' 'out:print_event(nil)'
in_handler 'a number' 'out:print_event takes an event, not a number' 'out:print_event(5)'
in_handler 'a text' 'out:print_event takes an event, not a string' "out:print_event('x')"
in_handler 'an empty slot' 'out:print_event takes an event, not nil' 'out:print_event(session.slots(4):get(1))'
in_handler 'an address of no event' 'session.address takes an event, not nil' 'session.address(nil, 5)'
in_handler 'registers of no event' 'session.registers takes an event, not nil' "session.registers(nil, 'regs_user')"
in_handler 'a stack that is nil' 'session.frames takes a stack, such as ev._stack, not nil' 'session.frames(nil)'
in_handler 'a method with a dot' 'ev:keep takes an event, not nil' 'ev.keep(nil)'
in_handler 'a plain pointer' "event sched:sched_switch has no field '_raw'" "local name = '_raw' return ev[name][1e9]"
in_handler 'events behind an event' 'size of C type is unknown' 'return ev[1e9]._cpu'
in_handler 'an event changed' 'events cannot be changed' 'ev._time = 5'
ends 'an event of its own time, in stop' 'out:print_event: the event is gone' \
	"local last return { ['sched:sched_switch'] = function(ev) last = last or ev end, stop = function() out:print_event(last) end }"
ends 'a warning that is no text' 'out:warn takes a line, a string, not a table' 'out:warn {}'
ends 'an expression of another event' 'the expression is of sched:sched_switch, which this event is not' \
	"local e = session.expression(session.event { 'sched:sched_switch' }, 'next_pid') return { ['sched:sched_wakeup'] = function(ev) e.value(ev) end }"
ends 'a pair that is none' 'what shows details takes a pair, not a number' \
	"local d = require('lib.detail').new({ before = 0, after = 0, hide = 0 }, { out = out, session = session }) return { pairs_of.new { stages = opt.event, cycle = true, details = d, pair = function(_, second) d:show(5, second) end } }"
ends 'a directory that is nil' 'fs.list takes a path, a string, not nil' "require('lib.fs').list(nil)"
ends 'counts of no row' 'counts:get takes the number of a row, from 1 to 0, not 1000000000' 'session.count({ opt.event }):get(1e9, 1)'

# What is asked for is asked for, not written.
ends 'an option written' 'opt.call_graph cannot be set' 'opt.call_graph = true'
ends 'an option misspelt' "there is no option 'tpo'; did you mean 'top'" 'return opt.tpo'
ends 'an event written' 'events are read only: event:set\(\)' 'opt.event[1][1].filter = 5'
ends 'a field of events that there is none of' "events have no 'nam'; did you mean 'name'" 'return opt.event[1][1].nam'
ends 'an unknown setting' "event:set: unknown setting 'fliter'; did you mean 'filter'" "opt.event[1][1]:set { fliter = 'x' }"
ends 'an unknown want' "session.want: there is no 'stack'; did you mean 'stacks'" 'session.want { stack = true }'
ends 'a want too late' 'session.want is for start\(\)' \
	"return { ['sched:sched_switch'] = function() session.want { stacks = true } end }"
ends 'a member of the session' "session has no 'tsak_name'; did you mean 'task_name'" 'return session.tsak_name'
ends 'a library changed' 'lib.array cannot be changed' 'array.new = 5'
ends 'a function of a library' "lib.hist has no 'nwe'; did you mean 'new'" 'return hist.nwe()'

# require(), and the globals.
for what in "bindings.base.array: lib.array is what scripts use" "ffi: lib.array, lib.intern" "jit.util: the loop" \
	"jit: the loop" "debug: -v shows" "package: require\\(\\) finds" "bindings.run.driver: lib.\\*, session and out"; do
	module=${what%%:*}
	ends "require '$module'" "a script cannot use '$module': ${what#*: }" "local m = require '$module' return m"
done
ends 'a module that there is none of' "module 'nosuch' not found" "local m = require 'nosuch' return m"
ends 'os.exit' 'os.exit would leave probes .* behind: session.stop\(\) ends the run' 'os.exit(0)'
for name in debug package jit getfenv newproxy ffi; do
	want=2 ends "the global $name" "undeclared global '$name'" "return $name"
done
ends 'bytecode' 'attempt to call a nil value' "load('\\27LJ\\2')()"
script "string.format, table.concat, math.floor = nil, nil, nil
local text = require 'string'
text.rep = nil
assert(not require('string.buffer').new().ref)
return { ['sched:sched_switch'] = function() end, stop = function() out:table(require('lib.table').new('t', { { name = 'a' } }), { { a = 1.5 } }) end }"
"$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
result $? "its own string and table" err
expect_line 'the host has others' '^1.5$' out

# Examples, on a recording with losses.
check 'a recording that loses events' luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" lossy.data 10 1
for example in wakeups runqlat; do
	"$PROFSCRIPT" "$TOP/examples/$example.lua" --input lossy.data >out 2>err
	check "$example.lua" test $? -eq 0 -a -s out
	expect_line 'losses are told by the host alone' "^$example: lost [0-9]+ events" err
	check 'and nothing else' test "$(grep -cv ': lost ' err)" -eq 0
done

want=2 ends 'a global in a branch that is never taken' "undeclared global 'pritn'; did you mean 'print'\\?" \
	"return { stop = function() if opt.verbose > 9 then pritn(1) end end }"
want=2 ends 'a global that is set there' "assignment to undeclared global 'total'; make it local" \
	"return { stop = function() if opt.verbose > 9 then total = 1 end end }"
script "rawset(_G, 'total', 5) return { stop = function() out:printf('%d\\n', total) end, ['sched:sched_switch'] = function() end }"
expect_line 'a global that the script declares itself' '^5$' <("$PROFSCRIPT" ./s.lua --input "$sched")
in_handler 'a member of the name of the event' "ev._event is the event's name, a string: it has no 'name'" \
	"if ev._event.name == 'x' then out:print(1) end"
in_handler 'also in a function inside' "ev._event is the event's name, a string: it has no 'id'" \
	'return function() return ev._event.id end'

# Mistakes in the arguments of the library.
ends 'a kind of aggregation that there is not' "aggregate.new: there is no kind 'histogram'; it is one of count, hist," \
	"require('lib.aggregate').new('histogram', { 'a' })"
ends 'its keys without a list' "aggregate.new takes a list of the names of keys, .* not a string" \
	"require('lib.aggregate').new('count', 'a')"
ends "a counter's arguments for a count" 'count takes \(pid\): there is an argument too many' \
	"require('lib.aggregate').new('count', { 'pid' }):add(1, 5)"
ends 'a key too many' 'sum takes \(value, pid\): there is an argument too many' \
	"require('lib.aggregate').new('sum', { 'pid' }):add(1, 5, 6)"
ends 'stages that are no lists' 'pairs.new: stage 1 is not a list of events' \
	"local a = session.event { 'sched:sched_switch' } pairs_of.new { stages = { a, a } }"
ends 'a table without its columns' 'out:table takes what lib.table.new\(\) gives' 'out:table({}, { { a = 1 } })'
ends 'a column without a name' "table 'x': column 1 is not a table with a name" "require('lib.table').new('x', { 'a' })"
ends 'a description that is no text' 'describe returned a number, not text' \
	"return { ['sched:sched_switch'] = function(ev) out:print_event(ev) end, describe = function() return 5 end }"
ends 'a longer name of a parameter' "session.event: unknown parameter 'frequency'; did you mean 'freq'?" \
	"session.event { 'cpu-clock', frequency = 5 }"
ends 'no samples at all' 'session.event: freq is a whole number of at least 1, not 0' "session.event { 'cpu-clock', freq = 0 }"
ends 'a part of samples that there is not' "session.event: unknown sample 'cgroup'; there are data_src, phys_addr" \
	"session.event { 'cpu-clock', sample = { 'cgroup' } }"
script "return { ['sched:sched_switch'] = function() end }"
check_status '-e for a script without use for it' 2 "$PROFSCRIPT" ./s.lua --input "$sched" -e sched:sched_wakeup
expect_line 'says so' '^profscript: s: it has no use for -e: its script never reads opt.event$' "$TMP/.check"
script "local sums = require('lib.stacks').new(session, { 'ms' })
return { ['sched:sched_switch'] = function() sums:add(-1, 'x', 0.1) end, stop = function() sums:print(out) end }"
expect_line 'sums show no rounding errors' '^x: ms [0-9]+\.[0-9]$' <("$PROFSCRIPT" ./s.lua --input "$sched")
expect_line 'help names a script as the user did' '^usage: profscript ./s.lua ' <("$PROFSCRIPT" ./s.lua -h)
expect_line 'and how to get it' "^try 'profscript ./s.lua -h'$" <("$PROFSCRIPT" ./s.lua -z 2>&1)
cp s.lua runqlat.lua
for name in runqlat runqlt; do
	expect_line "a script in this folder: $name" "^profscript: no profiler '$name'; did you mean './runqlat.lua'\\?$" \
		<("$PROFSCRIPT" $name 2>&1)
done

# session.stop() is exact.
script "local n = 0 return { ['sched:sched_switch'] = function(ev) n = n + 1 if n == 5 then session.stop() end end,
['sched:sched_wakeup'] = function() n = n + (n >= 5 and 1 or 0) end, stop = function() out:printf('%d\\n', n) end }"
expect_line 'no handler gets an event after session.stop()' '^5$' <("$PROFSCRIPT" ./s.lua --input "$sched")
script "local n = 0 return { pairs_of.new { stages = { { session.event { 'sched:sched_wakeup' } },
{ session.event { 'sched:sched_switch' } } }, key = '_cpu', pair = function() n = n + 1 session.stop() end }, stop = function() out:printf('%d\\n', n) end }"
expect_line 'nor a function for pairs' '^1$' <("$PROFSCRIPT" ./s.lua --input "$sched")

# Memory.
eat="local t, n = {}, 0
return { ['sched:sched_switch'] = function(ev) n = n + 1 GROW end, stop = function() out:printf('%d seen\\n', n) end }"
script "${eat/GROW/"t[n] = ('x'):rep(2 ^ 20) .. n"}"
PROFSCRIPT_MEMORY=64M timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'memory eaten event by event ends the run' test $? -eq 1
expect_line 'at its line' '^profscript: ./s.lua:6: out of memory: the script uses 64 MiB' err
expect_line 'with its results' '^[1-9][0-9]+ seen$' out
script "${eat/GROW/while true do t[#t + 1] = \{ n \} end}"
PROFSCRIPT_MEMORY=64M timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'memory eaten in compiled code ends the run' test $? -eq 1
expect_line 'with the name of the script' '^profscript: ./s.lua:?[0-9]*: out of memory' err
expect_line 'and its results' '^1 seen$' out
PROFSCRIPT_MEMORY=x "$PROFSCRIPT" trace --input "$sched" >out 2>err
check 'no size of memory' test $? -eq 2
expect_line 'is said' "^profscript: PROFSCRIPT_MEMORY: bad size 'x'" err
