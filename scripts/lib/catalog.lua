-- SPDX-License-Identifier: GPL-2.0-only
--- The events that -e takes on this machine.
local machine = require('bindings.select.catalog').machine()

local catalog = {}

--- All of them. Probes and breakpoints are listed as forms: 'kprobe:FUNCTION'.
---@return { name: string, kind: string }[] entries kind: 'tracepoint', 'software event', 'PMU event'...
---@return string? message why there are no tracepoints
function catalog.entries() return machine:entries() end

return catalog
