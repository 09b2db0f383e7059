-- SPDX-License-Identifier: GPL-2.0-only
--- Memory limit of Lua: a script that keeps all its events must fail with a message instead of exhausting the machine's
--- memory.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local C = ffi.C
local memory = {}

local MIN_LIMIT = 64 * 2 ^ 20
local DEFAULT_MAX = 2 * 2 ^ 30 -- to fill more takes minutes, and harms the machine

--- Returns the bytes that are available without swapping on this machine and in our cgroup.
local function available()
  local kib = (sys.read '/proc/meminfo' or ''):match 'MemAvailable:%s*(%d+)'
  local bytes = kib and kib * 1024 or math.huge
  local group = (sys.read '/proc/self/cgroup' or ''):match '0::(/[^\n]*)'
  while group do
    local folder = '/sys/fs/cgroup' .. group
    local max, used = tonumber(sys.read(folder .. '/memory.max') or nil), sys.read(folder .. '/memory.current')
    if max then bytes = math.min(bytes, max - (tonumber(used) or 0)) end
    group = group:match '^(.+)/[^/]*$'
  end
  return bytes
end

--- Limits the memory of Lua to $PROFSCRIPT_MEMORY, by default to a third of the available memory and 2 GiB.
function memory.limit()
  local given = os.getenv 'PROFSCRIPT_MEMORY' or ''
  local bytes, message = math.min(available() / 3, DEFAULT_MAX), nil
  if given ~= '' then bytes, message = units.size(given) end
  if not bytes then failure.usage('PROFSCRIPT_MEMORY: %s', message) end
  C.limits_set_memory(math.max(bytes, MIN_LIMIT))
end

-- LuaJIT's errors if its stack has no room left to find the line.
local PLACELESS = { ['stack overflow'] = 'stack overflow', ['error in error handling'] = 'stack overflow' }

--- Replaces LuaJIT's own errors without a line: out of memory in compiled code, and stack overflow.
--- Also the errors of a handler's tail call, which LuaJIT places in the event loop.
---@param problem any
---@param path string of the script, or the name of one of ours
---@return any problem
function memory.explain(problem, path)
  local message = failure.is(problem) and problem.message or problem
  local text = type(message) == 'string' and message:match '^dispatch:%d+: (.*)$'
  if text then return ('%s: %s'):format(path, text) end
  if PLACELESS[message] then return ('%s: %s'):format(path, PLACELESS[message]) end
  if message ~= 'not enough memory' then return problem end
  local mib = math.floor(tonumber(C.limits_refused_memory()) / 2 ^ 20)
  C.limits_allow_more_memory()
  collectgarbage()
  if mib == 0 then return path .. ': out of memory: the system has no more for this process' end
  return ('%s: out of memory: the script uses more than %d MiB (set PROFSCRIPT_MEMORY to allow more)'):format(path, mib)
end

return memory
