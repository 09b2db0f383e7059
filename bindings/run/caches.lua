-- SPDX-License-Identifier: GPL-2.0-only
--- Which CPUs share a cache: those of the running machine, or those of a recording's.
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local C = ffi.C
local caches = {}

local MAX_CPU = 8192 -- CPUS_MAX
local CPUS = '/sys/devices/system/cpu'
local CACHE = CPUS .. '/cpu%d/cache/index%d/%s'

--- The first of the CPUs that share a CPU's cache of this level on this machine.
local function first_here(cpu, level)
  for index = 0, 9 do
    local function read(what) return sys.read(CACHE:format(cpu, index, what)) or '' end
    local of = tonumber(read 'level')
    if not of then return end
    if of == level and not read('type'):find '^Instruction' then
      return tonumber(read('shared_cpu_list'):match '^%d+')
    end
  end
end

--- For each CPU the first of those that share its cache of this level; nil where nobody knows of any.
---@param run table
---@param level integer from 1
---@return table<integer, integer>?
function caches.sharers(run, level)
  local first = {}
  if run.is_recorded then
    for cpu = 0, MAX_CPU - 1 do
      local sharer = C.session_cache_sharer(run.session, level, cpu)
      if sharer >= 0 then first[cpu] = sharer end
    end
  else
    for _, name in ipairs(sys.readdir(CPUS) or {}) do
      local cpu = tonumber(name:match '^cpu(%d+)$')
      if cpu then first[cpu] = first_here(cpu, level) end
    end
  end
  return next(first) and first or nil
end

return caches
