#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# An invalid script is reported in one line with its file and line.
. "$(dirname "$0")/../../../lib.sh"
sched=$DATA/sched.data
switch=sched:sched_switch
cd "$TMP" || exit 1

needs_tracepoint $switch

script() {
	printf '%s\n' "$2" >"$TMP/$1.lua"
}
start() {
	script "$1" "return { summary = 's', start = function(opt, out) $2 end }"
}
script syntax $'return {\n  summary = "s"\n  start = 1,\n}'
refused 'a syntax error' 2 "./syntax.lua:3: '}' expected" ./syntax.lua
script number 'return 42'
refused 'not a table' 2 './number.lua: the file returns a number, not a table' ./number.lua
script nostart 'return { summary = "s" }'
refused 'no start' 2 "./nostart.lua: missing 'start'" ./nostart.lua
script badstart 'return { summary = "s", start = 3 }'
refused 'an invalid start' 2 "./badstart.lua: 'start' is a number, not a function" ./badstart.lua
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
refused 'bytecode' 2 './bytecode.lua: is bytecode, not Lua source' ./bytecode.lua
head -c 17000000 /dev/zero >long.lua
refused 'a file without end' 2 './long.lua: longer than a script may be .16 MiB.' ./long.lua
start loose 'return {}'
chmod o+w loose.lua
refused 'a world-writable file' 2 './loose.lua: refused because it is world-writable' ./loose.lua
mkdir dir.lua
refused 'a directory' 2 "'./dir.lua' is a directory" ./dir.lua
start nothing ''
refused 'start returns nothing' 1 './nothing.lua:1: start returned nothing, not a table of handlers' ./nothing.lua
start seven 'return 7'
refused 'start returns a number' 1 './seven.lua:1: start returned a number' ./seven.lua
start event "return { ['sched:sched_swich'] = function() end }"
refused 'a handler of no event' 1 "./event.lua:1: no such event 'sched:sched_swich'; did you mean" ./event.lua
sed 's/sched:sched_swich/misc:frok/' event.lua >record.lua
refused 'a handler of no record' 1 "./record.lua:1: no such event 'misc:frok'; did you mean 'misc:fork'\\?" ./record.lua
start life 'return { intervall = function() end }'
refused 'a handler of nothing' 1 "./life.lua:1: unknown handler 'intervall'; did you mean 'interval'" ./life.lua
start nofunction "return { ['$switch'] = 3 }"
refused 'an invalid handler' 1 "./nofunction.lua:1: handler '$switch' is a number, not a function" ./nofunction.lua
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
