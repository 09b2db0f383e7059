-- SPDX-License-Identifier: GPL-2.0-only
--- Latency of sampled memory accesses, by data source (ldlat-loads, ldlat-stores).
local datasrc = require 'lib.datasrc'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local failure = require 'lib.failure'

local MAX_ROWS = 4096
local DEVICES = '/sys/bus/event_source/devices/'

local ldlat = {}

--- Returns the PMU that samples memory accesses. On hybrid processors this is the PMU of the performance cores.
local function pmu_of(name)
  local intel, found = false, nil
  for line in io.lines '/proc/cpuinfo' do
    intel = intel or line:match '^vendor_id%s*:%s*GenuineIntel' ~= nil
  end
  if not intel then failure.unavailable('%s: needs an Intel processor, whose PEBS samples memory accesses', name) end
  for _, pmu in ipairs { 'cpu', 'cpu_core' } do
    local file = io.open(DEVICES .. pmu .. '/type')
    if file then
      file:close()
      found = found or pmu
    end
  end
  if not found then
    failure.unavailable("%s: needs a hardware PMU, and this machine has none (no 'cpu' in %s)", name, DEVICES)
  end
  return found
end

---@class LdlatSettings
---@field name string name of the profiler
---@field terms string terms of the PMU event
---@field title string title of the data source column

--- Returns the handlers of such a profiler.
---@param settings LdlatSettings
---@param opt table options of ldlat.options()
---@param out Output
---@param session Session
---@return table? handlers nil: see message
---@return string? message
function ldlat.start(settings, opt, out, session)
  local event = session.event {
    ('%s/%s/'):format(pmu_of(settings.name), settings.terms),
    period = opt.trigger ~= 0 and opt.trigger or opt.period, precise = 3, resolve = true,
    sample = { 'weight', 'data_src', 'phys_addr' }, exclude_guest = true,
  }
  local keys, hists = intern.new(2, MAX_ROWS), hist.set(MAX_ROWS + 1)
  local than, perins, instance = opt.than or math.huge, opt.perins, session.instance_field
  local columns = {
    { name = 'instance', title = ('[%s]'):format(session.instance_title), show = perins or false },
    { name = 'source', title = settings.title, width = 60, align = 'left' },
    { name = 'samples', metric = 'counter', width = 8 },
  }
  for _, name in ipairs { 'total', 'min', 'avg', 'max', 'stddev', 'variance' } do
    local is_spread = name == 'stddev' or name == 'variance'
    columns[#columns + 1] = { name = name, title = name .. '(cycles)', metric = name == 'total' and 'counter' or nil,
      format = (name == 'avg' or is_spread) and '%.1f' or nil, data_only = is_spread }
  end
  columns[#columns + 1] = { name = 'latency', title = 'latency(cycles)', metric = 'histogram' }
  local spec = tables.new(settings.name, columns)

  local function report()
    local rows = {}
    for id = 0, keys:count() - 1 do
      local cycles = hists:get(id)
      local s = cycles:stats()
      rows[id + 1] = {
        instance = keys:part(id, 1), source = datasrc.text(keys:part(id, 2)), samples = s.count,
        total = s.sum, min = s.min, avg = s.avg, max = s.max,
        stddev = s.stddev, variance = s.variance, latency = cycles,
      }
    end
    table.sort(rows, function(a, b)
      if a.instance ~= b.instance then return a.instance < b.instance end
      if a.total ~= b.total then return a.total > b.total end
      return a.source < b.source
    end)
    out:table(spec, rows)
    hists:clear()
    keys:clear()
  end

  return {
    [event] = function(ev)
      local cycles = ev._weight
      hists:add(keys.id(perins and ev[instance] or 0, ev._data_src), cycles)
      if cycles > than then out:print_event(ev) end
    end,
    describe = function(ev)
      return ('%s: DATA %x ADDR %016x PHYS %016x latency %d cycles %s RIP %s'):format(settings.name, ev._data_src,
        ev._addr, ev._phys_addr, ev._weight, datasrc.text(ev._data_src), session.address_text(ev, ev._ip))
    end,
    interval = report,
    stop = report,
  }
end

--- Adds the options that both profilers share.
---@param own table<string, table>
---@return table<string, table> own
function ldlat.options(own)
  own.period = { type = 'integer', min = 1, default = 1000, help = 'sample every Nth access' }
  own.trigger = { type = 'integer', short = 'T', min = 0, help = 'the same as --period; 0: its default' }
  own.than = { type = 'integer', min = 0, unit = 'cycles', help = 'print sampled accesses that take longer' }
  own.perins = { type = 'flag', help = 'print rows per CPU, or per thread with -p and -t' }
  return own
end

return ldlat
