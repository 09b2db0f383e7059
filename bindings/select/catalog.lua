-- SPDX-License-Identifier: GPL-2.0-only
--- Catalog: the available events of this machine or of a recording. All code that lists events, completes or suggests
--- names uses it.
local access = require 'bpf.pointers.access'
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local glob = require 'bindings.base.glob'
local libc = require 'bindings.base.libc'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local probes = require 'bindings.select.probes'
local recorded = require 'bindings.select.recorded'
local records = require 'bindings.select.records'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local catalog = {}

local TRACEPOINT = perf_events.TYPES.tracepoint

---@class CatalogEntry
---@field name string as -e takes it
---@field kind string 'software event', 'PMU event', 'probe'...

---@class Catalog
---@field recorded? RecordedEvent[] nil: the catalog of this machine
---@field _open fun(err: ffi.cdata*): ffi.cdata* opens the formats of the tracepoints
---@field has_record fun(kind: integer): boolean whether records of a kind (enum record_kind) are available
local Catalog = {}
Catalog.__index = Catalog

--- Returns whether a result of perf_event_open() means that the event exists. It may exist without permission to
--- open it.
local function exists(code) return code == 0 or code == -libc.EACCES or code == -libc.EPERM end

--- Returns the catalog of this machine.
---@return Catalog
function catalog.machine()
  return setmetatable({
    _open = function(err)
      local formats = C.formats_open_tracefs(err)
      return formats ~= nil and ffi.gc(formats, C.formats_free) or formats
    end,
    has_record = function(kind) return exists(C.records_support(kind)) end,
  }, Catalog)
end

--- Returns the catalog of a session: of this machine, of the recording that it reads, or of a machine that sends it
--- events.
---@param session ffi.cdata* struct session *
---@param member integer 0: the session's own source
---@return Catalog
function catalog.of_session(session, member)
  local is_recorded = member > 0 or C.session_is_recorded(session)
  return setmetatable({
    recorded = is_recorded and recorded.list(session, member) or nil,
    _open = function(err) return C.session_formats(session, member, err) end,
    has_record = function(kind) return C.session_has_records(session, member, kind) end,
  }, Catalog)
end

--- Returns the formats of the tracepoints.
---@return ffi.cdata*? formats
---@return string? message
---@return ffi.cdata*? err struct error
function Catalog:formats()
  if not self._formats then
    local err = ffi.new 'struct error'
    local formats = self._open(err)
    if formats == nil then return nil, ffi.string(err.text), err end
    self._formats = formats
  end
  return self._formats
end

--- Finds a tracepoint.
---@return ffi.cdata*? tp struct tracepoint *
---@return string? message with the nearest name
function Catalog:tracepoint(system, name)
  local formats, message = self:formats()
  if not formats then return nil, message end
  local probe = self.recorded and probes.is_probe(system) and self:probes(system .. ':' .. name)[1]
  if probe then return probe end
  local err = ffi.new 'struct error'
  local tp = C.formats_find(formats, system, name, err)
  if tp == nil then return nil, ffi.string(err.text) end
  return tp
end

