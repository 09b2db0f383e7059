#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# Handlers of scripts that only count: BPF programs count what the handlers would have, in the same run. `explain` says
# which do, and why the others do not.
# Runs alone.
. "$(dirname "$0")/../../../lib.sh"
needs_tracepoint raw_syscalls:sys_enter raw_syscalls:sys_exit

exec_once=('count()' -e raw_syscalls:sys_enter --duration 1ms -q)
"$PROFSCRIPT" exec --capture bpf "${exec_once[@]}" >/dev/null 2>"$TMP/err" || skip_all "$(head -n 1 "$TMP/err")"

explain() { "$PROFSCRIPT" explain "$@" >"$TMP/out" 2>"$TMP/err"; }

cat >"$TMP/counts.lua" <<'EOF'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
local hist = require 'lib.hist'
local total = 0

return {
  summary = 'Count system calls in several ways',
  options = {
    enter = { type = 'event', required = true, help = 'start' },
    leave = { type = 'event', required = true, help = 'end' },
    lua = { type = 'flag', help = 'look at the values while events arrive' },
  },
  start = function(opt, out)
    local calls, values = counter.new { 'call', 'comm' }, hist.new()
    local sums, times = counter.new({ 'cpu', 'event' }, { name = 'sums' }), aggregate.new('quantiles', { 'call' })
    local bars, returns = aggregate.new('hist', {}), aggregate.new('count', { 'ret' }, { name = 'returns' })
    local failed, ids = 0, 0
    local function report()
      for _, one in ipairs { calls, sums, times, bars, returns } do one:print(out) end
      local stats = values:stats()
      out:row { 'total', total, 'failed', failed, 'ids', ids, 'n', stats.count, 'sum', stats.sum, 'min', stats.min,
        'negative', stats.negative, 'p99', values:quantile(0.99) }
      total, failed, ids = 0, 0, 0
      for _, one in ipairs { calls, sums, times, bars, returns, values } do one:clear() end
    end
    return {
      [opt.enter] = function(ev)
        calls:add(1, ev.id, ev._comm)
        calls:add(2, 7, 'both')
        times:add(ev.id, ev.id)
        total = total + 3
        ids = ids + ev._tid
      end,
      [opt.leave] = function(ev)
        if ev.ret > 0 and ev._comm == 'syscalls' then
          failed = failed + 1
          sums:add(ev.ret, ev._cpu, ev._event)
          values:add(ev.ret)
          bars:add(ev.ret)
          returns:add(ev.ret)
        end
      end,
      comm = opt.lua and function() total = total + 0 end or nil,
      interval = report,
      stop = report,
    }
  end,
}
EOF

workload -C 0 syscalls 3000
enter="raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/"
leave="raw_syscalls:sys_exit/id==$GETPPID&&_tid==$WORKLOAD/"
capture_agrees 'handlers that count' "$TMP/counts.lua" --enter "$enter" --leave "$leave"
expect_line 'their keys' ",$GETPPID,syscalls,3000\$" "$TMP/out"
expect_line 'their sums' ',raw_syscalls:sys_exit,[0-9]{5,}$' "$TMP/out"
expect_line 'their variables' ",9000,3000,$((3000 * WORKLOAD)),3000," "$TMP/out"

# More keys than a counter takes, and an interval after which the counters are cleared.
cat >"$TMP/few.lua" <<'EOF'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
return {
  summary = 'Count few system calls',
  options = { enter = { type = 'event', required = true, help = 'start' } },
  start = function(opt, out)
    local calls = counter.new({ 'id' }, { max_keys = 1 })
    local values, n = aggregate.new('quantiles', { 'id' }, { max_keys = 1 }), 0
    local function report()
      calls:print(out)
      values:print(out)
      calls:clear()
      values:clear()
    end
    return {
      [opt.enter] = function(ev)
        calls:add(1, ev.id)
        values:add(ev.id, ev.id)
        n = n + 1
      end,
      interval = report,
      stop = function()
        report()
        out:row { 'n', n }
      end,
    }
  end,
}
EOF
workload -C 0 syscalls 2000
capture_agrees 'more keys than there is room for' "$TMP/few.lua" --enter "raw_syscalls:sys_enter/common_pid==$WORKLOAD/"
expect_line 'those without room' '^count,\(other\),[0-9]+$|,\(other\),[0-9]+$' "$TMP/out"

# Values that are computed, with options and variables that are never assigned again.
cat >"$TMP/computed.lua" <<'EOF'
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
local hist = require 'lib.hist'
local floor = math.floor
local base = 7

