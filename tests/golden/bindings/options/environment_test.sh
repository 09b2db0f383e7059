#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# No script breaks the host. What it must not do is an error of one line with its file and line, never a
# crash. Changes of its globals stay private to it.
# Only Lua runs here.
. "$(dirname "$0")/../../../lib.sh"

sched=$DATA/sched.data
cd "$TMP" || exit 1

# script TEXT: a script whose start() is TEXT
script() {
	printf '%s\n' "local array, hist, pairs_of = require 'lib.array', require 'lib.hist', require 'lib.pairs'" \
		"return { summary = 's', options = { top = { type = 'integer', help = 'rows' } }," \
		"start = function(opt, out, session)" "local _ = array, hist, pairs_of" "$1" 'end }' >s.lua
}

# ends NAME REGEX TEXT [ARG...]: the script fails with this message, which names its line 5
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

# in_handler NAME REGEX TEXT: the same in a handler of sched_switch
in_handler() {
	ends "$1" "$2" "return { ['sched:sched_switch'] = function(ev) $3 end }"
}

# Memory of C.
ends 'statistics of pairs too early' 'pairs:stats: the events have not started' \
	'pairs_of.new({ stages = opt.event, cycle = true }):stats()'
script 'return { { feed = function(_, list) return list[1e9].time end } }'
"$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'whole batches' test $? -eq 1
expect_line 'are not for scripts' 'entry 1 of the handlers is a table, but has no event as its key' err
ends 'a run' '5' \
	"return { { open = function(_, run) error(run and 'a run' or 5) end, poll = function() error(5) end },
		['sched:sched_switch'] = function() end }"
ends 'the pairs of a batch' "attempt to index field 'out'" \
	"local p p = pairs_of.new { stages = opt.event, cycle = true, pair = function() p.out[1e9].key = 5 end } return { p }"
ends 'rows without a set' 'pairs.new: rows need hists, a set of lib.hist' \
	"pairs_of.new { stages = opt.event, cycle = true, rows = { by = { 'key' }, ids = require('lib.intern').new(1, 5) } }"
ends 'rows by a value that is not read' 'pairs.new: rows by value need the setting .value.' \
	"pairs_of.new { stages = opt.event, cycle = true, rows = { by = { 'value' } } }"

# Data structures.
ends 'an empty array' 'index 0: the array is empty' 'return array.new(0)[0]'
ends 'an array beyond its end' 'index 1000000000 is out of range 0..3' 'array.new(4)[1e9] = 1'
ends 'below its start' 'index -1 is out of range 0..3' 'return array.new(4)[-1]'
ends 'an index that is no number' "index 'x' is out of range 0..3" "return array.new(4).x + array.new(4)['x']"
ends 'a text in an array' "an array holds numbers, not 'x'" "array.new(4)[0] = 'x'"
ends 'too large an array' 'array.new takes the number of elements \(an integer from 0 to 2147483647\), not 10000000000000' 'array.new(1e13)'
ends 'a histogram of nothing' 'hist:add takes a number, not nil' 'hist.new():add(nil)'
ends 'a dot for a colon' 'hist:add is a method: call it with a colon, not with nil' 'hist.new().add(nil, 5)'
ends 'a histogram that is not in its set' 'hists:add: no histogram 3 in this set' 'hist.set(3):add(3, 1)'
ends 'slots beyond their end' 'slot 4 is out of range 0..3' 'session.slots(4):put(4, 1)'
ends 'counts with a dot' 'counts:rows is a method: call it with a colon, not with nil' 'session.count({ opt.event }).rows()'
ends 'a negative slot' 'slot -1 is out of range 0..3' 'session.slots(4):get(-1)'
ends 'no slots' 'session.slots takes the number of slots \(an integer from 1 to [0-9]+\), not -1' 'session.slots(-1)'
ends 'a slot of nothing' 'slots:put takes an event, not nil' 'session.slots(4):put(1, nil)'

ends 'the private part of keys' 'attempt to index field .* \(a nil value\)' \
	"local k = require('lib.intern').new(1, 5) for name in ('_table _direct table direct'):gmatch '%S+' do assert(not k[name]) end return k._direct[2^33]"