--- Returns the probes of a recording that have a name. In the kernel they are tracepoints with other names. A USDT
--- probe may be at several places.
---@param name string as it was selected when they were set, without file and arguments
---@return ffi.cdata*[] list of struct tracepoint *
function Catalog:probes(name)
  local list, seen = {}, {}
  for _, one in ipairs(self.recorded) do
    if one.name == name and one.type == TRACEPOINT and not seen[one.config] then
      local tp = C.formats_by_id(self:formats(), one.config)
      if tp ~= nil then list[#list + 1], seen[one.config] = tp, true end
    end
  end
  return list
end

--- Returns the names of all tracepoints, sorted.
---@return string[]? names, string? message
function Catalog:tracepoints()
  local formats, message = self:formats()
  if not formats then return nil, message end
  local text = C.formats_names(formats)
  local names = {}
  for name in (text ~= nil and ffi.string(text) or ''):gmatch '[^\n]+' do
    names[#names + 1] = name
  end
  libc.free(text)
  return names
end

--- Returns the names of all tracepoints and records.
---@return string[]
function Catalog:names()
  local names = self:tracepoints() or {}
  for _, name in ipairs(records.names) do names[#names + 1] = name end
  return names
end

--- Returns whether nobody can sample a tracepoint: those of ftrace describe the records of tracers, and irq_work is the
--- interrupt by which a sample wakes its reader.
local function is_never_sampled(name) return name:find '^ftrace:' ~= nil or name == 'irq_vectors:irq_work_exit' end

--- Returns the names of the tracepoints or available records that match a glob. Those that nobody can sample are left
--- out, unless there are no others.
---@param system string
---@param name string
---@return string[]
function Catalog:matching(system, name)
  local pattern, found, never = glob.pattern(system .. ':' .. name), {}, {}
  for _, one in ipairs(system == records.SYSTEM and records.names or self:tracepoints() or {}) do
    local record = one:match(pattern) and records.find(one)
    if one:match(pattern) and (not record or self.has_record(record.record)) then
      local list = not self.recorded and is_never_sampled(one) and never or found
      list[#list + 1] = one
    end
  end
  return #found > 0 and found or never
end

--- Returns the PMUs whose events are specified by terms. A profiler hides a PMU of the same name.
---@param profilers? table<string, any> by name
---@return table<string, boolean>
function Catalog:pmus(profilers)
  self._pmus = self._pmus or perf_events.pmus(sys)
  for name in pairs(profilers or {}) do self._pmus[name] = nil end
  return self._pmus
end

--- Returns the event names without a colon: perf's own events and profilers.
---@param profilers table<string, any> by name
---@return table<string, boolean>
function catalog.words(profilers)
  local words = {}
  for _, name in ipairs(perf_events.names) do words[name] = true end
  for name in pairs(profilers) do words[name] = true end
  return words
end

--- Returns whether this machine can sample one of perf's own events.
---@param event PerfEvent
function catalog.can_sample(event)
  if event.kind == 'software' or event.kind == 'pmu' or event.kind == 'breakpoint' then return true end
  return exists(C.support_open(event.type, event.config, 0))
end

--- Returns perf's own events that this machine can sample: software and hardware events, then named PMU events.
---@return CatalogEntry[]
function Catalog:perf_events()
  local list = {}
  local function add(event, name, kind)
    if exists(C.support_open(event.type, event.config, 0)) then list[#list + 1] = { name = name, kind = kind } end
  end
  for _, name in ipairs(perf_events.names) do
    local event = perf_events.find(name)
    add(event, name, event.kind .. ' event')
  end
  for _, device in ipairs(nearest.keys(self:pmus())) do
    local pmu = perf_events.open_pmu(device, sys)
    for _, name in ipairs(perf_events.named(pmu)) do
      local event = perf_events.parse(pmu, name)
      if event then add(event, event.name, 'PMU event') end
    end
  end
  return list
end

--- Returns the syntax of the probes and breakpoints that the kernel supports.
local function probe_forms()
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

--- Returns all events that -e takes on this machine, and the syntax of probes.
---@return CatalogEntry[] entries
---@return string? message why there are no tracepoints
function Catalog:entries()
  local all = {}
  local function add(list, kind)
    for _, name in ipairs(list) do all[#all + 1] = kind and { name = name, kind = kind } or name end
  end
  local tracepoints, message = self:tracepoints()
  add(tracepoints or {}, 'tracepoint')
  add(self:perf_events())
  for _, name in ipairs(records.names) do
    if self.has_record(records.find(name).record) then add({ name }, 'record') end
  end
  add(probe_forms())
  return all, message
end

--- Returns whether a tracepoint or record exists. True for all probes and events with typed arguments: only setting
--- one shows whether it is valid.
---@param name string "sys:name"
function Catalog:has(name)
  local system, event = name:match '^(.-):(.*)$'
  return system ~= nil
    and (probes.is_probe(system) or access.is_system(system) or records.find(name) ~= nil
      or self:tracepoint(system, event) ~= nil)
end

--- Returns whether an event is available on this machine or in the recording.
---@param name string
---@return boolean
function Catalog:supports(name)
  local record = records.find(name)
  if record then return self.has_record(record.record) end
  if self.recorded then return self:find_recorded(name) ~= nil end
  if name:find(':', 1, true) then return self:has(name) end
  local event = perf_events.find(name)
  return event ~= nil and catalog.can_sample(event)
end

--- Finds one of perf's own events in the recording.
---@return RecordedEvent?
function Catalog:find_recorded(name) return recorded.find(self.recorded, name) end

--- Returns the names of the events in the recording.
---@return string[]
function Catalog:sent()
  local names = {}
  for _, one in ipairs(self.recorded) do
    if not recorded.is_dummy(one) and not names[one.name] then
      names[#names + 1], names[one.name] = one.name, true
    end
  end
  return names
end

--- Fails if the recording contains no such event.
---@param event PerfEvent|RecordedEvent
function Catalog:check_recorded(event)
  local names = {}
  for i, one in ipairs(self.recorded) do
    if one.type == event.type and one.config == event.config then return end
    names[i] = one.name
  end
  failure.raise('the recording contains no samples of %s; it contains %s', event.name,
    #names > 0 and table.concat(names, ', ') or 'none of any event')
end

--- Returns the field names of a tracepoint or record; an empty list if it does not exist.
---@param name string
---@return string[]
function Catalog:fields(name)
  local record = records.find(name)
  if record then return records.field_names(record) end
  local system, event = name:match '^(.-):(.+)$'
  local tp = system and self:tracepoint(system, event)
  local names = {}
  for i, field in ipairs(tp and views.fields(tp) or {}) do names[i] = field.name end
  return names
end

return catalog