return {
  summary = 'Count what is computed from system calls',
  options = {
    enter = { type = 'event', required = true, help = 'start' },
    leave = { type = 'event', required = true, help = 'end' },
    unit = { type = 'integer', default = 4, help = 'divide by this' },
    least = { type = 'integer', default = 0, help = 'ignore lower results' },
    name = { type = 'string', default = 'of getppid', help = 'a part of the key' },
  },
  start = function(opt, out)
    local calls, returns = counter.new { 'call', 'group', 'name' }, aggregate.new('quantiles', { 'low' })
    local values, total = hist.new(), 0
    local function report()
      calls:print(out)
      returns:print(out)
      out:row { 'total', total, 'sum', values:stats().sum, 'p50', values:quantile(0.5) }
    end
    return {
      [opt.enter] = function(ev)
        calls:add(ev.id * 2 - base, ev.id % 16, floor(ev._tid / opt.unit), opt.name)
        total = total + (ev.id + base) * 3
      end,
      [opt.leave] = function(ev)
        local result = ev.ret - base
        if result > opt.least then
          returns:add(result / 3, bit.band(ev.ret, 3))
          values:add(result * 10)
        end
      end,
      stop = report,
    }
  end,
}
EOF
workload -C 0 syscalls 3000
enter="raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/"
leave="raw_syscalls:sys_exit/id==$GETPPID&&_tid==$WORKLOAD/"
capture_agrees 'handlers that compute' "$TMP/computed.lua" --enter "$enter" --leave "$leave"
expect_line 'their sums' "^row,$(((GETPPID + 7) * 9000)),[0-9]{6,},[0-9]+$" "$TMP/out"
expect_line 'their keys' "^count,$((GETPPID % 16)),$((WORKLOAD / 4)),of getppid,$(((2 * GETPPID - 7) * 3000))$" "$TMP/out"

workload -C 0 syscalls 3000
capture_agrees 'one-liners that compute' exec -e "raw_syscalls:sys_enter/id==$GETPPID&&common_pid==$WORKLOAD/" \
	'if ev._tid % 2 < 2 then count(ev.id % 16, math.floor(ev._tid / 10)) hist((ev.id - 100) / 2) end'
expect_line 'their keys' ",$((GETPPID % 16)),$((WORKLOAD / 10)),3000$" "$TMP/out"

workload -C 0 syscalls 3000
code="if ev.id == $GETPPID then count('it', 1) else count('others', 2) end if ev.id < 0 then count('none', ev.id) end"
code+=" count(ev.id == $GETPPID and 'chosen' or 'left', ev.id == $GETPPID and 5 or 6)"
capture_agrees 'one-liners with conditions around parts' exec -e "raw_syscalls:sys_enter/common_pid==$WORKLOAD/" "$code"
for key in it,1 chosen,5; do expect_line "their key $key" ",$key,3000\$" "$TMP/out"; done
explain exec -e raw_syscalls:sys_enter "$code"
expect_line 'and run in the kernel' '^handler of raw_syscalls:sys_enter .*: counts in the kernel$' "$TMP/out"

# Handlers that only do something for some events: programs leave out the others.
cat >"$TMP/than.lua" <<'EOF'
return {
  summary = 'Print some system calls',
  options = {
    enter = { type = 'event', required = true, help = 'start' },
    than = { type = 'integer', default = 0, help = 'ignore lower numbers' },
  },
  start = function(opt, out)
    return {
      [opt.enter] = function(ev)
        if ev.id < opt.than then return end
        if ev._comm == 'syscalls' then
          out:row { 'id', ev.id, 'comm', ev._comm }
        end
      end,
    }
  end,
}
EOF
workload -C 0 syscalls 300
some=("$TMP/than.lua" --enter "raw_syscalls:sys_enter/common_pid==$WORKLOAD/" --than "$GETPPID")
capture_agrees 'handlers with conditions' "${some[@]}"
check 'what they do' test "$(grep -c "$GETPPID,syscalls" "$TMP/out")" = 300
workload -C 0 syscalls 300
start "$TMP/than.lua" --enter "raw_syscalls:sys_enter/common_pid==$WORKLOAD/" --than 100000 --capture bpf -v
go
stop
expect_line 'programs leave out the other events' '^profscript: 0 events, 0 lost' "$TMP/err"

script=("$TMP/counts.lua" --enter raw_syscalls:sys_enter --leave raw_syscalls:sys_exit)

