-- SPDX-License-Identifier: GPL-2.0-only
--- Frames, as session.address() and session.frames() give them, as text.
local frame = {}

--- "symbol+0x1c", or the address where no symbol is known.
---@param found? Frame
---@param address ffi.cdata*|number
---@return string
function frame.text(found, address)
  if not found or not found.symbol then return ('%016x'):format(address) end
  return ('%s+0x%x'):format(found.symbol, found.symbol_offset)
end

return frame
