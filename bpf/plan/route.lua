-- SPDX-License-Identifier: GPL-2.0-only
--- Routes: how the events of a run are taken. The planner (bpf/plan/planner.lua) makes one for each event. Everyone
--- else reads `event.route`, and only this module writes to it.
local route = {}

---@class Refused a way that would have been better
---@field way string
---@field reason string
---@field is_handler? boolean it is about what the event's handler does

---@class Route
---@field event string "sys:name"
---@field way string name of a way (bpf/ways/list.lua), or: `sample`, `perf_count`, `recording`, `machine`
---@field by string who takes it: `perf`, `BPF`, `recording`, `machine`
---@field why Refused[]
---@field cost? number ns that an event adds to the traced task (bpf/plan/costs.lua); nil: not measured
---@field does? string what programs do with it: `counted`, `paired`; it is opened only if some are sent
---@field program? string the name of the program that takes it, as `bpftool prog` shows it
---@field sent? string which of them programs send; nil: none
---@field kept? string what programs keep of it
---@field is_captured? boolean programs write its samples
---@field level? string which conditions these check: `guards` (those of its handler, too), `all`, `kernel` (not those
--- that only profscript understands)
---@field has_no_flags? boolean these programs cannot tell common_flags
---@field has_unsure_flags? boolean those of the events that details show

local FIELDS = { event = true, way = true, by = true, why = true, cost = true, does = true, program = true,
  sent = true, kept = true, is_captured = true, level = true, has_no_flags = true, has_unsure_flags = true }

--- Returns the route of an event for which there is no plan yet.
---@param name string
---@return Route
function route.new(name) return { event = name, way = 'sample', by = 'perf', why = {} } end

--- Sets fields of a route.
---@param one Route
---@param fields table
function route.write(one, fields)
  for name, value in pairs(fields) do
    assert(FIELDS[name], name)
    one[name] = value
  end
end

--- Makes a route that of a plan. What programs have noted remains.
---@param one Route
---@param planned Route
function route.follow(one, planned)
  for name in pairs(FIELDS) do
    if planned[name] ~= nil then one[name] = planned[name] end
  end
  if one.by ~= 'BPF' then one.program = nil end -- of an offer that was refused
end

--- Makes a captured event one of perf again.
---@param one Route
function route.release(one)
  one.is_captured, one.level, one.has_no_flags, one.program = nil, nil, nil, nil
end

--- Returns whether the session reads the event.
---@param one Route
---@return boolean
function route.is_read(one) return one.does == nil or one.is_captured == true or one.sent ~= nil end

--- Returns whether programs check all filters of the event.
---@param one Route
---@return boolean
function route.is_filtered(one) return one.does ~= nil or one.level == 'guards' or one.level == 'all' end

--- Returns why a way was refused that was asked for; nil: it was not.
---@param one Route
---@param is_capture boolean the way `capture`, or any other one
---@return string?
function route.refusal(one, is_capture)
  for _, refused in ipairs(one.why) do
    if (refused.way == 'capture') == is_capture and not refused.is_handler then return refused.reason end
  end
end

return route
