-- SPDX-License-Identifier: GPL-2.0-only
--- This machine as seen by completion and --check. Anything unreadable counts as missing.
local ffi = require 'ffi'
local catalog = require 'bindings.select.catalog'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local processes = require 'bindings.select.processes'
local sample_filter = require 'bindings.bpf.sample_filter'
local sys = require 'bindings.base.sys'

local C = ffi.C

local LOOK, START = 300, 200 -- ms: how long events are compared, after at most that time
local machine = {}

--- Returns the functions for completion.
---@param found scripts.Scripts
---@return complete.World
function machine.completion(found)
  local events = catalog.machine()
  local self = { pmus = events:pmus() }

  function self.profilers() return nearest.keys(found:names()) end

  function self.sources()
    local names = {}
    for _, entry in ipairs(found:list()) do
      if entry.summary and not entry.is_tool then
        names[#names + 1] = entry.name
        names[#names + 1] = entry.also
      end
    end
    return names
  end

  function self.load(name) return (found:load(name)) end

  function self.events()
    local names = {}
    for i, entry in ipairs((events:entries())) do
      names[i] = entry.name:match '^[ku]r?e?t?probe:' or entry.name:match '^mem:' or entry.name
    end
    return names
  end

  function self.processes()
    local names = {}
    for _, name in ipairs(processes.names()) do
      if name:find '^[%w_.+-]+$' then names[#names + 1] = name end -- others need quotes
    end
    return names
  end

  function self.terms(pmu)
    local list = perf_events.term_names(perf_events.open_pmu(pmu, sys))
    local named = {}
    for _, name in ipairs(perf_events.named(perf_events.open_pmu(pmu, sys))) do
      named[name] = true
    end
    for i, name in ipairs(list) do
      list[i] = named[name] and name or name .. '='
    end
    return list
  end

  function self.fields(event) return events:fields(event) end

  return self
end

--- Returns the functions for --check.
---@return check.World
function machine.checks()
  return {
    read = sys.read,
    exists = function(path) return sys.stat(path) ~= nil end,
    tracepoints = function() return catalog.machine():tracepoints() end,
    open = function(type, config, with)
      local flags = (with.system and C.SUPPORT_SYSTEM or 0) + (with.clock and C.SUPPORT_CLOCK or 0)
        + (with.lost and C.SUPPORT_LOST or 0)
      return C.support_open(type, config, flags)
    end,
    error_text = sys.strerror,
    bpf_missing = sample_filter.missing,
    has_clang = function() return os.execute 'clang --version >/dev/null 2>&1' == 0 end,
    unseen = function()
      local pipe = io.popen(('/proc/%d/exe event-lost -e sched:sched_wakeup,sched:sched_switch --duration %dms '
        .. '2>&1 >/dev/null'):format(libc.getpid(), LOOK))
      if not pipe then return {} end
      C.support_wake_cpus(LOOK + START)
      local found = {}
      for line in pipe:lines() do found[#found + 1] = line:match '^event%-lost: (%d+ of %d+ sched:.*)$' end
      pipe:close()
      return found
    end,
    remove_probes = function()
      local err = ffi.new 'struct error'
      local removed = C.probes_remove_stale(nil, err)
      if removed < 0 then return nil, ffi.string(err.text) end
      return removed
    end,
  }
end

return machine
