-- SPDX-License-Identifier: GPL-2.0-only
--- Prints the latency of block requests, from issue to completion, as a histogram.
---
---   profscript examples/block-latency.lua -i 1s
local aggregate = require 'lib.aggregate'
local pairs = require 'lib.pairs'

return {
  summary = 'Print the latency of block requests, from issue to completion',
  options = {
    issue = { type = 'event', default = 'block:block_rq_issue', help = 'event that starts a request' },
    complete = { type = 'event', default = 'block:block_rq_complete', help = 'event that ends a request' },
  },

  start = function(opt, out)
    local latency = aggregate.new('hist', {}, { name = 'latency', unit = 'ns' })
    local function print_and_clear()
      latency:print(out)
      latency:clear()
    end
    return {
      pairs.new {
        stages = { opt.issue[1], opt.complete[1] },
        key = '(long)dev << 32 ^ sector',
        pair = function(p) latency:add(p.ns) end,
      },
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
