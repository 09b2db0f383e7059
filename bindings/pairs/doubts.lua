-- SPDX-License-Identifier: GPL-2.0-only
--- Doubts: which events of two machines are so close together that the clocks do not tell which came first, and how
--- many pairs are shorter than the error of the clocks. Such a latency says only that the events were about
--- simultaneous.
local ffi = require 'ffi'

local C = ffi.C
local doubts = {}

--- Returns a function that returns the error of the clocks between events of two classes, in ns; 0 if both are of the
--- same machine.
---@param run Run
---@return fun(first_class: integer, second_class: integer): number
function doubts.between(run)
  local function machine_of(class)
    local event = run.events.by_class[class]
    return event and event.machine and event.machine.index or 0
  end
  return function(first_class, second_class)
    local first, second = machine_of(first_class), machine_of(second_class)
    if first == second then return 0 end
    return C.session_clock_error(run.session, first, nil) + C.session_clock_error(run.session, second, nil)
  end
end

--- Returns a function that returns how much the times of a machine may be off now, in ns.
---@param session ffi.cdata* struct session *
---@return fun(machine: integer): number
function doubts.of_session(session)
  return function(machine) return C.session_clock_error(session, machine, nil) end
end

---@class Doubts
local Doubts = {}
Doubts.__index = Doubts

--- Returns nil if all events are of the same machine.
---@param error_of fun(machine: integer): number how much its times may be off now, in ns; math.huge: unknown
---@param stages Event[][]
---@return Doubts?
function doubts.new(error_of, stages)
  local machine_of, errors, n = {}, {}, 0
  for _, stage in ipairs(stages) do
    for _, event in ipairs(stage) do
      local index = event.machine and event.machine.index or 0
      machine_of[event.class] = index
      if not errors[index] then errors[index], n = 0, n + 1 end
    end
  end
  if n < 2 then return end
  return setmetatable({
    error_of = error_of, machine_of = machine_of, errors = errors, pairs = 0, short = 0, error = 0, unknown = 0,
  }, Doubts)
end

--- Counts the pairs of a batch.
---@param out ffi.cdata* struct pair[]
---@param n integer
function Doubts:count(out, n)
  local machine_of, errors = self.machine_of, self.errors
  for index in pairs(errors) do errors[index] = self.error_of(index) end
  for i = 0, n - 1 do
    local first, second = machine_of[out[i].first_class], machine_of[out[i].second_class]
    if first ~= second then
      local most = errors[first] + errors[second]
      self.pairs = self.pairs + 1
      if most == math.huge then
        self.unknown = self.unknown + 1
      else
        self.error = math.max(self.error, most)
        if math.abs(out[i].ns) < most then self.short = self.short + 1 end
      end
    end
  end
end

--- Returns a line about these pairs; nil if there are none. The first ones may have come before the error was known:
--- they count, but say nothing about it.
---@return string?
function Doubts:text()
  local short = self.short + self.unknown
  if short == 0 then return end
  local most = ('%.3f us'):format(self.error / 1000)
  return ('%d of %d pairs of different machines are shorter than the error of the clocks (%s)'):format(short,
    self.pairs, self.unknown == 0 and most or self.unknown == self.pairs and 'unknown'
      or ('%s, unknown for %d of them'):format(most, self.unknown))
end

return doubts
