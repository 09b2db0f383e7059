-- SPDX-License-Identifier: GPL-2.0-only
--- Text of frames, which session.address() and session.frames() return.
local frame = {}

--- Returns 'symbol+0x1c', or the address if it has no symbol.
---@param found? Frame
---@param address number|integer64
---@return string
function frame.text(found, address)
  if not found or not found.symbol then return ('%016x'):format(address) end
  return ('%s+0x%x'):format(found.symbol, found.symbol_offset)
end

return frame
