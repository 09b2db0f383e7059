-- SPDX-License-Identifier: GPL-2.0-only
--- What a run's programs need to walk the stacks of other programs: made when the first one of them is loaded, kept up
--- to date while the run goes on, and reported at its end.
local chain = require 'bpf.gen.chain'
local ffi = require 'ffi'
local processes = require 'bindings.select.processes'
local program = require 'bpf.gen.program'
local walk = require 'bpf.stacks.walk'

local stack_walks = {}

---@class StackWalks
---@field package _run Run
---@field package _walker? Walker|false
local StackWalks = {}
StackWalks.__index = StackWalks

---@param run Run
---@return StackWalks
function stack_walks.new(run) return setmetatable({ _run = run }, StackWalks) end

local function mode_of(run)
  local chosen = run.opt.call_graph
  return type(chosen) == 'table' and chosen.mode or nil
end

--- Returns whether --call-graph asks programs to walk stacks.
---@param run Run
---@return boolean
function stack_walks.are_wanted(run) return mode_of(run) == 'tables' end

--- Returns what walks the stacks of programs by unwind tables; nil: they are not wanted, or found by frame pointers.
---@param parts integer enum stack_parts
---@return Walker?
function StackWalks:walker(parts)
  local run = self._run
  if parts < ffi.C.STACK_USER then return end
  if self._walker == nil then
    local mode = mode_of(run)
    local is_wanted = mode == 'tables' or mode ~= 'fp' and walk.is_quick()
    self._walker = is_wanted and not run.in_kernel:has_foreign_pids() and walk.new(chain.LEVELS) or false
    local named = self._walker and not program.is_dry() and processes.pids(run.opt.pids or {}) or {}
    for _, pid in ipairs(named) do self._walker.tables:add(pid, 0) end
  end
  return self._walker or nil
end

--- Reads the tables that programs have asked for.
function StackWalks:poll()
  if self._walker then ffi.C.session_wake_after(self._run.session, self._walker.tables:poll()) end
end

--- Says at the end what was found.
function StackWalks:finish()
  if not self._walker or program.is_dry() then return end
  local run, summary, warning = self._run, self._walker.tables:report()
  if run.opt.verbose >= 1 then run.out:tell('profscript: ' .. summary) end
  if warning then run.out:warn(('%s: %s'):format(run.name, warning)) end
end

return stack_walks
