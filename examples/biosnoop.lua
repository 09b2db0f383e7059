-- SPDX-License-Identifier: GPL-2.0-only
--- Prints each block request with its latency.
---
---   profscript examples/biosnoop.lua
local join = require 'lib.join'

return {
  summary = 'Print each block request with its latency',
  everywhere = true, -- a request completes in whatever task runs then
  start = function(_, out)
    local requests = join.new { expires = '1min' }
    return {
      lost = requests.lost,
      ['block:block_rq_issue'] = function(ev)
        requests:start(ev:u64 'dev' * 0x100000000 + ev.sector, ev._time, ev._pid, ev.comm, ev.bytes)
      end,
      ['block:block_rq_complete'] = function(ev)
        local ns, pid, comm, bytes = requests:finish(ev:u64 'dev' * 0x100000000 + ev.sector, ev._time)
        if ns then
          out:row { 'pid', pid, 'comm', comm, 'kind', ev.rwbs, 'sector', ev.sector, 'bytes', bytes, 'ms', ns / 1e6 }
        end
      end,
    }
  end,
}
