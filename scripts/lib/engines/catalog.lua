-- SPDX-License-Identifier: GPL-2.0-only
--- The events of this machine, as `profscript list` prints them.
local access = require 'bpf.pointers.access'
local machine = require('bindings.select.catalog').machine()

local catalog = {}

local FORMS = {
  { name = 'tp_btf:TRACEPOINT', kind = 'tracepoint with typed arguments' },
  { name = 'fentry:FUNCTION', kind = 'call of a kernel function' },
  { name = 'fexit:FUNCTION', kind = 'return of a kernel function' },
}

--- Returns all events. Probes, breakpoints and what catalog.typed() lists are there by their syntax: 'kprobe:FUNCTION'.
---@return { name: string, kind: string }[] entries kind: 'tracepoint', 'software event', 'PMU event'...
---@return string? message the reason if there are no tracepoints
function catalog.entries()
  local all, message = machine:entries()
  for _, form in ipairs(FORMS) do all[#all + 1] = form end
  return all, message
end

--- Returns the tracepoints with typed arguments, or the functions of the kernel, that a pattern such as 'fentry:vfs_*'
--- matches. Fails if the kernel has no types.
---@param pattern string
---@return { name: string, kind: string }[]? entries nil: it is no such pattern
function catalog.typed(pattern)
  local prefix, rest = pattern:match '^([%w_]+):(.+)$'
  local system = prefix and access.system(prefix)
  if not access.SYSTEMS[system] then return end
  local list = access.matching(system, rest)
  for i, name in ipairs(list) do list[i] = { name = ('%s:%s'):format(prefix, name), kind = prefix } end
  return list
end

return catalog
