-- SPDX-License-Identifier: GPL-2.0-only
--- Prints what the scheduler did just before a system call that took unusually long: several times the 99th percentile
--- of the last seconds. Until then the kernel keeps the scheduler's events, and nobody reads them.
---
---   profscript examples/outliers.lua --call fsync --before 2ms
local join = require 'lib.join'
local window = require 'lib.window'

return {
  summary = 'Print what happened before unusually long system calls',
  options = {
    call = { type = 'string', default = 'fsync', help = 'system call' },
    before = { type = 'string', default = '5ms', help = 'how far to look back' },
    times = { type = 'number', default = 3, help = 'how many times the 99th percentile is unusual' },
  },
  start = function(opt, out, session)
    local recorder = session.recorder { events = 'sched:sched_switch,sched:sched_wakeup', keep = '32M' }
    local calls, recent = join.new(), window.new '5s'
    return {
      lost = calls.lost,
      ['raw_syscalls:sys_enter/id==' .. opt.call .. '/'] = function(ev) calls:start(ev._tid, ev._time) end,
      ['raw_syscalls:sys_exit/id==' .. opt.call .. '/'] = function(ev)
        local ns, p99 = calls:finish(ev._tid, ev._time), recent:quantile(0.99)
        if ns and p99 and ns > opt.times * p99 and recorder:dump { at = ev._time, before = opt.before } then
          out:row { 'comm', ev._comm, 'tid', ev._tid, 'ms', ns / 1e6, 'p99_ms', p99 / 1e6 }
        end
        if ns then recent:add(ev._time, ns) end
      end,
    }
  end,
}