ends 'keys without a private part' 'keys:count is a method: call it with a colon' \
	"local k = require('lib.intern').new(1, 5) k.count(setmetatable({}, { __index = k }))"
ends 'the private part of slots' 'attempt to index field .* \(a nil value\)' 'return session.slots(5)._list[2^33]'
returned() {
	script "$2"
	timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
	check "$1 ends the run" test $? -eq 1
	expect_line 'at the line of start' "^profscript: ./s.lua:3: $3" err
}
returned 'a key that contains itself' 'local t = {} t[1] = t return { [t] = function() end }' 'the key of a handler is a table, not an event'
returned 'the options as a key' 'return { [opt] = function() end }' 'the key of a handler is a table, not an event'
returned 'an invented event' 'return { [{ class = {} }] = function() end }' 'the key of a handler is a table, not an event'

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
in_handler 'an event changed' 'events are read-only' 'ev._time = 5'
ends 'an event of its own time, in stop' 'out:print_event: the event is only valid in its handler' \
	"local last return { ['sched:sched_switch'] = function(ev) last = last or ev end, stop = function() out:print_event(last) end }"
ends 'a warning that is no text' 'out:warn takes a line \(a string\), not a table' 'out:warn {}'
ends 'an expression of another event' 'the expression is for sched:sched_switch, not for this event' \
	"local e = session.expression(session.event { 'sched:sched_switch' }, 'next_pid') return { ['sched:sched_wakeup'] = function(ev) e.value(ev) end }"
ends 'a pair that is none' 'details:show takes a pair, not a number' \
	"local d = require('lib.detail').new({ before = 0, after = 0, hide = 0 }, { out = out, session = session }) return { pairs_of.new { stages = opt.event, cycle = true, details = d, pair = function(_, second) d:show(5, second) end } }"
ends 'a directory that is nil' 'fs.list takes a path \(a string\), not nil' "require('lib.fs').list(nil)"
ends 'counts of no row' 'counts:get takes the index of a row \(1 to 0\), not 1000000000' 'session.count({ opt.event }):get(1e9, 1)'

# Events and options are read only.
ends 'an option written' 'opt.call_graph cannot be set' 'opt.call_graph = true'
want=2 ends 'an option misspelt' "no such option 'tpo'; did you mean 'top'" 'return opt.tpo'
ends 'an event written' 'events are read-only: use event:set\(\)' 'opt.event[1][1].filter = 5'
ends 'a field of events that there is none of' "events have no 'nam'; did you mean 'name'" 'return opt.event[1][1].nam'
ends 'an unknown setting' "event:set: unknown setting 'fliter'; did you mean 'filter'" "opt.event[1][1]:set { fliter = 'x' }"
ends 'an unknown want' "session.want: unknown setting 'stack'; did you mean 'stacks'" 'session.want { stack = true }'
ends 'a want too late' 'session.want: only valid in start\(\)' \
	"return { ['sched:sched_switch'] = function() session.want { stacks = true } end }"
ends 'a member of the session' "session has no 'tsak_name'; did you mean 'task_name'" 'return session.tsak_name'
ends 'a library changed' 'lib.array is read-only' 'array.new = 5'
ends 'a function of a library' "lib.hist has no 'nwe'; did you mean 'new'" 'return hist.nwe()'

# Every error has a line.
ends 'an error that is a table' 'error\(\) was called with a table, not with text' 'error {}'
ends 'that is nil' 'error\(\) was called with nil, not with text' 'error()'
ends 'whose text fails' 'error\(\) was called with a table' "error(setmetatable({}, { __tostring = function() error 'x' end }))"
ends 'a text of its own' 'mine$' "error(setmetatable({}, { __tostring = function() return 'mine' end }))"
ends 'in a coroutine' 'mine$' "coroutine.wrap(function() error 'mine' end)()"
ends 'in a handler that is a coroutine' 'mine$' "return { ['sched:sched_switch'] = coroutine.wrap(function() error 'mine' end) }"
script 'local function f() return 1 + f() end f()'
"$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'endless recursion ends the run' test $? -eq 1
expect_line 'with the name of the script' '^profscript: ./s.lua:?[0-9]*: stack overflow$' err

