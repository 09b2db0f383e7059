-- SPDX-License-Identifier: GPL-2.0-only
--- Stacks for exports: names of frames as flame graphs have them.
local stacks = {}

--- Returns the name of a frame: the symbol, '[FILE]' or 'Unknown'.
---@param frame Frame
---@return string
function stacks.name(frame)
  if frame.symbol then return frame.symbol end
  local file = not frame.in_kernel and frame.dso and frame.dso:match '[^/]*$':match '^%[?(.-)%]?$'
  return file and ('[%s]'):format(file) or 'Unknown'
end

return stacks