explain "${script[@]}"
expect_line 'explain: a handler in the kernel' '^handler of raw_syscalls:sys_exit \(.*/counts.lua:[0-9]+\): counts in' "$TMP/out"
expect_line 'its event' '^  raw_syscalls:sys_exit: .* counted in the kernel, by a BPF program' "$TMP/out"
expect_line 'its lines' '^ +[0-9]+  calls:add\(1, ev.id, ev._comm\) +-- in the kernel; reads id, _comm$' "$TMP/out"
expect_line 'what stays in Lua' '^other handlers, in Lua: interval, stop$' "$TMP/out"

explain "${script[@]}" --lua
expect_line 'explain: a variable that another handler uses' "^  why: 'total' is also used by the handler comm$" "$TMP/out"
expect_line 'only the handlers with that variable' '^handler of raw_syscalls:sys_exit .*: counts in the kernel$' "$TMP/out"
explain "${script[@]}" --capture perf
expect_line 'explain: as the user says' '^  why: as --capture says$' "$TMP/out"
expect_line 'and its event' '^    not captured by a BPF program: as --capture says$' "$TMP/out"
explain trace -e page-faults
expect_line 'explain: an event of perf' '^    not captured by a BPF program: page-faults is not a tracepoint' "$TMP/out"
explain top -e raw_syscalls:sys_enter -C 0
expect_line 'explain: a declared tally' '^handler of raw_syscalls:sys_enter: counts what the script declares' "$TMP/out"
explain list
expect_line 'explain: a tool' '^profscript: list traces no events$' "$TMP/err"

explain "$TMP/computed.lua" --enter raw_syscalls:sys_enter --leave raw_syscalls:sys_exit
expect_line 'explain: what is computed' '^ +[0-9]+  local result = ev.ret - base +-- in the kernel; reads ret$' "$TMP/out"

explain "$TMP/than.lua" --enter raw_syscalls:sys_enter
expect_line 'explain: conditions' '^handler of raw_syscalls:sys_enter .*: runs in Lua for the events that pass its first' "$TMP/out"
expect_line 'and where they are checked' ' if ev.id < opt.than then return end +-- in the kernel; reads id$' "$TMP/out"
explain "$TMP/than.lua" --enter raw_syscalls:sys_enter --capture perf
expect_line 'explain: through perf' '^handler of raw_syscalls:sys_enter .*: runs in Lua for each event$' "$TMP/out"

cat >"$TMP/shared.lua" <<'EOF'
local map = require 'lib.map'
local counter = require 'lib.counter'
return {
  summary = 'Handlers that share what they count',
  start = function(_, out)
    local some, calls = map.new(), counter.new { 'id' }
    local own, other, both = counter.new { 'id' }, counter.new { 'id' }, counter.new { 'id' }
    local total = 0
    local add = calls.call
    return {
      ['raw_syscalls:sys_enter'] = function(ev) calls:add(1, ev.id) end,
      ['raw_syscalls:sys_exit'] = function(ev) add(1, #ev._comm) end,
      ['sched:sched_switch'] = function(ev) some:add(ev.prev_pid) end,
      ['sched:sched_wakeup'] = function(ev) own:add(1, ev.pid, 3) end,
      ['sched:sched_wakeup_new'] = function(ev) both:add(1, ev.pid) total = total + 1 end,
      ['sched:sched_migrate_task'] = function(ev) both:add(1, ev.pid) end,
      ['irq:softirq_entry'] = function() total = total + 1 end,
      ['sched:sched_process_fork'] = function(ev) other:add(ev.parent_comm, ev.child_pid) end,
      stop = function() calls:print(out) some:each(print) own:print(out) other:print(out) both:print(out, total) end,
    }
  end,
}
EOF
explain "$TMP/shared.lua"
expect_line 'a counter that another handler adds to' "^  why: 'calls' is also used by the handler at line 12$" "$TMP/out"
expect_line 'a map' '^  why: line 13: a map may have any number of keys' "$TMP/out"
expect_line 'arguments that are wrong' '^  why: line 14: it has the wrong number of arguments$' "$TMP/out"

expect_line 'a value that is text' '^  why: line 18: it adds what is not a number$' "$TMP/out"
for event in sched:sched_wakeup_new sched:sched_migrate_task irq:softirq_entry; do
	expect_line 'what is shared by handlers that only count' "^handler of $event .*: counts in the kernel$" "$TMP/out"
done