script "return { ['sched:sched_switch'] = function() return error 'mine' end }"
"$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
expect_line 'the tail call of a handler has the name of the script' '^profscript: ./s.lua: mine$' err
# The C stack is shorter than that of Lua.
ends 'through gsub' 'stack overflow$' "local function f() return (('x'):gsub('x', f)) end f()"
ends 'through a table of gsub' 'stack overflow$' "local t t = setmetatable({}, { __index = function(_, k) return (k:gsub('.', t)) end }) return t.x"
ends 'through coroutines' 'stack overflow$' 'local function f() return coroutine.wrap(f)() end f()'
ends 'gsub checks its arguments' "bad argument #3 to 'gsub'" "local s = 'x' s:gsub 'x'"

# The metatables of the host.
ends 'the metatable of out' 'the metatable of an object of the host is read-only' 'setmetatable(out, nil)'
ends 'a script sees its own metatables' 'right$' "assert(not getmetatable(out) and not getmetatable(io.stdout) and not getmetatable 'x')
local mine = {} assert(getmetatable(setmetatable({}, mine)) == mine) error('./s.lua:5: right', 0)"

# require() and the globals.
for what in "bindings.base.array: use lib.array" "ffi: use lib.array, lib.intern" "jit.util: the event loop" \
	"jit: the event loop" "debug: use -v" "package: require\\(\\) finds" "bindings.run.driver: use lib.\\*, session and out"; do
	module=${what%%:*}
	ends "require '$module'" "a script cannot use '$module': ${what#*: }" "local m = require '$module' return m"
done
mkdir own
printf '%s\n' 'local own = {}' 'function own.twice(n) return tonumber(n) * 2 end' \
	'function own.fail() return nothing end' 'return own' >own/good.lua
sed 's/nothing/1/' own/good.lua >own/right.lua
echo 'x = 1 return {}' >own/global.lua
echo 'return {' >own/syntax.lua
install -m 666 own/right.lua own/writable.lua
# own NAME TEXT: runs a script in the folder `own` that requires NAME
own() {
	printf '%s\n' "local m = require '$1'" "return { summary = 's', start = function(_, out)" \
		"return { ['sched:sched_switch'] = function() end, stop = function() $2 end } end }" >own/s.lua
	"$PROFSCRIPT" own/s.lua --input "$sched" >out 2>err
}
own right 'out:print(m.twice(21))'
check 'a module beside the script' grep -qx 42 out
own good 'out:print(1)'
expect_line 'is checked like the script' "^profscript: own/good.lua:3: undeclared global 'nothing'" err
own global 'out:print(1)'
expect_line 'sets no globals' "^profscript: own/global.lua:1: assignment to undeclared global 'x'" err
own syntax 'out:print(1)'
expect_line 'with an error in its syntax' "^profscript: own/syntax.lua:2: " err
own writable 'out:print(1)'
expect_line 'that anyone may write' 'own/writable.lua: refused because it is world-writable' err
cp own/s.lua own/profiler.lua
PROFSCRIPT_PATH=$PWD/own "$PROFSCRIPT" -h >out
check 'is not listed as a profiler' test "$(grep -c '^  right' out)" -eq 0
ends 'a module that there is none of' "module 'nosuch' not found" "local m = require 'nosuch' return m"
ends 'os.exit' 'os.exit is not allowed: it would leave probes .* behind; use session.stop\(\)' 'os.exit(0)'
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

# The examples, on a recording with losses.
check 'a recording that loses events' luajit "$TOP/tests/tools/lose.lua" "$DATA/hogs.data" lossy.data 10 1
for example in wakeups runqlat; do
	"$PROFSCRIPT" "$TOP/examples/$example.lua" --input lossy.data >out 2>err
	check "$example.lua" test $? -eq 0 -a -s out
	expect_line 'only the host reports losses' "^$example: lost [0-9]+ events" err
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
ends 'a kind of aggregation that there is not' "aggregate.new: there is no kind 'histogram'; it is one of avg, count, hist," \
	"require('lib.aggregate').new('histogram', { 'a' })"
ends 'its keys without a list' "aggregate.new takes a list of the names of keys, .* not a string" \
	"require('lib.aggregate').new('count', 'a')"
