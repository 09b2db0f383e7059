-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the kernel's caches with the most allocations.
---
---   profscript examples/slabratetop.lua -i 1s
local aggregate = require 'lib.aggregate'

return {
  summary = "Print the allocations of the kernel's caches",
  start = function(_, out)
    local bytes = aggregate.new('sum', { 'cache' }, { name = 'bytes', value = 'bytes', unit = 'bytes' })
    local function report() bytes:print(out, { limit = 10 }) bytes:clear() end
    return {
      ['kmem:kmem_cache_alloc'] = function(ev) bytes:add(ev.bytes_alloc, ev.name) end,
      interval = report,
      stop = report,
    }
  end,
}
