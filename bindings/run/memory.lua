-- SPDX-License-Identifier: GPL-2.0-only
--- How much memory Lua may use: a script that keeps all it sees must end with a message, not with the machine.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local memory = {}

local LEAST = 64 * 2 ^ 20

--- What this machine, and the cgroup that we are in, can give without swapping.
local function available()
  local kib = (sys.read '/proc/meminfo' or ''):match 'MemAvailable:%s*(%d+)'
  local bytes = kib and kib * 1024 or math.huge
  local group = (sys.read '/proc/self/cgroup' or ''):match '0::(/[^\n]*)'
  while group do
    local folder = '/sys/fs/cgroup' .. group
    local most, now = tonumber(sys.read(folder .. '/memory.max') or nil), sys.read(folder .. '/memory.current')
    if most then bytes = math.min(bytes, most - (tonumber(now) or 0)) end
    group = group:match '^(.+)/[^/]*$'
  end
  return bytes
end

--- Limits the memory of Lua to $PROFSCRIPT_MEMORY, by default to a third of what is available.
function memory.limit()
  local given = os.getenv 'PROFSCRIPT_MEMORY' or ''
  local bytes, message = available() / 3, nil
  if given ~= '' then bytes, message = units.size(given) end
  if not bytes then failure.usage('PROFSCRIPT_MEMORY: %s', message) end
  if bytes < math.huge then C.limits_set_memory(math.max(bytes, LEAST)) end
end

--- The error of a run that Lua has ended for want of memory in compiled code, where it knows no line.
---@param problem any
---@param path string of the script
---@return any problem
function memory.explain(problem, path)
  local message = failure.is(problem) and problem.message or problem
  if message ~= 'not enough memory' then return problem end
  C.limits_allow_more_memory()
  collectgarbage()
  return ('%s: out of memory: the script uses more than PROFSCRIPT_MEMORY allows'):format(path)
end

return memory
