#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Scripts that use up the stack or the memory end with an error of one line, and with their results.
# Only Lua runs here.
. "$(dirname "$0")/../../../lib.sh"

sched=$DATA/sched.data
cd "$TMP" || exit 1

# script TEXT: a script whose start() is TEXT
script() {
	printf '%s\n' "return { summary = 's'," '' '' 'start = function(opt, out, session)' "$1" 'end }' >s.lua
}

# --- the stack ------------------------------------------------------------------------------------

# Each of them crosses from Lua to C and back, or fills the stack while the compiler looks on.
recurses() {
	script "$2"
	for n in 1 2 3; do
		timeout -s KILL 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
		check "endless recursion, $1, ends the run ($n)" test $? -eq 1
		expect_line 'with one line' '^profscript: ./s.lua:?[0-9]*: (stack overflow|not enough memory)$' \
			<(tr '\n' '|' <err | sed 's/|$//')
	done
}
in_events="return { ['sched:sched_switch'] = function() deep() end }"
recurses 'in handlers' "local function deep() return 1 + deep() end $in_events"
recurses 'in __index' \
	"local t = setmetatable({}, { __index = function(t, k) return 1 + t[k] end }) local function deep() return t.x end $in_events"
recurses 'in comparators' \
	"local function deep() table.sort({ 1, 2, 3 }, function(a, b) deep() return a < b end) end $in_events"
recurses 'in gsub' "local function deep() return (('x'):gsub('x', function() return deep() end)) end $in_events"
recurses 'in __tostring' "local t = setmetatable({}, { __tostring = function(t) return ('%s'):format(t) end })
	local function deep() return ('%s'):format(t) end $in_events"
recurses 'in coroutines' "local function deep() return 1 + coroutine.wrap(deep)() end $in_events"

# --- the memory -----------------------------------------------------------------------------------

eat="local t, n = {}, 0
return { ['sched:sched_switch'] = function(ev) n = n + 1 GROW end, stop = function() out:printf('%d seen\\n', n) end }"
script "${eat/GROW/"t[n] = ('x'):rep(2 ^ 20) .. n"}"
PROFSCRIPT_MEMORY=64M timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'memory exhausted by handlers ends the run' test $? -eq 1
expect_line 'at its line' '^profscript: ./s.lua:6: out of memory: the script uses 64 MiB' err
expect_line 'with its results' '^[1-9][0-9]+ seen$' out
script "${eat/GROW/while true do t[#t + 1] = \{ n \} end}"
PROFSCRIPT_MEMORY=64M timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
check 'memory exhausted in compiled code ends the run' test $? -eq 1
expect_line 'with the name of the script and the limit' \
	'^profscript: ./s.lua:?[0-9]*: out of memory: the script uses (more than )?64 MiB .set PROFSCRIPT_MEMORY to allow more.' err
expect_line 'and its results' '^1 seen$' out
PROFSCRIPT_MEMORY=64M timeout 60 "$PROFSCRIPT" exec -e sched:sched_switch --input "$sched" \
	"local s = 'x' while true do s = s .. s end" >out 2>err
expect_line 'a one-liner is not the file of the profiler that runs it' '^profscript: exec:?[0-9]*: out of memory' err
if (ulimit -v 500000 && "$PROFSCRIPT" --version) >out 2>&1; then
	(ulimit -v 500000 && PROFSCRIPT_MEMORY=100G timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched") >out 2>err
	expect_line 'a limit of the system' '^profscript: ./s.lua: out of memory: the system has no more for this process$' err
else
	skip 'a limit of the system' 'this program needs terabytes'
fi
script "${eat/GROW/"t[n] = ('x'):rep(2 ^ 24) .. n"}"
env -u PROFSCRIPT_MEMORY timeout 60 "$PROFSCRIPT" ./s.lua --input "$sched" >out 2>err
expect_line 'the default limit' '^profscript: ./s.lua:?[0-9]*: out of memory: the script uses (more than )?(1?[0-9]{1,3}|20[0-4][0-9]) MiB ' err
PROFSCRIPT_MEMORY=x "$PROFSCRIPT" trace --input "$sched" >out 2>err
check 'an invalid memory size' test $? -eq 2
expect_line 'is reported' "^profscript: PROFSCRIPT_MEMORY: invalid size 'x'" err
