#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# An event that a script keeps without ev:keep() is an error once its batch is over, never another event.
. "$(dirname "$0")/../../../lib.sh"
cd "$TMP" || exit 1
perf_data=$DATA/zstd.data # several batches

# handler TEXT: a script that keeps the first event, and whose handler is TEXT at line 4
handler() {
	printf '%s\n' "return { summary = 's', start = function(opt, out, session) local kept, id, list, n = nil, nil, nil, 0" \
		"return { stop = function() out:print('events', n) end, ['raw_syscalls:sys_enter'] = function(ev)" \
		"n = n + 1" "$1" \
		"if not kept then kept, id, list = ev, ev.id, ev.args end end } end }" >s.lua
}
message='./s.lua:4: .*the event is only valid in its handler; use ev:keep\(\) to keep a copy'
stale() {
	handler "$2"
	partly "$1" 1 "$message" '^events' ./s.lua --input "$perf_data"
	awk '/^events/ { exit !($2 > 100 && $2 < 2400) }' out
	result $? "$1: in a later batch, not before" out
}
stale 'a field' "if kept then assert(kept.id == id) end"
stale 'a member of the sample' "if kept then assert(kept._tid) end"
stale 'an array' "if kept then assert(list[0]) end"
stale 'u64' "if kept then assert(kept:u64 'id' == id + 0ULL) end"
stale 'a copy that is made too late' "if kept then kept:keep() end"
stale 'printing it' "if kept then out:print_event(kept) end"

printf '%s\n' "return { summary = 's', start = function(opt, out, session) local kept, id, n = nil, nil, 0" \
	"local event, pairs = session.event { 'raw_syscalls:sys_enter' }, require 'lib.pairs'" \
	"local all = pairs.new { stages = { { event } }, cycle = true, key = 'common_pid', pair = function(p, second) n = n + 1" \
	"if kept then assert(kept.id == id) end" \
	"if not kept then kept, id = second, second.id end end }" \
	"return { all, stop = function() out:print('events', n) end } end }" >s.lua
partly 'the second event of a pair' 1 "$message" '^events' ./s.lua --input "$perf_data"
awk '/^events/ { exit !($2 > 100 && $2 < 2400) }' out
result $? 'the second event of a pair: in a later batch, not before' out

handler "if kept == nil then kept = ev:keep() id, list = ev.id, kept.args end assert(kept.id == id and list[0])"
check 'a copy stays' "$PROFSCRIPT" ./s.lua --input "$perf_data"
printf '%s\n' "return { summary = 's', start = function(opt, out) local kept" \
	"return { ['raw_syscalls:sys_enter'] = function(ev) kept = ev end," \
	"stop = function()" "out:print(kept.id)" "end } end }" >s.lua
refused 'in stop' 1 "$message" ./s.lua --input "$perf_data"
