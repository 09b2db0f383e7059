-- SPDX-License-Identifier: GPL-2.0-only
--- string.buffer without the methods that take or return raw pointers, because scripts use the same buffers. The
--- host calls the one that it needs as bytes().
local buffer = require 'string.buffer'

local methods = debug.getmetatable(buffer.new()).__index
local host = { new = buffer.new, bytes = methods.ref }

for _, name in ipairs { 'ref', 'reserve', 'commit', 'putcdata', 'set' } do methods[name] = nil end

return host
