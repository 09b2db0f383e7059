-- SPDX-License-Identifier: GPL-2.0-only
--- Reports of profilers that count: one at the end of each interval and of the run, at most as many as -N says.
---
---   options = reports.options { syscalls = ... },
---   start = function(opt, out, session)
---     ...
---     return reports.handlers(opt, session, function(time) out:table(spec, rows_until(time)) end)
---   end
local reports = {}

--- Adds the options -i, every second by default, and -N to those of a profiler.
---@param own table<string, table> options of the profiler
---@return table<string, table> own
function reports.options(own)
  own.interval, own.exit_n = { default = '1s' }, { help = 'stop after this many reports' }
  return own
end

--- Returns a function that makes a report, and ends the run after -N reports. It returns whether more are wanted.
---@param opt table options of reports.options()
---@param session Session
---@param report fun(...: any): boolean? makes a report; false: there was nothing to report
---@return fun(...: any): boolean
function reports.limited(opt, session, report)
  local left = opt.exit_n or math.huge
  return function(...)
    if left > 0 and report(...) ~= false then left = left - 1 end
    if left == 0 then session.stop() end
    return left > 0
  end
end

--- Returns the handlers that make the reports.
---@param opt table options of reports.options()
---@param session Session
---@param report fun(time: number) makes a report
---@param own? table other handlers, to which these are added
---@return table handlers
function reports.handlers(opt, session, report, own)
  local handlers = own or {}
  handlers.interval = reports.limited(opt, session, report)
  handlers.stop = handlers.interval
  return handlers
end

return reports
