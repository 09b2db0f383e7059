-- SPDX-License-Identifier: GPL-2.0-only
--- Events of a session: turns what the user or a script names into classes of the stream, each with
--- its fields, its typed view and, where asked for, a compiled key.
local bit = require 'bit'
local ffi = require 'ffi'
local bpf = require 'bindings.bpf.program'
local catalog = require 'bindings.select.catalog'
local diagnostic = require 'bindings.base.diagnostic'
local event_filter = require 'bindings.select.event_filter'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local probes = require 'bindings.select.probes'
local recorded = require 'bindings.select.recorded'
local records = require 'bindings.select.records'
local sampling = require 'bindings.view.sampling'
local selector = require 'bindings.select.selector'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local C = ffi.C
local events = {}
events.__index = events

local TRACEPOINT = perf_events.TYPES.tracepoint

--- An event that is asked for. Scripts may read name, alias and index.
---@class Event
---@field name string "sys:name", or as perf calls it
---@field alias string what tables call it
---@field class integer
---@field system? string of a tracepoint
---@field type integer perf_event_attr.type
---@field config integer|ffi.cdata*
---@field config1? ffi.cdata*
---@field config2? ffi.cdata*|integer
---@field bp_type? integer of a breakpoint
---@field config1_text? string config1 is its address
---@field period? integer sample every so many
---@field freq? integer or about so many a second
---@field kind? string of perf's own events: see PerfEvent
---@field exclude_user? integer 1: not what happens in user mode; and so on
---@field perf_event boolean no tracepoint and no probe: its payload is the sample's own words
---@field sample integer what its samples have besides: bits of sample_bits
---@field params EventParameters what a script gave for it
---@field program? integer descriptor of a BPF program that filters its samples
---@field output? table of a BPF program's records: struct bpf_output
---@field tracepoint? ffi.cdata* struct tracepoint *
---@field record? integer enum record_kind: its events are no samples
---@field print_fmt? string where it is not the tracepoint's
---@field list Field[]
---@field fields table<string, Field>
---@field view View
---@field filter? string
---@field attrs table<string, string|boolean>
---@field counted? boolean without samples, see bindings/run/counts.lua
---@field count_group? integer
---@field count_index? integer from 0, among those that are counted
---@field given SelectorAttr[] the attributes in their order, for those that may be given more than once
---@field group integer which -e it came from, 0 for those of a script
---@field owner? Instance the profiler that named it
---@field everywhere? boolean of all threads, though the run names some
---@field closed? boolean its source has had all of its -N events

--- What is read of the events' attributes: by everybody, and by this profiler.
---@param profiler { attributes?: string[] }
---@return table<string, boolean>
function events.known_attributes(profiler)
  local known = {}
  for name, attribute in pairs(selector.attributes) do
    known[name] = attribute.common
  end
  for _, name in ipairs(profiler.attributes or {}) do
    known[name] = true
  end
  return known
end

---@param session ffi.cdata* struct session *
---@param context table see views.new()
---@param script { name: string, profiler: table } whose events they are
---@param opt table parsed options
---@param inherits? boolean children of what is attached to have them too
function events.new(session, context, script, opt, inherits)
  return setmetatable({
    session = session,
    catalog = catalog.of_session(session, opt.input ~= nil),
    context = context,
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    opt = opt,
    is_recording = opt.input ~= nil,
    inherits = inherits,
    list = {},
    views = {},
  }, events)
end

--- The same events as another profiler names them.
---@param script { name: string, profiler: table }
---@param owner Instance
function events:of(script, owner)
  return setmetatable({
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    opt = owner.opt,
    owner = owner,
  }, { __index = self })
end

--- Formats of the running kernel or of the recording.
function events:formats()
  local formats, message = self.catalog:formats()
  if not formats then failure.raise('%s', message) end
  return formats
end

