-- SPDX-License-Identifier: GPL-2.0-only
--- Clock samples at which a condition on event counts is true (hrtimer, irq-off). As a source it passes on these, and
--- the events that it counts.
local tables = require 'lib.table'

local condition = {}

--- Returns the handlers of a profiler that prints such samples.
---@param name string name of the profiler, which its lines start with
---@param period number of the clock, in ns
---@param text string the condition, a C expression over the counts, see counts:condition()
---@param opt table
---@param out Output
---@param session Session
---@return table handlers
function condition.start(name, period, text, opt, out, session)
  local clock = session.event {
    'cpu-clock',
    period = period,
    sample = { 'read' },
  }
  local counts = session.count(opt.event or {}, { by = clock })
  local is_true = counts:condition(text)
  local left, pass = opt.exit_n or math.huge, session.gate()
  local order = { 'time', 'cpu', 'pid', 'tid', 'comm', 'period' }
  for _, event in ipairs(counts.events) do order[#order + 1] = event.alias end
  if opt.call_graph then order[#order + 1] = 'stack' end
  tables.record(name, order)
  local elapsed -- since the clock's sample before

  local function print_fields(ev)
    local fields = {
      time = out:seconds(ev._time),
      cpu = ev._cpu, pid = ev._pid, tid = ev._tid, comm = ev._comm, period = elapsed,
    }
    for i, event in ipairs(counts.events) do
      fields[event.alias] = counts:has(ev._cpu, i) and counts:delta(i) or nil
    end
    if opt.call_graph then fields.stack = session.stack_lines(ev._stack) end
    out:record(name, fields, order)
  end

  return {
    describe = function(ev)
      if ev._event ~= clock.name then return end
      return elapsed and not pass and ('%s: cpu-clock %d ns'):format(name, elapsed) or name .. ': cpu-clock'
    end,
    [clock] = function(ev)
      local total
      total, elapsed = counts:take(ev)
      if not total or left == 0 or not is_true() then return end
      if pass then return pass(ev) end
      if out.format == 'text' then
        out:print_event(ev)
        for i, event in ipairs(counts.events) do
          if counts:has(ev._cpu, i) then out:printf('    %s %d\n', event.alias, counts:delta(i)) end
        end
      else
        print_fields(ev)
      end
      left = left - 1
      if left == 0 then session.stop() end
    end,
  }
end

return condition
