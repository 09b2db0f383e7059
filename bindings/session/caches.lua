-- SPDX-License-Identifier: GPL-2.0-only
--- Caches shared between CPUs, of this machine or the recording's.
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local C = ffi.C
local caches = {}

local CPUS = '/sys/devices/system/cpu'
local CACHE = CPUS .. '/cpu%d/cache/index%d/%s'

--- Returns the first of the CPUs that share a CPU's cache at a level on this machine.
local function local_sharer(cpu, level)
  for index = 0, 9 do
    local function read(file) return sys.read(CACHE:format(cpu, index, file)) or '' end
    local cache_level = tonumber(read 'level')
    if not cache_level then return end
    if cache_level == level and not read('type'):find '^Instruction' then
      return tonumber(read('shared_cpu_list'):match '^%d+')
    end
  end
end

--- Returns for each CPU the first CPU that shares its cache at a level; nil if none is known.
---@param run table
---@param level integer from 1
---@return table<integer, integer>?
function caches.sharers(run, level)
  local first = {}
  if run.is_recorded then
    for cpu = 0, sys.CPUS_MAX - 1 do
      local sharer = C.session_cache_sharer(run.session, level, cpu)
      if sharer >= 0 then first[cpu] = sharer end
    end
  else
    for _, name in ipairs(sys.readdir(CPUS) or {}) do
      local cpu = tonumber(name:match '^cpu(%d+)$')
      if cpu then first[cpu] = local_sharer(cpu, level) end
    end
  end
  return next(first) and first or nil
end

return caches
