-- SPDX-License-Identifier: GPL-2.0-only
--- Loss: counts the lost events of a run, reports them to the user and passes them to the script.
local bit = require 'bit'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'

local C = ffi.C
local loss = {}

local REPORT_EVERY = 1e9 -- ns of event time between two reports
local MAX_LINES = 4 -- of a report, for the CPUs or threads that lost most
local PAGE = 4096
local MAX_ADVICE = 2 ^ 15 -- pages, 128 MiB per ring

-- Bytes of a record in the ring, roughly.
local RECORD, CHAIN = 112, 512

---@class Loss
---@field total integer records lost so far
local Loss = {}
Loss.__index = Loss

---@param name string the profiler's name
---@param opt table parsed options
---@param out Output
---@param axis Axis how times are printed
---@param host fun(member: integer): string? the name of another machine
---@return Loss
function loss.new(name, opt, out, axis, host)
  return setmetatable({ total = 0, _name = name, _opt = opt, _out = out, _axis = axis, _host = host, _places = {},
    _reported_at = -math.huge, _is_due = false, _own = 0, _most = 0, _in_rings = {}, _on_way = {} }, Loss)
end

--- Sets the script's handler, called for each loss.
---@param handler? fun(gap: { lost: integer, from: number, to: number, cpu?: integer, tid?: integer })
function Loss:set_handler(handler) self._handler = handler end

local function events_text(n) return ('%d event%s'):format(n, n == 1 and '' or 's') end

--- Returns the name of the machine of an event; nil: this one.
function Loss:_host_of(e) return self._host(bit.rshift(e.flags, C.EVENT_MEMBER_SHIFT)) end

function Loss:_where(e)
  local host = self:_host_of(e)
  if host then return e.cpu >= 0 and ('CPU #%d of %s'):format(e.cpu, host) or host end
  return e.cpu >= 0 and 'CPU #' .. e.cpu or e.tid >= 0 and 'thread #' .. e.tid or 'an unknown CPU'
end

--- Returns the line about the losses of one place.
function Loss:_line(place)
  local value, unit = self._axis.value, self._axis.unit
  local form = unit == 's' and '%.6f' or '%d'
  local from, to = form:format(value(place.from)), form:format(value(place.to))
  local span = place.to > place.from and ('between %s and %s'):format(from, to) or 'at ' .. from
  local what = place.lost and events_text(place.lost) or 'an unknown number of events'
  return ('%s: lost %s on %s %s %s'):format(self._name, what, place.where, span, unit)
end

