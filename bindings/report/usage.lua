-- SPDX-License-Identifier: GPL-2.0-only
--- --usage-self: prints the CPU time and memory of this process to stderr at an interval.
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local usage = {}

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
  local used, before, elapsed = sys.usage(), self._before, now - self._since
  self._run.out:tell(('%s CPU %%usr %.2f %%sys %.2f MAXRSS %dk'):format(units.wall(sys.wall()),
    (used.user - before.user) / elapsed * 100, (used.system - before.system) / elapsed * 100, used.maxrss))
  self._since, self._before = now, used
  -- Skip missed intervals.
  self._due = self._due + math.ceil((now - self._due + 1) / self._interval) * self._interval
  self:_wake(now)
end

---@private
function Usage:_wake(now) C.session_wake_after(self._run.session, self._due - now) end

return usage
