-- SPDX-License-Identifier: GPL-2.0-only
--- Moving windows: the rate, sum and quantiles of the values of the last second, or of any other time.
---
---   local recent = require('lib.window').new('1s')
---   return { ['raw_syscalls:sys_exit'] = function(ev)
---     recent:add(ev._time, ev.ret > 0 and ev.ret or 0)
---     if ev.ret > (recent:quantile(0.99) or math.huge) then out:print(ev.ret, recent:rate()) end
---   end }
---
--- A window moves by a tenth of its length at a time. quantile() is of the values before the current tenth, so it is
--- computed ten times per window, not for each event.
local check = require 'bindings.base.check'
local hist = require 'lib.hist'
local units = require 'lib.units'

local window = {}

local PARTS = 10
local floor = math.floor

--- A moving window.
---@class Window
local Window = {}
Window.__index = Window

--- Returns an empty window.
---@param length number|string in ns, or as text: '1s', '100ms'
---@return Window
function window.new(length)
  local ns, message = length, nil
  if type(length) == 'string' then ns, message = units.duration(length) end
  if message then error('window.new: ' .. message, 2) end
  check.is(ns, 'number', 'window.new takes the length of the window')
  check.whole(math.floor(ns), PARTS, 2 ^ 53, 'window.new takes the length of the window in ns')
  local self = setmetatable({
    _step = ns / PARTS, _part = -math.huge, _next = -math.huge, _first = 0, _last = 0, _parts = {},
    _count = 0, _sum = 0, _all = hist.new(), _quantiles = {},
  }, Window)
  for i = 0, PARTS do self._parts[i] = { values = hist.new(), count = 0, sum = 0 } end
  self._now = self._parts[0]
  return self
end

--- Moves the window to the part of the current time. There is one part more than the window has, the current one, which
--- is not in the totals yet.
local function move(self, part)
  if part - self._part > PARTS then self._part = part - PARTS - 1 end
  self._count, self._sum = self._count + self._now.count, self._sum + self._now.sum
  for new = self._part + 1, part do
    local now = self._parts[new % (PARTS + 1)]
    self._count, self._sum = self._count - now.count, self._sum - now.sum
    now.values:clear()
    now.count, now.sum = 0, 0
    self._now = now
  end
  self._part, self._next = part, (part + 1) * self._step
  self._all:clear()
  for i = 0, PARTS do self._all:merge(self._parts[i].values) end
  self._quantiles = {}
end

--- Adds a value.
---@param time number `ev._time`
---@param value? number default: 1
function Window:add(time, value)
  if type(time) ~= 'number' then
    error(('window:add takes a time (ev._time) and a value, not %s as the time'):format(check.shown(time)), 2)
  end
  value = value or 1
  if time >= self._next then
    local part = floor(time / self._step)
    if part > self._part then
      if self._part < 0 then self._first = time end
      move(self, part)
    end
  end
  local now = self._now
  self._last = time
  now.values:add(value)
  now.count = now.count + 1
  now.sum = now.sum + value
end

--- Returns a quantile of the values of the window, without those of its current tenth.
---@param q number 0 to 1
---@return number? value nil if there are none yet
function Window:quantile(q)
  local known = self._quantiles[q]
  if known == nil then
    known = self._all:stats().count > 0 and self._all:quantile(q) or false
    self._quantiles[q] = known
  end
  return known or nil
end

--- Returns the number of values in the window.
---@return integer
function Window:count() return self._count + self._now.count end

--- Returns the sum of the values in the window.
---@return number
function Window:sum() return self._sum + self._now.sum end

--- Returns the values per second in the window, or since the first value if that is less.
---@return number
function Window:rate()
  local since = math.max(self._first, (self._part - PARTS) * self._step)
  local ns = self._last - since
  return ns > 0 and self:count() / ns * 1e9 or 0
end

return window