--- Adds a loss to what the advice at the end is about. Rings belong to a CPU or thread; a link to none.
function Loss:_blame(e, n)
  local host = self:_host_of(e)
  local list = e.cpu < 0 and e.tid < 0 and self._on_way or self._in_rings
  if not host then
    self._own, self._most = self._own + n, math.max(self._most, n)
  elseif not list[host] then
    list[host], list[#list + 1] = true, host
  end
end

--- Adds a loss to those that the next report is about.
function Loss:_keep(gap)
  local places = self._places
  local known = places[gap.where]
  if known then
    known.lost = known.lost + gap.lost
    known.from, known.to = math.min(known.from, gap.from), math.max(known.to, gap.to)
  else
    places[gap.where], places[#places + 1] = gap, gap
  end
end

--- Reports that events of another machine are missing, but not how many: it was started again meanwhile.
function Loss:_unknown(e)
  self._out:warn(self:_line { where = self:_where(e), from = e.time, to = tonumber(e.key) })
end

--- Returns what handlers get of a loss.
---@param e ffi.cdata* struct event *, an EVENT_LOST
---@return { lost: number, from: number, to: number, cpu?: integer, tid?: integer }
function Loss.gap(e)
  local is_ours = bit.rshift(e.flags, C.EVENT_MEMBER_SHIFT) == 0
  return {
    lost = tonumber(e.period),
    from = e.time,
    to = tonumber(e.key),
    cpu = is_ours and e.cpu >= 0 and e.cpu or nil,
    tid = is_ours and e.tid >= 0 and e.tid or nil,
  }
end

--- Counts a loss. With -v it is reported immediately, otherwise together with others of the same second.
---@param e ffi.cdata* struct event *, an EVENT_LOST
function Loss:note(e)
  local n, opt = tonumber(e.period), self._opt
  local member = bit.rshift(e.flags, C.EVENT_MEMBER_SHIFT)
  if n == 0 and (member > 0 or e.cpu < 0) then
    self:_unknown(e)
  elseif n == 0 then
    self._out:warn(('%s: CPU #%d came online; its events before %.3f s are missing'):format(self._name, e.cpu,
      tonumber(e.key) / 1e9))
  end
  self.total = self.total + n
  if n > 0 and opt.lost == 'error' then
    failure.raise('%s: lost %s; stopped because of --lost=error', self._name, events_text(n))
  end
  if n > 0 and opt.lost ~= 'ignore' then
    local gap = { where = self:_where(e), host = self:_host_of(e), lost = n, from = e.time, to = tonumber(e.key) }
    self:_blame(e, n)
    if opt.verbose >= 1 then self._out:warn(self:_line(gap)) else self:_keep(gap) end
  end
  if e.time - self._reported_at >= REPORT_EVERY then
    self._reported_at, self._is_due = e.time, true
  end
  if self._handler then self._handler(self.gap(e)) end
end

--- Reports once a second. Called after each batch: printing would end the compiled loop over the events.
function Loss:poll()
  if not self._is_due then return end
  self._is_due = false
  self:report()
end

local function lost_more(a, b)
  if a.lost ~= b.lost then return a.lost > b.lost end
  return a.where < b.where
end

--- Prints the losses since the last report, if there are any: a line for each CPU or thread, and one for the rest.
function Loss:report()
  local places = self._places
  if #places == 0 then return end
  table.sort(places, lost_more)
  for _, place in ipairs(places) do
    if not place.host then self._most = math.max(self._most, place.lost) end
  end
  local lines = {}
  for i = 1, math.min(#places, MAX_LINES) do lines[i] = self:_line(places[i]) end
  local rest = 0
  for i = MAX_LINES + 1, #places do rest = rest + places[i].lost end
  if rest > 0 then
    lines[#lines + 1] = ('%s: lost %d events on %d other CPUs or threads'):format(self._name, rest, #places - MAX_LINES)
  end
  lines[#lines] = ('%s (%d in total)'):format(lines[#lines], self.total)
  for _, line in ipairs(lines) do self._out:warn(line) end
  self._places = {}
end

--- Returns the size of rings that would also have held the most that one of them lost between two reports.
---@return integer pages a power of two
function Loss:_larger()
  local opt = self._opt
  local chosen = opt.call_graph
  local size = RECORD + (chosen and CHAIN or 0) + (type(chosen) == 'table' and chosen.bytes or 0)
  local wanted, pages = opt.mmap_pages + self._most * size / PAGE, opt.mmap_pages * 2
  while pages < wanted and pages < MAX_ADVICE do pages = pages * 2 end
  return pages
end

--- Suggests how to lose fewer events, at the end of a run with losses.
---@param is_recorded boolean the events of this machine are in the past
function Loss:advise(is_recorded)
  local opt, name = self._opt, self._name
  if self.total == 0 or opt.lost ~= 'warn' or opt.quiet then return end
  if self._own > 0 and not is_recorded then
    self._out:warn(('%s: to lose fewer events, use larger ring buffers (-m %d)%s or a filter'):format(name,
      self:_larger(), opt.realtime and '' or ', -r 1'))
  end
  if #self._in_rings > 0 then
    self._out:warn(('%s: to lose fewer events on %s, let the sender use larger ring buffers (-m), -r 1 or a filter')
      :format(name, table.concat(self._in_rings, ', ')))
  end
  if #self._on_way > 0 then
    self._out:warn(("%s: to lose fewer events on the way from %s, let the sender filter them, or write them to a file "
      .. 'to analyze later (--push FILE)'):format(name, table.concat(self._on_way, ', ')))
  end
end

return loss
