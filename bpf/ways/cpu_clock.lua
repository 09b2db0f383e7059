-- SPDX-License-Identifier: GPL-2.0-only
--- What the clock says about times on CPUs that programs have added up: all tasks together cannot have run for longer
--- than the CPUs could.
local cpu_list = require 'bindings.base.cpu_list'
local sys = require 'bindings.base.sys'

local cpu_clock = {}

--- Returns the figures of times on CPUs (bindings/report/figures.lua).
---@param cpus? string list of those that are traced; nil: all
---@param elapsed number ns
---@param added number ns that were added up
---@param way string
---@return Figures
function cpu_clock.figures(cpus, elapsed, added, way)
  local n = #cpu_list.numbers(cpus or sys.read '/sys/devices/system/cpu/present')
  return { name = 'ns on CPUs', way = way, fired = math.ceil(elapsed * n), lost = 0, read = added, per = 1,
    by = 'the clock', rejected = {}, filters = {} }
end

return cpu_clock
