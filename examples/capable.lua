-- SPDX-License-Identifier: GPL-2.0-only
--- Counts the checks of capabilities by command, capability and result.
---
---   profscript examples/capable.lua -i 1s
local counter = require 'lib.counter'
local names = require 'lib.names'

return {
  summary = 'Count the checks of capabilities',
  start = function(_, out)
    local checks = counter.new { 'comm', 'capability', 'result' }
    local function report() checks:print(out) checks:clear() end
    return {
      ['capability:cap_capable'] = function(ev)
        checks:add(1, ev._comm, names.capability(ev.cap), ev.ret == 0 and 'granted' or 'denied')
      end,
      interval = report,
      stop = report,
    }
  end,
}
