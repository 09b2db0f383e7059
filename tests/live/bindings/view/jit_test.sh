#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# The loops over the events are compiled: LuaJIT's own report of a run (jit.v) shows a loop trace for each. From then on
# nothing on the path of an event runs in the interpreter.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
here=$TOP/tests/recordings

# has_loops LOOP...: the report has a trace of each
has_loops() {
	local loop
	for loop; do grep -Eq "^\[TRACE +[0-9]+ $loop:[0-9]+ loop\]\$" "$TMP/report" || return; done
}

# compiled NAME LOOP... -- ARG...: the run of ARGs compiles these loops. LuaJIT counts loops and calls by their addresses,
# some of them together: in 1 of 100 runs on a short recording functions that the loop calls come first, and the run
# ends before it is the turn of the loop. So it has three runs.
compiled() {
	local name=$1 loops=() status
	shift
	while [ "$1" != -- ]; do
		loops+=("$1")
		shift
	done
	shift
	for _ in 1 2 3; do
		"$PROFSCRIPT" --lua "$TOP/tests/tools/jitv.lua" "$TMP/report" "$@" >"$TMP/out" 2>"$TMP/err"
		status=$?
		! has_loops "${loops[@]}" || break
	done
	result $status "$name runs" "$TMP/err"
	for loop in "${loops[@]}"; do
		expect_line "$name" "^\[TRACE +[0-9]+ $loop:[0-9]+ loop\]\$" "$TMP/report"
	done
	given_up_traces "${loops[-1]}" "$TMP/report" >"$TMP/given_up"
	check "$name: nothing runs in the interpreter" diff /dev/null "$TMP/given_up"
}

calls=(-e raw_syscalls:sys_enter -e raw_syscalls:sys_exit)
compiled trace dispatch -- trace --input "$here/zstd.data"
compiled 'trace of two events' dispatch -- trace --input "$here/sched.data"
compiled 'trace with a filter' filters dispatch -- trace -e 'raw_syscalls:sys_exit/ret>0/' --input "$here/zstd.data"
compiled multi-trace 'matcher.lua' -- multi-trace "${calls[@]}" -k common_pid --perins --input "$here/zstd.data"
compiled 'multi-trace with an expression' keys -- multi-trace "${calls[@]}" -k 'common_pid * 2' \
	--input "$here/zstd.data"
compiled 'multi-trace with details' keys 'matcher.lua' -- multi-trace "${calls[@]}" --than 1s --detail \
	--input "$here/zstd.data"
compiled 'multi-trace --perins --than' keys 'matcher.lua' -- multi-trace "${calls[@]}" --perins --than 10us \
	--input "$here/zstd.data"
compiled 'multi-trace of wakeups' 'matcher.lua' -- multi-trace -e sched:sched_wakeup//key=pid/ \
	-e sched:sched_switch//key=next_pid/ --perins --input "$here/sched.data"
compiled 'rundelay' dispatch -- rundelay --input "$here/hogs.data"
compiled 'syscalls' keys 'matcher.lua' -- syscalls --input "$here/zstd.data"
compiled 'nested-trace' dispatch -- nested-trace -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -k common_pid \
	--input "$here/zstd.data"
compiled 'nested-trace with details' dispatch -- nested-trace -e raw_syscalls:sys_enter,raw_syscalls:sys_exit -k common_pid \
	--than 1s --detail --input "$here/zstd.data"
# SQL keeps the events without a loop in Lua; only the filter is one.
compiled 'sql' filters -- sql -e 'raw_syscalls:sys_exit/ret>0/' --query 'SELECT count(*) FROM sys_exit' \
	--input "$here/zstd.data"
for format in html chrome; do
	compiled "export to $format" 'export.lua' -- export "$here/hogs.data" -o $format:/dev/null
done
compiled 'count' dispatch -- exec -e raw_syscalls:sys_exit 'count(ev.id)' --input "$here/zstd.data"
compiled 'count by names' dispatch -- exec -e sched:sched_switch 'count(ev.prev_comm, ev.next_pid)' \
	--input "$here/sched.data"
compiled 'hist, sum and quantiles' dispatch -- exec -e raw_syscalls:sys_exit \
	'hist(ev.ret, ev._comm) sum(ev.ret) quantiles(ev._cpu)' --input "$here/zstd.data"
compiled 'count by stack' dispatch -- exec -e sched:sched_switch 'count(stack, ev.next_pid)' --input "$here/sched.data"
compiled 'flame graph' dispatch -- trace -e sched:sched_switch --flame-graph "$TMP/x.svg" --input "$here/sched.data"
compiled 'arrays' dispatch -- exec -e raw_syscalls:sys_enter 'sum(ev.args[0] % 7, ev.id)' --input "$here/zstd.data"
compiled 'values of a one-liner' dispatch -- exec -e raw_syscalls:sys_enter --begin 'n, at = 0, {}' \
	'n = n + 1 at[ev._tid] = ev._time' --input "$here/zstd.data"
