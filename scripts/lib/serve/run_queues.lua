-- SPDX-License-Identifier: GPL-2.0-only
--- How many tasks waited for each CPU, from the scheduler's events that are kept for the page of --serve: for each part
--- of a time their mean and maximum.
local ffi = require 'ffi'
local queues = require 'lib.export.queues'

local C = ffi.C
local run_queues = {}

local MAX_PARTS = 400
local BEFORE = 20000 -- events before the time, which say who waits at its beginning

--- Returns whether events that reach this process say how many tasks wait.
---@param list Event[] of a run
---@return boolean
function run_queues.has(list)
  for _, event in ipairs(list) do
    if event.name == 'sched:sched_switch' and not event.machine and event.fields.prev_state
      and event.request.counted ~= 1 and not event.route.does then
      return true
    end
  end
  return false
end

--- Returns whether events of this time or later ones had no room.
local function has_dropped(rows, time)
  local stats = ffi.new 'struct rows_stats'
  C.rows_read_stats(rows, stats)
  return stats.dropped > 0 and stats.dropped_until >= time
end

--- The queue of one CPU over the parts of a time.
---@class QueueParts
---@field length integer how many wait
---@field at number ns: since when
---@field sums table<integer, number> by part, from 0: ns of waiting
---@field most table<integer, integer> by part

---@class QueueTime
---@field from number ns
---@field to number
---@field width number of a part
---@field cpus table<integer, QueueParts>
local QueueTime = {}
QueueTime.__index = QueueTime

--- Adds the time until now, in which the same tasks waited.
---@param parts QueueParts
---@param time number
function QueueTime:add(parts, time)
  local from, to = math.max(parts.at, self.from), math.min(time, self.to)
  parts.at = time
  if to <= from or parts.length <= 0 then return end
  local width, length = self.width, parts.length
  local last = math.ceil((to - self.from) / width) - 1
  for i = math.floor((from - self.from) / width), last do
    local begin = self.from + i * width
    local ns = math.min(to, begin + width) - math.max(from, begin)
    parts.sums[i] = (parts.sums[i] or 0) + length * ns
    parts.most[i] = math.max(parts.most[i] or 0, length)
  end
end

--- A queue has another length from now on.
function QueueTime:change(cpu, time, length)
  local parts = self.cpus[cpu]
  if not parts then
    parts = { length = 0, at = time, sums = {}, most = {} }
    self.cpus[cpu] = parts
  end
  self:add(parts, time)
  parts.length = length
end

--- Returns the CPUs as JSON: [cpu, [mean...], [maximum...]].
function QueueTime:json(n)
  local order, list = {}, {}
  for cpu in pairs(self.cpus) do order[#order + 1] = cpu end
  table.sort(order)
  for at, cpu in ipairs(order) do
    local parts, means, most = self.cpus[cpu], {}, {}
    self:add(parts, self.to)
    for i = 0, n - 1 do
      means[i + 1] = ('%.3g'):format((parts.sums[i] or 0) / self.width)
      most[i + 1] = parts.most[i] or 0
    end
    list[at] = ('[%d,[%s],[%s]]'):format(cpu, table.concat(means, ','), table.concat(most, ','))
  end
  return '[' .. table.concat(list, ',') .. ']'
end

--- Returns the time of a question that the kept events span.
local function span(kept, n, first, asked, is_cut)
  if n == 0 then return 0, 0 end
  local from = asked.from
  if is_cut or first == 0 then from = math.max(from, kept[math.min(first, n - 1)].time) end
  return from, math.max(math.min(asked.to, kept[n - 1].time), from)
end

--- Reads the kept events of a time, and some before it.
---@param list Event[]
---@param rows ffi.cdata* struct rows *
---@param asked { from: number, to: number, queues: integer } ns; queues: the number of parts
---@param limit number of events to read, the last ones
---@return { json: string, from: number, to: number, is_cut: boolean, is_partial: boolean, has_wakeups: boolean } found
--- json: the CPUs; from, to: the time of the parts, ns; is_cut: the events before are missing; is_partial: the switches
--- of many tasks are; has_wakeups: the beginnings of waits after a sleep are seen
function run_queues.read(list, rows, asked, limit)
  local kept, n = C.rows_of(rows, 0), C.rows_count(rows, 0)
  local first, last = C.rows_before(rows, 0, asked.from), C.rows_before(rows, 0, asked.to + 1) - 1
  local time, parts = setmetatable({ cpus = {} }, QueueTime), math.max(1, math.min(asked.queues, MAX_PARTS))
  local is_cut = last - first >= limit
  if is_cut then first = last - limit + 1 end
  time.from, time.to = span(kept, n, first, asked, is_cut)
  time.width = math.max(time.to - time.from, 1) / parts
  local queue = queues.new { length = function(cpu, at, length) time:change(cpu, at, length) end }
  local takers, has_wakeups = {}, false
  for _, event in ipairs(list) do
    if event.class then takers[event.class] = queue:of(event) end
    has_wakeups = has_wakeups or event.name == 'sched:sched_wakeup' or event.name == 'sched:sched_waking'
  end
  for i = math.max(0, first - BEFORE), last do
    local e = kept[i]
    local take = takers[e.class]
    if take then take(e) end
  end
  return { json = time:json(parts), from = time.from, to = time.to, is_partial = queue.is_partial,
    has_wakeups = has_wakeups,
    is_cut = is_cut or first == 0 and has_dropped(rows, asked.from) }
end

return run_queues
