-- SPDX-License-Identifier: GPL-2.0-only
--- Counters by key.
---
---   local count = counter.new { 'pid', 'comm' }
---   count:add(1, ev.pid, ev.comm)
---   count:print(out, { limit = 20 })
---   count:clear()
local aggregate = require 'lib.aggregate'
local check = require 'bindings.base.check'

local counter = {}

--- Creates counters: an aggregation of lib.aggregate whose add(n, ...) adds n to the counter of the given keys.
---@param keys string[] names of the key columns, at most 4
---@param settings? { name?: string, value?: string, max_keys?: integer } as in aggregate.new()
---@return Aggregate
function counter.new(keys, settings)
  settings = settings or {}
  check.settings(settings, { 'name', 'value', 'max_keys' }, 'counter.new')
  return aggregate.new('sum', keys, {
    name = settings.name or 'count',
    value = settings.value or 'count',
    max_keys = settings.max_keys,
  })
end

return counter