cat >"$TMP/libraries.lua" <<'END'
local join, map, window = require 'lib.join', require 'lib.map', require 'lib.window'
return { summary = 's', start = function(_, out)
  local calls, wide, seen, recent, over = join.new(), map.new(), {}, window.new '1s', 0
  return {
    lost = calls.lost,
    ['raw_syscalls:sys_enter'] = function(ev)
      calls:start(ev._tid, ev._time, ev.id)
      wide:add(ev:u64 'id' + 0xffff888100000000ULL)
      seen[ev.id] = (seen[ev.id] or 0) + 1
    end,
    ['raw_syscalls:sys_exit'] = function(ev)
      local ns, id = calls:finish(ev._tid, ev._time)
      if ns then recent:add(ev._time, ns + id) end
      if (ns or 0) > (recent:quantile(0.99) or math.huge) then over = over + 1 end
    end,
    stop = function() out:print(over, wide:count()) end,
  }
end }
END
compiled 'joins, maps, windows and checked keys' dispatch -- "$TMP/libraries.lua" --input "$here/zstd.data"
cat >"$TMP/many.lua" <<'END'
local aggregate, join, map = require 'lib.aggregate', require 'lib.join', require 'lib.map'
return { summary = 's', start = function(_, out)
  local keys, calls, times, sum = map.new(), join.new(), aggregate.new('quantiles', { 'id' }), 0
  return {
    lost = calls.lost,
    ['raw_syscalls:sys_enter'] = function(ev)
      keys:add(ev:u64 'id' + 0xffff888100000000ULL)
      calls:start(ev._tid, ev._time, ev.id)
      times:add(ev.args[0] % 4096, ev.id)
    end,
    ['raw_syscalls:sys_exit'] = function(ev)
      sum = sum + keys:add(ev.id)
      local ns, id = calls:finish(ev._tid, ev._time)
      if ns then sum = sum + ns + id end
      times:add(ev._time % 4096, ev.id)
    end,
    stop = function() out:print(sum) times:print(out) end,
  }
end }
END
compiled 'many libraries in one handler' dispatch -- "$TMP/many.lua" --input "$here/zstd.data"
compiled 'wakeups.lua' dispatch -- "$TOP/examples/wakeups.lua" --input "$here/sched.data"
compiled 'sources with -N' limits dispatch -- exec \
	-e 'trace/-e raw_syscalls:sys_exit -N 4000/,trace/-e raw_syscalls:sys_enter -N 9000/' 'count(ev.id)' --input "$here/zstd.data"
compiled perfeval perfeval dispatch -- exec -e raw_syscalls:sys_enter,raw_syscalls:sys_exit 'count(ev.id)' -i 1 \
	--perfeval-cpus 0-3 --perfeval-pids "$("$PROFSCRIPT" trace --format json --input "$here/zstd.data" -N 1 | sed 's/.*"pid"://; s/,.*//')" \
	--input "$here/zstd.data"
cat >"$TMP/describes.lua" <<'LUA'
return { summary = 'describes', start = function()
  return { ['raw_syscalls:sys_exit'] = function() end, describe = function(ev) return ev._comm end }
end }
LUA
compiled 'a source that describes' dispatch -- trace -e "\"$TMP/describes.lua\"" --input "$here/zstd.data"
cat >"$TMP/describes.lua" <<'LUA'
local line = require 'string.buffer'.new()
return { summary = 'describes with a buffer', start = function()
  return { ['raw_syscalls:sys_exit'] = function() end, describe = function(ev) return line:reset():put(ev._comm) end }
end }
LUA
compiled 'a description in a buffer' dispatch -- trace -e "\"$TMP/describes.lua\"" --input "$here/zstd.data"
perf record -q -m 1024 -d -e page-faults -c 1 -o "$TMP/faults" -- "$TOP/build/workloads/pages" 20000 >/dev/null 2>&1
compiled page-faults dispatch -- page-faults --input "$TMP/faults"

# Lists, on recordings that are long enough for all paths to get hot.
compiled top dispatch -- top -e raw_syscalls:sys_enter//key=id/,raw_syscalls:sys_exit//key=id/top-by=ret/ \
	--input "$here/zstd.data"
compiled num-dist dispatch -- num-dist -e raw_syscalls:sys_exit//num=ret/ --perins --input "$here/zstd.data"
perf record -q -m 1024 -a -e sched:sched_switch,sched:sched_wakeup,sched:sched_wakeup_new -o "$TMP/sched" -- \
	perf bench sched pipe -l 20000 >/dev/null 2>&1
compiled task-state dispatch -- task-state --input "$TMP/sched"
compiled oncpu dispatch -- oncpu -i 100s --input "$TMP/sched"
compiled offcpu dispatch -- offcpu --input "$TMP/sched"
compiled sched dispatch -- sched --input "$TMP/sched"
perf record -q -m 1024 -e syscalls:sys_enter_futex,syscalls:sys_exit_futex -o "$TMP/futexes" -- \
	"$TOP/build/workloads/locks" 10000 >/dev/null 2>&1
compiled lock dispatch -- lock --input "$TMP/futexes"
compiled files dispatch -- files --input "$here/zstd.data"
perf record -q -m 1024 -a -e kmem:kmalloc,kmem:kfree -o "$TMP/kmem" -- perf bench sched messaging -g 2 -l 20 \
	>/dev/null 2>&1
compiled kmemleak dispatch -- kmemleak --alloc kmem:kmalloc --free kmem:kfree --input "$TMP/kmem"
