-- SPDX-License-Identifier: GPL-2.0-only
--- Status report: on SIGUSR2, prints the resource usage, the events and the statistics of the run.
local ffi = require 'ffi'
local dry_run = require 'bindings.run.dry_run'
local stack_report = require 'bindings.run.stack_report'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local status_report = {}

--- Returns the line about the events of a run.
---@param run Run
---@param stats ffi.cdata* struct session_stats
---@return string
function status_report.totals(run, stats)
  local n = tonumber(stats.events) + run.in_kernel:count()
  return ('profscript: %d events, %d lost, %d late'):format(n, tonumber(stats.lost),
    tonumber(stats.late))
end

--- Returns a poller that prints the report after the signal has arrived.
---@param run Run
---@param sender? Push
---@return Consumer
function status_report.new(run, sender)
  local since, before = sys.now(), sys.usage()
  return { poll = function()
    if not C.signals_take_report() then return end
    local used, elapsed = sys.usage(), sys.now() - since
    local stats = ffi.new 'struct session_stats'
    C.session_read_stats(run.session, stats)
    run.out:tell(('%s CPU %%usr %.2f %%sys %.2f MAXRSS %dk, since %.1f s'):format(units.wall(sys.wall()),
      (used.user - before.user) / elapsed * 100, (used.system - before.system) / elapsed * 100, used.maxrss,
      elapsed / 1e9))
    run.out:tell((dry_run.text(run):gsub('\n$', '')))
    run.out:tell(status_report.totals(run, stats))
    stack_report.memory(run)
    if sender then sender:report() end
  end }
end

return status_report