ends "a counter's arguments for a count" 'count takes \(pid\): there is an argument too many' \
	"require('lib.aggregate').new('count', { 'pid' }):add(1, 5)"
ends 'a setting that it does not have' "aggregate.new: there is no setting 'nam'; did you mean 'name'\?" \
	"require('lib.aggregate').new('hist', { 'a' }, { nam = 'x' })"
ends 'one of counters' "counter.new: there is no setting 'limit'; there are name, value, max_keys" \
	"require('lib.counter').new({ 'a' }, { limit = 5 })"
ends 'one of their output' "sum:print: there is no setting 'limt'; did you mean 'limit'\?" \
	"require('lib.counter').new({ 'a' }):print(out, { limt = 5 })"
ends 'no output' 'sum:print takes out, .*, not nil$' "require('lib.counter').new({ 'a' }):print()"
ends 'pairs without stages' 'pairs.new takes stages \(a table\), not nil' "require('lib.pairs').new {}"
ends 'pairs with a misspelt setting' "pairs.new: there is no setting 'stagess'; did you mean 'stages'\?" \
	"require('lib.pairs').new { stagess = {} }"
ends 'pairs of names' "pairs.new: stage 1 has 'sched:sched_switch', which is not an event" \
	"require('lib.pairs').new { stages = { { 'sched:sched_switch' }, { 'sched:sched_switch' } } }"
ends 'a grid without settings' 'grid.new takes settings \(a table\), not nil' "require('lib.grid').new()"
ends 'a part of a key that the map does not have' 'map:set got an argument too many; .* is map.new\(2\)' \
	"require('lib.map').new():set(1, 2, 'x')"
in_handler 'an event as a value of a row' "out:row: 'a' is .*, not a number or a text" "out:row { 'a', ev }"
ends 'a key too many' 'sum takes \(value, pid\): there is an argument too many' \
	"require('lib.aggregate').new('sum', { 'pid' }):add(1, 5, 6)"
ends 'stages that are no lists' 'pairs.new: stage 1 is not a list of events' \
	"local a = session.event { 'sched:sched_switch' } pairs_of.new { stages = { a, a } }"
ends 'a table without its columns' 'out:table takes a spec from lib.table.new\(\), not a table' 'out:table({}, { { a = 1 } })'
ends 'a column without a name' "table 'x': column 1 is not a table with a name" "require('lib.table').new('x', { 'a' })"
ends 'a description that is no text' 'describe returned a number, not text' \
	"return { ['sched:sched_switch'] = function(ev) out:print_event(ev) end, describe = function() return 5 end }"
ends 'a longer name of a parameter' "session.event: unknown parameter 'frequency'; did you mean 'freq'?" \
	"session.event { 'cpu-clock', frequency = 5 }"
ends 'no samples at all' 'session.event: freq is a whole number of at least 1, not 0' "session.event { 'cpu-clock', freq = 0 }"
ends 'a part of samples that there is not' "session.event: unknown part of a sample 'transaction'; there are cgroup, data_src, phys_addr" \
	"session.event { 'cpu-clock', sample = { 'transaction' } }"
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
	expect_line "a script in this folder: $name" "^profscript: no such profiler '$name'; did you mean './runqlat.lua'\\?$" \
		<("$PROFSCRIPT" $name 2>&1)
done

# session.stop() is exact.
script "local n = 0 return { ['sched:sched_switch'] = function(ev) n = n + 1 if n == 5 then session.stop() end end,
['sched:sched_wakeup'] = function() n = n + (n >= 5 and 1 or 0) end, stop = function() out:printf('%d\\n', n) end }"
expect_line 'no handler gets an event after session.stop()' '^5$' <("$PROFSCRIPT" ./s.lua --input "$sched")
script "local n = 0 return { pairs_of.new { stages = { { session.event { 'sched:sched_wakeup' } },
{ session.event { 'sched:sched_switch' } } }, key = '_cpu', pair = function() n = n + 1 session.stop() end }, stop = function() out:printf('%d\\n', n) end }"
expect_line 'nor a function for pairs' '^1$' <("$PROFSCRIPT" ./s.lua --input "$sched")
