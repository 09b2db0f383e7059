-- SPDX-License-Identifier: GPL-2.0-only
--- Test load for split locks: locked memory accesses across cache lines (runtime/os/splitlock.h).
local ffi = require 'ffi'

local splitlock = {}

--- Starts a thread of this process that makes such accesses.
---@return boolean ok false: not supported on this processor
function splitlock.start() return ffi.C.splitlock_start() == 0 end

return splitlock
