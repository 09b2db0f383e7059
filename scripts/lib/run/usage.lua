-- SPDX-License-Identifier: GPL-2.0-only
--- What a run itself uses: the CPU time and memory of this process, at an interval (--usage-self) and on SIGUSR2, which
--- also prints the state of the run.
local ffi = require 'ffi'
local dry_run = require 'bpf.run.dry_run'
local stack_report = require 'bindings.report.stack_report'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local usage = {}

--- Returns the line about a time, and what was used at its end.
local function line_since(since, before)
  local used, elapsed = sys.usage(), sys.now() - since
  return ('%s CPU %%usr %.2f %%sys %.2f MAXRSS %dk'):format(units.wall(sys.wall()),
    (used.user - before.user) / elapsed * 100, (used.system - before.system) / elapsed * 100, used.maxrss), used
end

--- Prints the line at an interval.
---@class Usage : Follower
local Usage = {}
Usage.__index = Usage

---@param run Run
---@return Usage
function usage.new(run) return setmetatable({ _run = run, _interval = run.opt.usage_self }, Usage) end

--- Begins to measure.
function Usage:start()
  self._since, self._before = sys.now(), sys.usage()
  self._due = self._since + self._interval
  self:_wake(self._since)
end

function Usage:poll()
  local now = sys.now()
  if now < self._due then return self:_wake(now) end
  local line, used = line_since(self._since, self._before)
  self._run.out:tell(line)
  self._since, self._before = now, used
  -- Skip missed intervals.
  self._due = self._due + math.ceil((now - self._due + 1) / self._interval) * self._interval
  self:_wake(now)
end

---@private
function Usage:_wake(now) C.session_wake_after(self._run.session, self._due - now) end

--- Prints the state of the run after the signal has arrived.
---@class StatusReport : Follower
local StatusReport = {}
StatusReport.__index = StatusReport

---@param run Run
---@return StatusReport
function usage.status(run) return setmetatable({ _run = run }, StatusReport) end

function StatusReport:start() self._since, self._before = sys.now(), sys.usage() end

function StatusReport:again(run) self._run = run end

function StatusReport:poll()
  if not C.signals_take_report() then return end
  local run = self._run
  run.out:tell(('%s, since %.1f s'):format(line_since(self._since, self._before), (sys.now() - self._since) / 1e9))
  run.out:tell((dry_run.text(run):gsub('\n$', '')))
  run.out:tell(run:totals())
  stack_report.memory(run)
  run:call 'report'
end

return usage
