-- SPDX-License-Identifier: GPL-2.0-only
--- The events of this machine, as `profscript list` prints them.
local machine = require('bindings.select.catalog').machine()

local catalog = {}

--- Returns all events. Probes and breakpoints are listed by their syntax: 'kprobe:FUNCTION'.
---@return { name: string, kind: string }[] entries kind: 'tracepoint', 'software event', 'PMU event'...
---@return string? message the reason if there are no tracepoints
function catalog.entries() return machine:entries() end

return catalog
