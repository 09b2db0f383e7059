-- SPDX-License-Identifier: GPL-2.0-only
--- Counts system calls by name, with their errors and times.
---
---   profscript examples/syscount.lua --top 5 -- ls -R /usr/share
local aggregate = require 'lib.aggregate'
local join = require 'lib.join'
local names = require 'lib.names'

return {
  summary = 'Count system calls, with their errors and times',
  options = { top = { type = 'integer', default = 10, help = 'rows to print' } },
  start = function(opt, out, session)
    local calls = join.new()
    local times = aggregate.new('quantiles', { 'call' }, { name = 'calls', unit = 'ns' })
    local errors = aggregate.new('count', { 'call', 'error' }, { name = 'errors' })
    local function report()
      times:print(out, { limit = opt.top })
      errors:print(out, { limit = opt.top })
      times:clear()
      errors:clear()
    end
    return calls:follow(session, { -- threads that execute another program, too
      lost = calls.lost,
      ['raw_syscalls:sys_enter'] = function(ev) calls:start(ev._tid, ev._time) end,
      ['raw_syscalls:sys_exit'] = function(ev)
        local ns = calls:finish(ev._tid, ev._time)
        if not ns then return end
        local name = session.syscall_name(ev.id)
        times:add(ns, name)
        if ev.ret < 0 then errors:add(name, names.errno(ev.ret)) end
      end,
      interval = report,
      stop = report,
    })
  end,
}