--- A tracepoint that the user or a script names.
---@return ffi.cdata* tp struct tracepoint *
function events:find(system, name)
  self:formats() -- fails where there are none
  local tp, message = self.catalog:tracepoint(system, name)
  if not tp then
    -- What a damaged recording has lost is no mistake in the command line.
    local warning = C.session_warning(self.session)
    if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
    if self.is_recording then message = message:gsub('^no such', self.profiler .. ': the recording has no') end
    failure.usage('%s', message)
  end
  return tp
end

--- Adds one event.
---@param full string its name
---@param request { type: integer, config: integer, tracepoint?: ffi.cdata*, system?: string } or a PerfEvent
---@param parsed? Selector
---@param group integer
---@param params? EventParameters
---@return Event
function events:add(full, request, parsed, group, params)
  params = params or {}
  local list, by_name = request.list or {}, {}
  local is_perf_event = not request.list and not request.tracepoint and request.name ~= 'bpf-output'
  local bits = sampling.bits(params)
  if is_perf_event then
    list = sampling.fields(self:sample_type(request, bits))
  elseif bits ~= 0 then
    failure.raise('session.event: sample is for hardware, clock and memory events, not for %s', full)
  elseif not request.list and request.tracepoint then
    list = views.fields(request.tracepoint)
  end
  for _, field in ipairs(list) do
    by_name[field.name] = field
  end
  local key = (request.view_key or full) .. ':' .. bits
  local view = self.views[key] or views.new(full, list, self.context, params.sample)
  self.views[key] = view
  local attrs = {}
  for _, attr in ipairs(parsed and parsed.attrs or {}) do
    attrs[attr.name] = attr.value or true
  end
  local period, freq = sampling.rate(full, request, attrs, params, self.opt)
  local event = {
    name = full,
    alias = attrs.alias or full:match '([^:]*)$',
    class = C.EVENT_FIRST + #self.list,
    system = request.system,
    type = request.type,
    config = request.config,
    config1 = request.config1,
    config2 = request.config2,
    bp_type = request.bp_type,
    config1_text = request.config1_text,
    period = period,
    freq = freq,
    kind = request.kind,
    tracepoint = request.tracepoint,
    record = request.record,
    print_fmt = request.print_fmt,
    list = list,
    fields = by_name,
    view = view,
    filter = parsed and parsed.filter,
    attrs = attrs,
    given = parsed and parsed.attrs or {},
    group = group,
    perf_event = is_perf_event,
    sample = bits,
    params = params,
    owner = self.owner,
  }
  if event.class >= C.EVENT_CLASSES then failure.usage('more than %d events', C.EVENT_CLASSES - C.EVENT_FIRST) end
  self.list[#self.list + 1] = event
  return event
end

--- What the samples of one of perf's own events hold: sample_type.
function events:sample_type(request, bits)
  if not self.is_recording then
    return C.session_sample_type(ffi.new('struct session_event', { sample = bits }))
  end
  return recorded.sample_type(self.catalog.recorded, request.type, request.config)
end

function events:add_tracepoint(system, name, parsed, group, params)
  local tp = self:find(system, name)
  local request = { type = TRACEPOINT, config = C.tracepoint_id(tp), tracepoint = tp, system = system }
  return self:add(system .. ':' .. name, request, parsed, group, params)
end

--- Adds all events of the recording, as one group.
---@return Event[]
function events:add_recorded()
  local found, seen = {}, {}
  for _, one in ipairs(self.catalog.recorded) do
    local key = one.type .. ':' .. one.config
    if not seen[key] and not recorded.is_dummy(one) then
      seen[key] = true
      local system, name = one.name:match '^([^:]+):([^:]+)$'
      if one.type == TRACEPOINT and system then
        found[#found + 1] = self:add_tracepoint(system, name, nil, 1)
      else
        found[#found + 1] = self:add(one.name, one, nil, 1)
      end
    end
  end
  return found
end

local function refuse(text, column, message, hint)
  failure.usage('%s', selector.caret(diagnostic.new('event', text, column, message, hint)))
end

--- Refuses attributes that the profiler does not read: nothing would say that they have no effect.
function events:check_attributes(text, parsed)
  for _, attr in ipairs(parsed.attrs) do
    if not self.attributes[attr.name] then
      local names = nearest.keys(self.attributes)
      local message = ("%s does not use the attribute '%s'"):format(self.profiler, attr.name)
      local hint = diagnostic.suggest(attr.name, names)
      local known = 'it knows ' .. table.concat(names, ', ')
      refuse(text, attr.column, message, hint and hint .. ' ' .. known or known)
    end
  end
end

--- Says which PMU an event needs that this machine lacks.
local function check_machine(event)
  if catalog.can_sample(event) then return end
  for _, name in ipairs(sys.readdir(perf_events.DEVICES) or {}) do
    if name:match '^cpu' or name:match '^arm' then
      failure.raise("the PMU '%s' of this machine does not count '%s'", name, event.name)
    end
  end
  failure.raise("'%s' needs a hardware PMU, and this machine has none: %s has no 'cpu'; cpu-clock samples by time",
    event.name, perf_events.DEVICES)
end

--- Adds an event of perf: of a PMU, or one that has a name of its own.
function events:add_perf_event(text, one, group, params)
  local event, message, column
  if one.kind == 'pmu' then
    event, message, column = perf_events.parse(perf_events.open_pmu(one.name, sys), one.filter or '')
    if not event then refuse(text, (one.filter_column or one.column) + column - 1, message) end
    one.filter = nil
  else
    event = perf_events.find(one.name)
    local word, number = (one.filter or ''):match '^(%a+)=(%d+)$'
    if word == 'period' or word == 'freq' then -- as perf writes it
      one.filter = nil
      one.attrs[#one.attrs + 1] = { name = word, value = tonumber(number) }
    end
  end
  if self.is_recording then
    event = self.catalog:find_recorded(event.name) or event
  else
    check_machine(event)
  end
  return self:add(event.name, event, one, group, params)
end

--- Refuses a name that is no event.
function events:refuse_name(one)
  local words = catalog.words(self:profilers())
  for name in pairs(self.catalog:pmus()) do words[name] = true end
  failure.usage("cannot trace '%s': it is neither a tracepoint, written as system:name, nor an event of perf,"
    .. ' nor a profiler%s', one.text, nearest.hint(one.name, nearest.keys(words)))
end

--- The profilers that may be sources, by name.
---@return table<string, any>
function events:profilers()
  return self.sources and self.sources:paths() or {}
end

--- Whether a profiler is meant: by its name, or by the path of its file.
function events:is_source(one)
  if not self.sources then return false end
  local name = one.system and one.system .. ':' .. one.name or one.name
  if one.kind == 'profiler' then return self:profilers()[name] ~= nil or name:find '/' ~= nil end
  return self:profilers()[name] ~= nil and not self.catalog:has(name)
end

--- Adds the events that one selector text names ("sys:a,sys:b/filter/attr/").
---@param text string
---@param group integer
---@param params? EventParameters
---@return Event[]
function events:select(text, group, params)
  local parsed, err = selector.parse(text, self.catalog:pmus(self:profilers()), self:profilers())
  if not parsed then failure.usage('%s', selector.caret(err)) end
  local found = {}
  for _, one in ipairs(parsed) do
    self:check_attributes(text, one)
    if probes.is_probe(one.system) then
      local name, requests = probes.requests(self, one)
      for _, request in ipairs(requests) do
        found[#found + 1] = self:add(name, request, one, group, params)
      end
    elseif one.kind == 'pmu' or (one.system and perf_events.find(one.name)) then
      found[#found + 1] = self:add_perf_event(text, one, group, params)
    elseif not one.glob and self:is_source(one) then
      for _, event in ipairs(self.sources:open(self, text, one, group)) do
        found[#found + 1] = event
      end
    elseif not one.system or one.kind ~= 'event' then
      self:refuse_name(one)
    elseif one.glob then
      local names = self.catalog:matching(one.system, one.name)
      if #names == 0 then failure.usage("no event matches '%s:%s'", one.system, one.name) end
      for _, name in ipairs(names) do
        local system, event = name:match '^(.-):(.*)$'
        found[#found + 1] = records.add(self, name, one, group, params)
          or self:add_tracepoint(system, event, one, group, params)
      end
    else
      found[#found + 1] = records.add(self, one.system .. ':' .. one.name, one, group, params)
        or self:add_tracepoint(one.system, one.name, one, group, params)
    end
  end
  return found
end

--- Adds the one event that a script asks for.
---@param params EventParameters
---@return Event
function events:request(params)
  sampling.check(params)
  local one = self.is_recording and self.catalog:find_recorded(params[1])
  if one then return self:add(one.name, one, nil, 0, params) end
  local found = self:select(params[1], 0, params)
  if #found ~= 1 then failure.raise("session.event: '%s' is not one event", params[1]) end
  return found[1]
end

--- Compiles a C expression over the event's fields.
---@param event Event
---@param text string
---@param what string for messages, such as "key"
---@param form? string see ExprOptions
---@return Compiled
---@param allow_system? boolean whether system() may be called
function events.compile(event, text, what, form, allow_system)
  local compiled, err = expr.compile(text, event.fields, {
    form = form,
    what = what .. ' of ' .. event.name,
    allow_system = allow_system,
  })
  if not compiled then failure.usage('%s', expr.caret(err)) end
  return compiled
end

local function excludes(event, what)
  return (event[what] or event.params[what]) and 1 or 0
end

--- All registers of user mode, where their part is asked for.
local function registers(event, part)
  return bit.band(event.sample, part) ~= 0 and C.sample_user_registers() or 0
end

--- Registers all events with the session.
---@param own_pid? integer process to leave out, nil: none
function events:open(own_pid)
  local err = ffi.new 'struct error'
  local counted = 0
  for _, event in ipairs(self.list) do
    if event.counted then
      event.count_index = counted
      counted = counted + 1
    end
    local request = ffi.new('struct session_event', {
      name = event.name,
      type = event.type,
      config = event.config,
      config1 = event.config1 or 0,
      config2 = event.config2 or 0,
      bp_type = event.bp_type or 0,
      config1_text = event.config1_text,
      period = event.period or 1,
      freq = event.freq or 0,
      filter = event_filter.for_kernel(event, own_pid),
      cpus = event.attrs.cpus,
      everywhere = event.everywhere and 1 or 0,
      class = event.class,
      callchain = event.callchain,
      max_stack = event.max_stack,
      stack_dump = event.stack_dump,
      exclude_user = excludes(event, 'exclude_user'),
      exclude_kernel = excludes(event, 'exclude_kernel'),
      exclude_host = excludes(event, 'exclude_host'),
      exclude_guest = excludes(event, 'exclude_guest'),
      exclude_idle = excludes(event, 'exclude_idle'),
      perf_event = event.perf_event and 1 or 0,
      resolve = event.params.resolve and 1 or 0,
      precise = event.params.precise or 0,
      wakeup = event.params.wakeup or 0,
      sample = event.sample,
      regs_user = registers(event, C.PERF_SAMPLE_REGS_USER),
      regs_intr = registers(event, C.PERF_SAMPLE_REGS_INTR),
      program = event.program,
      through = event.through,
      payload = event.view.size,
      counted = event.counted and 1 or 0,
      reads = event.reads or 0,
      record = event.record or 0,
      group = event.count_group,
    })
    if event.output then
      bpf.add_output(self.session, event, self.opt.mmap_pages)
    elseif C.session_add_event(self.session, request, err) < 0 then
      failure.raise('%s', ffi.string(err.text))
    end
  end
end

return events
