-- SPDX-License-Identifier: GPL-2.0-only
--- The report of epoll: waits by process, descriptor and what has ended them.
local epoll_waits = require 'lib.engines.net.epoll_waits'
local tables = require 'lib.table'

local report = {}

local AT = epoll_waits.AT

---@class EpollReport
local Report = {}
Report.__index = Report

--- Creates the report.
---@param opt table
---@param out Output
---@param session Session
---@param waits EpollWaits
---@return EpollReport
function report.new(opt, out, session, waits)
  local self = setmetatable({ opt = opt, out = out, session = session, waits = waits,
    spec = tables.new('epoll', {
      { name = 'task' }, { name = 'fd', align = 'right' }, { name = 'woken_by' },
      { name = 'waits', align = 'right', metric = 'counter' }, { name = 'events', align = 'right', metric = 'counter' },
      { name = 'waited_ns', title = 'waited', align = 'right', unit = 'ns' },
      { name = 'latency_ns', title = 'latency', align = 'right', unit = 'ns' },
      { name = 'latency_max_ns', title = 'max', align = 'right', unit = 'ns' },
      { name = 'handling_ns', title = 'handling', align = 'right', unit = 'ns' },
      { name = 'handling_max_ns', title = 'max', align = 'right', unit = 'ns' },
    }) }, Report)
  waits.than = opt.than or math.huge
  function waits.on_handled(...) self:print_handled(...) end
  return self
end

--- Prints a time that a thread handled events.
function Report:print_handled(key, ev, ns)
  local _, fd, by = self.waits:parts(key)
  self.out:row({ 'pid', ev._pid, 'tid', ev._tid, 'comm', ev._comm, 'fd', fd, 'handling_ms', ns / 1e6, 'woken_by', by },
    'handled')
end

local function mean(sum, n) return n > 0 and math.floor(sum / n) or nil end

--- Prints the sums since the last report.
function Report:print()
  local waits, rows, top = self.waits, {}, {}
  local sums = waits.sums
  waits:take(function(key, at)
    local pid, fd, by = waits:parts(key)
    local woken, handled = sums[at + AT.WOKEN], sums[at + AT.HANDLED]
    rows[#rows + 1] = { task = ('%s (%d)'):format(self.session.task_name(pid), pid), fd = fd, woken_by = by,
      waits = sums[at + AT.WAITS], events = sums[at + AT.EVENTS], waited_ns = sums[at + AT.WAITED],
      latency_ns = mean(sums[at + AT.LATENCY], woken), latency_max_ns = woken > 0 and sums[at + AT.LATENCY_MAX] or nil,
      handling_ns = mean(sums[at + AT.HANDLING], handled),
      handling_max_ns = handled > 0 and sums[at + AT.HANDLING_MAX] or nil }
  end)
  table.sort(rows, function(a, b)
    if a.waits ~= b.waits then return a.waits > b.waits end
    if a.task ~= b.task then return a.task < b.task end
    return a.fd < b.fd or a.fd == b.fd and a.woken_by < b.woken_by
  end)
  for i = 1, math.min(#rows, self.opt.top) do top[i] = rows[i] end
  self.out:table(self.spec, top)
  if waits.keys:overflow() > 0 then self.out:warn 'epoll: there are too many keys: some waits are left out' end
end

return report
