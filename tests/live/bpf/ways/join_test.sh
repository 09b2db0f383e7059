#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Handlers with joins (lib.join) in the kernel: they count what Lua counts, in the same run.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit sched:sched_switch sched:sched_wakeup

exec_once=('count()' -e raw_syscalls:sys_enter --duration 1ms -q)
"$PROFSCRIPT" exec --capture bpf "${exec_once[@]}" >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"

cat >"$TMP/joins.lua" <<'EOF'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
local hist = require 'lib.hist'
local join = require 'lib.join'
local names = require 'lib.names'

return {
  summary = 'Join system calls in several ways',
  options = {
    enter = { type = 'event', required = true, help = 'start' },
    leave = { type = 'event', required = true, help = 'end' },
    by = { type = 'enum', values = { 'comm', 'all' }, default = 'comm', help = 'key' },
  },
  start = function(opt, out, session)
    local calls, short, late, open = join.new(), join.new { expires = 1 }, join.new { expires = '100s' }, join.new()
    local times, found = counter.new { 'call', 'id', 'who' }, aggregate.new('quantiles', { 'even' })
    local values, results = hist.new(), aggregate.new('count', { 'result', 'size' })
    local n, positive, missed = 0, 0, 0
    return {
      lost = calls.lost,
      [opt.enter] = function(ev)
        calls:start(ev._tid, ev._time, ev.id * 3)
        late:start(ev.id * 512 - 7, ev._time)
        short:start(ev.id, ev._time)
        open:start(ev._tid, ev._time)
      end,
      [opt.leave] = function(ev)
        local ns, id = calls:finish(ev._tid, ev._time)
        if ns then
          n = n + 1
          times:add(1, session.syscall_name(ev.id), id, opt.by == 'comm' and ev._comm or 'all')
          if ns > 0 and ns < 1e11 then positive = positive + 1 end
          found:add(id, id % 2)
        end
        local expired = short:finish(ev.id, ev._time)
        if expired then missed = missed + 1000 end
        local since = late:finish(ev.id * 512 - 7, ev._time)
        if not since then return end
        values:add(since * 0 + 5)
        results:add(ev.ret < 0 and 'failed' or 'done', ev.ret < 100 and 1 or 2)
        if ev.ret > 10 then values:add(7) else values:add(8) end
      end,
      stop = function()
        for _, one in ipairs { times, found, results } do one:print(out) end
        out:row { 'n', n, 'positive', positive, 'missed', missed, 'values', values:stats().count, 'sum',
          values:stats().sum }
        out:row { 'expired', short.expired, 'unstarted', calls.unstarted, 'replaced', open.replaced,
          'waiting', open:count(), 'left', calls:count(), 'error', names.errno(2) }
      end,
    }
  end,
}
EOF
workload -C 0 syscalls 3000
enter="raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/"
leave="raw_syscalls:sys_exit/id==$GETPPID&&_tid==$WORKLOAD/"
capture_agrees 'handlers with joins' "$TMP/joins.lua" --enter "$enter" --leave "$leave"
expect_line 'their counts' "^count,getppid,$((3 * GETPPID)),syscalls,3000\$" "$TMP/out"
expect_line 'their variables' '^row,3000,3000,0,6000,' "$TMP/out"
expect_line 'what the joins count' '^row,3000,0,2999,1,0,ENOENT$' "$TMP/out"
workload -C 0 syscalls 100
capture_agrees 'handlers that choose a key by an option' "$TMP/joins.lua" --enter "$enter" --leave "$leave" --by all

explain() { "$PROFSCRIPT" explain "$@" >"$TMP/out" 2>"$TMP/err"; }
explain "$TMP/joins.lua" --enter raw_syscalls:sys_enter --leave raw_syscalls:sys_exit
expect_line 'explain: a start' '^handler of raw_syscalls:sys_enter .*: counts in the kernel$' "$TMP/out"
expect_line 'explain: a finish' ' +local ns, id = calls:finish\(.* -- in the kernel; reads _tid, _time$' "$TMP/out"

