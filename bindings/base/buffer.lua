-- SPDX-License-Identifier: GPL-2.0-only
--- string.buffer for the host and for scripts: its methods that hand out or take plain pointers are taken away
--- from the buffers, because a script could call them.
local buffer = require 'string.buffer'

local methods = debug.getmetatable(buffer.new()).__index
local host = { new = buffer.new, bytes = methods.ref }

for _, name in ipairs { 'ref', 'reserve', 'commit', 'putcdata', 'set' } do methods[name] = nil end

return host
