-- SPDX-License-Identifier: GPL-2.0-only
--- Prints what a recording contains, a line for each event with the words of `line` below, separated by tabs.
---   profscript tests/tools/recorded.lua --input perf.data -g
local events = require 'lib.events'

return {
  summary = 'Print what a recording contains',
  start = function(opt, out, session)
    local is_sampled, handlers = {}, {}
    for _, name in ipairs(session.recorded() or {}) do is_sampled[name] = true end

    local function line(ev, address, file)
      local chain = {}
      for i, frame in ipairs(ev._stack >= 0 and session.frames(ev._stack) or {}) do
        chain[i] = ('%016x'):format(frame.address)
      end
      out:printf('%.0f\t%s\t%d\t%d\t%s\t%d\t%.0f\t%s\t%s\t%s\n', ev._time + session.time_base(), ev._event, ev._pid,
        ev._tid, ev._comm:gsub('%c', '?'), ev._cpu, ev._period, address, file, table.concat(chain, ' '))
    end
    local function sample(ev)
      local address = ev:u64 '_ip'
      local frame = session.address(ev, address)
      line(ev, ('%016x'):format(address), frame and frame.dso or '')
    end
    local function tracepoint(ev) line(ev, '', '') end

    for _, event in ipairs(events.list(opt.event)) do
      handlers[event] = is_sampled[event.name] and sample or tracepoint
    end
    return handlers
  end,
}
