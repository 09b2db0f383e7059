-- SPDX-License-Identifier: GPL-2.0-only
--- What can be traced on this machine, by the names that -e takes.
local ffi = require 'ffi'
local perf_events = require 'bindings.view.perf_events'
local records = require 'bindings.select.records'
local sys = require 'bindings.base.sys'

ffi.cdef 'void catalog_free(void *) __asm__("free");'

local C = ffi.C
local catalog = {}

local EACCES, EPERM = 13, 1

---@class CatalogEntry
---@field name string as -e takes it
---@field kind string 'software event', 'event of a PMU', 'probe'...

--- All tracepoints, sorted.
---@return string[]? names nil: message says why
---@return string? message
function catalog.tracepoints()
  local err = ffi.new 'struct error'
  local formats = C.formats_open_tracefs(err)
  if formats == nil then return nil, ffi.string(err.text) end
  local text = C.formats_names(formats)
  local names = {}
  for name in (text ~= nil and ffi.string(text) or ''):gmatch '[^\n]+' do
    names[#names + 1] = name
  end
  C.catalog_free(text)
  C.formats_free(formats)
  return names
end

--- Whether the event can be sampled here; what only this user may not open is here too.
local function exists(event)
  local code = -C.support_open(event.type, event.config, 0)
  return code == 0 or code == EACCES or code == EPERM
end

--- The events of perf's own that this machine can sample: software and hardware events, then those that PMUs name.
---@return CatalogEntry[]
function catalog.perf_events()
  local list = {}
  for _, name in ipairs(perf_events.names) do
    local event = perf_events.find(name)
    if exists(event) then list[#list + 1] = { name = name, kind = event.kind .. ' event' } end
  end
  for _, device in ipairs(catalog.pmus()) do
    local pmu = perf_events.open_pmu(device, sys)
    for _, name in ipairs(perf_events.named(pmu)) do
      local event = perf_events.parse(pmu, name)
      if event and exists(event) then list[#list + 1] = { name = event.name, kind = 'event of a PMU' } end
    end
  end
  return list
end

--- The records of the kernel that can be events: misc:fork and so on.
---@return CatalogEntry[]
function catalog.records()
  local list = {}
  for _, name in ipairs(records.names) do
    local code = -C.records_support(records.find(name).record)
    if code == 0 or code == EACCES or code == EPERM then list[#list + 1] = { name = name, kind = 'record' } end
  end
  return list
end

--- The PMUs that are programmed by terms, sorted.
---@return string[]
function catalog.pmus()
  local names = {}
  for name in pairs(perf_events.pmus(sys)) do
    names[#names + 1] = name
  end
  table.sort(names)
  return names
end

--- The syntax of the probes and breakpoints that this kernel has.
---@return CatalogEntry[]
function catalog.probes()
  local list = {}
  if sys.stat(perf_events.DEVICES .. '/breakpoint') then
    list[1] = { name = 'mem:ADDRESS[/LENGTH][:rwx]', kind = 'breakpoint' }
  end
  for _, one in ipairs { { 'kprobe', 'FUNCTION' }, { 'uprobe', 'FUNCTION@FILE' } } do
    if sys.stat(('%s/%s'):format(perf_events.DEVICES, one[1])) then
      for _, name in ipairs { one[1], one[1]:gsub('probe', 'retprobe') .. '' } do
        list[#list + 1] = { name = ('%s:%s'):format(name, one[2]), kind = 'probe' }
      end
    end
  end
  return list
end

return catalog
