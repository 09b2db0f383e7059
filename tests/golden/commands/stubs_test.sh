#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# `profscript stubs` writes definitions of the whole API and of events, which are valid Lua.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1
sched=$DATA/sched.data

"$PROFSCRIPT" stubs -e sched:sched_switch -e sched:sched_wakeup --input "$sched" >out 2>err
check 'stubs: succeeds' test $? -eq 0 -a ! -s err
expect_line 'stubs: says what it wrote' '^2 events; written: ./.luarc.json ./.luacheckrc ./.profscript$' out

# all_valid FILE...: prints the errors of files that are not valid Lua
all_valid() {
	luajit -e 'for _, path in ipairs(arg) do
		local chunk, message = loadfile(path)
		if not chunk then print(message) os.exit(1) end
		chunk()
	end' "$@"
}
mapfile -t files < <(find .profscript -name '*.lua')
check 'stubs: all files are valid' all_valid "${files[@]}"

# Each function of docs/api.md is in exactly one file, with its arguments.
grep -E '^####? `[A-Za-z_]+[.:].*\(' "$TOP/docs/api.md" | sed -E 's/^#+ `[A-Za-z_]+([.:].*)`$/\1/' | sort >documented
grep -rhE '^function ' .profscript | sed -E 's/^function [A-Za-z_]+([.:])(.*) end$/\1\2/' | sort >defined
check 'stubs: there are functions to compare' test "$(wc -l <documented)" -gt 100
diff documented defined >diff
result $? 'stubs: all functions of docs/api.md and no others' diff
check 'stubs: parameters have types' grep -q '^---@param params EventParameters$' .profscript/api.lua
check 'stubs: require finds a module' grep -q '^---@meta lib.hist$' .profscript/lib/hist.lua
check 'stubs: common options' grep -q '^---@field interval number? -i: print a report at this interval$' .profscript/options.lua

check 'stubs: the class of an event' grep -qx -- '---@class Ev.sched.sched_switch : Ev' .profscript/events/sched.lua
check 'stubs: its strings' grep -qx -- '---@field prev_comm string char\[16\]' .profscript/events/sched.lua
check 'stubs: its numbers, with units' grep -qx -- '---@field prev_state integer long: bits of a state' .profscript/events/sched.lua
check 'stubs: the handler of an event' grep -qx -- "---@field \['sched:sched_wakeup'\] fun(ev: Ev.sched.sched_wakeup)" \
	.profscript/events/sched.lua
"$PROFSCRIPT" stubs --input "$DATA/timers.data" >out 2>err
check 'stubs: a field whose name is a keyword' grep -qx -- "---@field \['function'\] integer64 void \*" .profscript/events/timer.lua

check 'stubs: luacheck gets the globals' luajit -e 'stds = {} dofile ".luacheckrc"
	local globals = stds[std].read_globals
	assert(globals.require and globals.print and not globals.debug and not globals.ffi and globals.string.fields)'
echo '{}' >.luarc.json
cp .luacheckrc before
"$PROFSCRIPT" stubs -e sched:sched_wakeup --input "$sched" >out 2>err
check 'stubs: a configuration of the user is kept' test "$(cat .luarc.json)" = '{}'
expect_line 'stubs: which is said' '^stubs: ./.luarc.json exists already and is kept' err
check 'stubs: the definitions are those of the last run' test "$(grep -c '^---@class Ev[.]' .profscript/events/sched.lua)" -eq 1
check 'stubs: its own configuration is written again' cmp .luacheckrc before
refused 'stubs: a wrong event' 2 ".*did you mean '(sched:)?sched_switch'" stubs -e sched:sched_swich --input "$sched"
refused 'stubs: a folder that does not exist' 1 'nowhere/.profscript: No such file or directory' stubs nowhere --input "$sched"

mkdir new
"$PROFSCRIPT" new new/mine -e 'sched:sched_switch/prev_pid > 0/' --input "$sched" --stubs >out 2>err
check 'new --stubs: writes them beside the script' test -s new/.luarc.json -a -s new/.profscript/api.lua
expect_line 'new: the script is annotated' '^---@type Profiler$' new/mine.lua
expect_line 'new: the event of a key with a filter, too' '^ *---@param ev Ev.sched.sched_switch$' new/mine.lua
