-- SPDX-License-Identifier: GPL-2.0-only
--- The events that the user has selected.
local events = {}

--- Returns the events of an option as one list, in the order of the command line.
---@param groups Event[][] `opt.event`, or another option of the type event
---@return Event[]
function events.list(groups)
  local list = {}
  for _, group in ipairs(groups) do
    for _, event in ipairs(group) do list[#list + 1] = event end
  end
  return list
end

return events
