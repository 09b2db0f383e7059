#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only
# `profscript check` finds mistakes without starting a script.
. "$(dirname "$0")/../../lib.sh"
cd "$TMP" || exit 1

cat >good.lua <<'E'
return {
  summary = 'S',
  options = { top = { type = 'integer', help = 'rows' } },
  start = function(opt, out)
    os.remove 'started'
    return { ['sched:sched_switch'] = function(ev) out:print(ev.next_pid, opt.top, opt.interval) end }
  end,
}
E
cat >global.lua <<'E'
return { summary = 'S', start = function(_, out)
  return { ['sched:sched_switch'] = function(ev)
    if ev._cpu > 1e6 then prnt(ev) end
  end }
end }
E
cat >option.lua <<'E'
return { summary = 'S', options = { top = { type = 'integer', help = 'rows' } }, start = function(opt, out)
  if opt.tpo then return end
  return { ['sched:sched_switch'] = function(ev)
    if ev._cpu > 1e6 then out:print(opt.intervall) end
  end }
end }
E
: >started
"$PROFSCRIPT" check good.lua global.lua option.lua >out 2>err
check 'mistakes are a failure' test $? -eq 1
cat >expected <<'E'
good.lua: ok
global.lua:3: undeclared global 'prnt'; did you mean 'print'?
option.lua:2: no such option 'tpo'; did you mean 'top'?
option.lua:4: no such option 'intervall'; did you mean 'interval'?
E
check 'each is at its line, in branches never taken too' diff expected out
expect_line 'and they are counted' '^profscript: 2 of 3 scripts have mistakes$' err
check 'no script is started' test -e started
echo "return { short = function(s) return s:sub(1, 9) end }" >module.lua
"$PROFSCRIPT" check module.lua >out 2>&1
check 'a module of other scripts is a success' test $? -eq 0
echo "return { short = function(s) return str:sub(1, 9) end }" >module.lua
"$PROFSCRIPT" check module.lua >out 2>&1
expect_line 'unless it has mistakes' "^module.lua:1: undeclared global 'str'" out
check 'a good script is a success' "$PROFSCRIPT" check good.lua "$TOP"/examples/*.lua
"$PROFSCRIPT" ./option.lua --input "$DATA/sched.data" >out 2>err
check 'a run is refused before it starts' test $? -eq 2 -a ! -s out

# What the formats of events tell, where they may be read.
cat >formats.lua <<'E'
local counter = require 'lib.counter'
return { summary = 'S', start = function(_, out)
  local c = counter.create { 'pid' }
  return {
    ['sched:sched_switchh'] = function(ev) out:print(ev.x) end,
    ['sched:sched_switch'] = function(ev) if ev.prev_pid == '0' then out:print(ev.prev_pdi) end end,
    ['sched:sched_switch/prev_pidd==0/'] = function(ev) if ev.prev_comm ~= 0 then c:add(1, ev.prev_pid) end end,
    intervall = function() end,
  }
end }
E
echo "return { summary = 'S', start = function() local t = {} return end }" >nothing.lua
echo "return { summary = 'S', start = function(opt, out) session.stop() return {} end }" >session.lua
echo "return { summary = 'S', start = function(_, out) return { ['a:b'] = function(ev) out:print(ev.end) end } end }" >word.lua
if [ -r /sys/kernel/tracing/events/sched/sched_switch/format ]; then
	"$PROFSCRIPT" check formats.lua >out 2>&1
	expect_line 'a wrong module member' "^formats.lua:3: lib.counter has no 'create'" out
	expect_line 'a wrong event' "^formats.lua:5: no such event 'sched:sched_switchh'; did you mean" out
	expect_line 'a number that is compared with text' "^formats.lua:6: ev.prev_pid is a number, .* '0'; write 0 without quotes" out
	expect_line 'a wrong field' "^formats.lua:6: event .* has no field 'prev_pdi'; did you mean 'prev_pid'" out
	expect_line 'a wrong filter' "^formats.lua:7: bad filter of sched:sched_switch 'prev_pidd==0'" out
	expect_line 'a wrong handler' "^formats.lua:8: unknown handler 'intervall'; did you mean 'interval'" out
else
	skip 'mistakes that formats tell' 'formats cannot be read'
fi
"$PROFSCRIPT" check nothing.lua session.lua word.lua >out 2>&1
expect_line 'a start that returns nothing' '^nothing.lua:1: start returns nothing' out
expect_line 'a parameter that is missing' "undeclared global 'session'; write start = function" out
expect_line 'a field that is a word of Lua' "near 'end'; 'end' is a word of Lua: write ev" out

cat >keys.lua <<'E'
local seen = {}
return { summary = 'S', start = function() return { ['block:block_rq_issue'] = function(ev)
  seen[ev.dev * 2 ^ 32 + ev.sector] = true
  seen[ev.nr_sector + ev.dev * 4294967296] = true
  seen[tostring(ev:u64 'dev' * 0x100000000 + ev.sector)] = ev._time * 1e9
  seen[ev.dev * 1000 + ev.nr_sector] = true
end } end }
E
"$PROFSCRIPT" check keys.lua >out 2>err
check 'a sum that is not exact is no mistake' test $? -eq 0
check 'but there is a warning' test "$(grep -c 'warning: the sum is not exact beyond 2^53' out)" -eq 2
expect_line 'at its line' '^keys.lua:3: warning' out
expect_line 'in any order' '^keys.lua:4: warning' out