# refused NAME REASON [ENTER [LEAVE [STOP [LOST [SETTINGS]]]]]: handlers that stay in Lua, and why
refused() {
	cat >"$TMP/refused.lua" <<EOF
local counter = require 'lib.counter'
local join = require 'lib.join'
return {
  summary = 'Join',
  start = function(_, out)
    local calls, times = join.new {${7:-}}, counter.new { 'a' }
    return {
      lost = ${6:-calls.lost},
      ['raw_syscalls:sys_enter'] = function(ev) ${3:-calls:start(ev._tid, ev._time)} end,
      ['raw_syscalls:sys_exit'] = function(ev) ${4:-local ns = calls:finish(ev._tid, ev._time) if ns then times:add(1, ns) end} end,
      stop = function() times:print(out) ${5:-} end,
    }
  end,
}
EOF
	explain "$TMP/refused.lua"
	expect_line "$1" "^  why: $2\$" "$TMP/out"
}
refused 'keys that are text' 'line 9: the key of a join is text' 'calls:start(ev._comm, ev._time)'
refused 'another time' 'line 9: the time is not ev._time' 'calls:start(ev._tid, ev.id)'
refused 'two values' 'line 10: a join in the kernel keeps one value' 'calls:start(ev._tid, ev._time, 1, 2)' \
	'local ns, a, b = calls:finish(ev._tid, ev._time) if ns then times:add(a, b) end'
refused 'values that are text' 'line 9: a join in the kernel keeps only numbers' 'calls:start(ev._tid, ev._time, ev._comm)' \
	'local ns, a = calls:finish(ev._tid, ev._time) if ns then times:add(1, a) end'
refused 'a result without a value' 'line 10: start\(\) keeps no value for this result' '' \
	'local ns, a = calls:finish(ev._tid, ev._time) if ns then times:add(1, a) end'
refused 'another method' 'line 10 calls calls:count\(\)' '' 'times:add(1, calls:count())'
refused 'a start in stop' "'calls' is also used by the handler stop" '' '' 'calls:start(1, 2)'
refused 'another handler lost' "'calls' is also used by the handler lost" '' '' '' 'function(gap) calls.lost(gap) end'
refused 'a limit' 'the number of open starts is limited' '' '' '' '' 'max = 5'

# Threads that execute a program get another id: 21 calls of execve, of which ten are of such threads and one fails.
cat >"$TMP/follow.lua" <<'EOF'
local hist = require 'lib.hist'
local join = require 'lib.join'
return {
  summary = 'Join calls of execve',
  start = function(_, out, session)
    local calls, times, ids = join.new(), hist.new(), hist.new()
    return calls:follow(session, {
      ['raw_syscalls:sys_enter/id==59/'] = function(ev) calls:start(ev._tid, ev._time, ev.id) end,
      ['raw_syscalls:sys_exit/id==59/'] = function(ev)
        local ns, id = calls:finish(ev._tid, ev._time)
        if ns then
          times:add(ns)
          ids:add(id)
        end
      end,
      stop = function() out:print(times:stats().count, ids:stats().sum, calls:count()) end,
    })
  end,
}
EOF
if [ "$(uname -m)" = x86_64 ]; then # 59 is execve
	for way in bpf perf; do
		"$PROFSCRIPT" "$TMP/follow.lua" --capture $way -m 256 -- "$TOP/build/workloads/execs" 10 >"$TMP/out" 2>"$TMP/err"
		expect_line "$way: threads that execute a program" "^21	$((21 * 59))	0\$" "$TMP/out"
	done
	explain "$TMP/follow.lua"
	expect_line 'explain: programs follow them' '^follow: 2 events$' "$TMP/out"
fi

# No key matches.
cat >"$TMP/never.lua" <<EOF
local hist = require 'lib.hist'
local join = require 'lib.join'
return {
  summary = 'Join by keys that never match',
  start = function(_, out)
    local calls, times = join.new(), hist.new()
    return {
      lost = calls.lost,
      ['raw_syscalls:sys_enter'] = function(ev)
        if ev.id == $GETPPID then calls:start(ev._tid + 4194304, ev._time) end
      end,
      ['raw_syscalls:sys_exit'] = function(ev)
        if ev.id ~= $GETPPID then return end
        local ns = calls:finish(ev._tid, ev._time)
        if ns then times:add(ns) end
      end,
      stop = function() out:print(times:stats().count) end,
    }
  end,
}
EOF
for way in bpf perf; do
	workload syscalls 200
	start "$TMP/never.lua" --capture $way -m 256 -p "$WORKLOAD"
	go
	wait $tracer
	expect_line "$way: keys that never match" \
		'^never: lib.join: none of 200 finish\(\) had the key of one of 200 start\(\) before it$' "$TMP/err"
done

for tool in cpudist runqlat syscount wakeuptime; do
	explain "$TOP/examples/$tool.lua"
	check "$tool of the gallery" awk '/^handler/ { n += /counts in the kernel$/; m++ } END { exit n == 0 || n < m }' "$TMP/out"
done
