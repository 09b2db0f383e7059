-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the latency of block requests as a histogram for each kind of request.
---
---   profscript examples/biolatency.lua -i 1s
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'

return {
  summary = 'Print the latency of block requests by kind',
  everywhere = true, -- a request completes in whatever task runs then
  start = function(_, out)
    local issued = join.new { expires = '1min' }
    local latency = aggregate.new('hist', { 'kind' }, { name = 'latency', unit = 'ns' })
    local function report() latency:print(out) latency:clear() end
    return {
      lost = issued.lost,
      ['block:block_rq_issue'] = function(ev)
        issued:start(ev:u64 'dev' * 0x100000000 + ev.sector, ev._time, ev.rwbs)
      end,
      ['block:block_rq_complete'] = function(ev)
        local ns, kind = issued:finish(ev:u64 'dev' * 0x100000000 + ev.sector, ev._time)
        if ns then latency:add(ns, kind) end
      end,
      interval = report, stop = report,
    }
  end,
}
