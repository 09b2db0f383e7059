-- SPDX-License-Identifier: GPL-2.0-only
--- How long block requests take from issue to completion.
---   profscript examples/block-latency.lua -i 1s
local aggregate = require 'lib.aggregate'
local pairs = require 'lib.pairs'

return {
  summary = 'Block request latency from issue to completion',
  options = {
    issue = { type = 'event', default = 'block:block_rq_issue', help = 'where a request begins' },
    complete = { type = 'event', default = 'block:block_rq_complete', help = 'where it ends' },
  },

  start = function(opt, out)
    local latency = aggregate.new('hist', {}, { name = 'latency (ns)' })
    local function print_and_clear()
      latency:print(out)
      latency:clear()
    end
    return {
      pairs.new {
        stages = { opt.issue[1], opt.complete[1] },
        key = '(long)dev << 32 ^ sector',
        pair = function(p) latency:add(p.second_time - p.first_time) end,
      },
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
