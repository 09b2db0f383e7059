-- SPDX-License-Identifier: GPL-2.0-only
--- Errors for features that the kernel or machine lacks.
local host = require 'bindings.base.failure'

local failure = {}

--- Ends the run with a message and exit status 3: the kernel or the machine lacks what the profiler needs.
---@param message string the message, or its format if arguments follow
---@param ... any
function failure.unavailable(message, ...) host.unavailable(message, ...) end

return failure
