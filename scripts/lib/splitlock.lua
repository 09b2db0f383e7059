-- SPDX-License-Identifier: GPL-2.0-only
--- Locked memory accesses across cache lines, made on purpose (runtime/os/splitlock.h).
local ffi = require 'ffi'

local splitlock = {}

--- Makes such accesses from now on, in a thread of this process.
---@return boolean ok false: not on this processor
function splitlock.start() return ffi.C.splitlock_start() == 0 end

return splitlock
