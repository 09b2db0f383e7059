-- SPDX-License-Identifier: GPL-2.0-only
--- Status report: on SIGUSR2, prints the resource usage, the events and the statistics of the run.
local ffi = require 'ffi'
local dry_run = require 'bindings.run.dry_run'
local stack_report = require 'bindings.report.stack_report'
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

--- Prints the report after the signal has arrived.
---@class StatusReport : Follower
local StatusReport = {}
StatusReport.__index = StatusReport

---@param run Run
---@return StatusReport
function status_report.new(run) return setmetatable({ _run = run }, StatusReport) end

function StatusReport:start() self._since, self._before = sys.now(), sys.usage() end

function StatusReport:again(run) self._run = run end

function StatusReport:poll()
  if not C.signals_take_report() then return end
  local run, before = self._run, self._before
  local used, elapsed = sys.usage(), sys.now() - self._since
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  run.out:tell(('%s CPU %%usr %.2f %%sys %.2f MAXRSS %dk, since %.1f s'):format(units.wall(sys.wall()),
    (used.user - before.user) / elapsed * 100, (used.system - before.system) / elapsed * 100, used.maxrss,
    elapsed / 1e9))
  run.out:tell((dry_run.text(run):gsub('\n$', '')))
  run.out:tell(status_report.totals(run, stats))
  stack_report.memory(run)
  run:call 'report'
end

return status_report
