-- SPDX-License-Identifier: GPL-2.0-only
--- The report of epoll: waits by process, descriptor and what has ended them.
local epoll_waits = require 'lib.engines.net.epoll_waits'
local rows = require 'lib.engines.rows'
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

--- Prints the sums since the last report.
function Report:print()
  local waits, list = self.waits, {}
  local sums = waits.sums
  waits:take(function(key, at)
    local pid, fd, by = waits:parts(key)
    local woken, handled = sums[at + AT.WOKEN], sums[at + AT.HANDLED]
    list[#list + 1] = { task = rows.task(self.session, pid), fd = fd, woken_by = by,
      waits = sums[at + AT.WAITS], events = sums[at + AT.EVENTS], waited_ns = sums[at + AT.WAITED],
      latency_ns = rows.mean(sums[at + AT.LATENCY], woken),
      latency_max_ns = woken > 0 and sums[at + AT.LATENCY_MAX] or nil,
      handling_ns = rows.mean(sums[at + AT.HANDLING], handled),
      handling_max_ns = handled > 0 and sums[at + AT.HANDLING_MAX] or nil }
  end)
  table.sort(list, function(a, b)
    if a.waits ~= b.waits then return a.waits > b.waits end
    if a.task ~= b.task then return a.task < b.task end
    return a.fd < b.fd or a.fd == b.fd and a.woken_by < b.woken_by
  end)
  rows.print(self.out, self.spec, list, self.opt.top)
  if waits.keys:overflow() > 0 then self.out:warn 'epoll: there are too many keys: some waits are left out' end
end

return report
