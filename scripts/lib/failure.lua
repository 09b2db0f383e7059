-- SPDX-License-Identifier: GPL-2.0-only
--- How start() ends a run that this kernel or machine cannot do.
local host = require 'bindings.base.failure'

local failure = {}

--- Ends the run with a line and exit status 3: the kernel or the machine lacks what the profiler needs.
---@param message string a format, or the text if nothing follows
---@param ... any
function failure.unavailable(message, ...) host.unavailable(message, ...) end

return failure
