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

---@class Doubts
local Doubts = {}
Doubts.__index = Doubts

--- Returns nil if all events are of the same machine.
---@param session ffi.cdata* struct session *
---@param stages Event[][]
---@return Doubts?
function doubts.new(session, stages)
  local machine_of, errors, n = {}, {}, 0
  for _, stage in ipairs(stages) do
    for _, event in ipairs(stage) do
      local index = event.machine and event.machine.index or 0
      machine_of[event.class] = index
      if not errors[index] then errors[index], n = 0, n + 1 end
    end
  end
  if n < 2 then return end
  return setmetatable({ session = session, machine_of = machine_of, errors = errors, pairs = 0, short = 0, error = 0 },
    Doubts)
end

--- Counts the pairs of a batch.
---@param out ffi.cdata* struct pair[]
---@param n integer
function Doubts:count(out, n)
  local machine_of, errors = self.machine_of, self.errors
  for index in pairs(errors) do errors[index] = C.session_clock_error(self.session, index, nil) end
  for i = 0, n - 1 do
    local first, second = machine_of[out[i].first_class], machine_of[out[i].second_class]
    if first ~= second then
      local most = errors[first] + errors[second]
      self.pairs = self.pairs + 1
      if math.abs(out[i].ns) < most then self.short, self.error = self.short + 1, math.max(self.error, most) end
    end
  end
end

--- Returns a line about these pairs; nil if there are none.
---@return string?
function Doubts:text()
  if self.short == 0 then return end
  return ('%d of %d pairs of different machines are shorter than the error of the clocks (%s)'):format(self.short,
    self.pairs, self.error < math.huge and ('%.3f us'):format(self.error / 1000) or 'unknown')
end

return doubts
