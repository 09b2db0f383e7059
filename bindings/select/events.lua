-- SPDX-License-Identifier: GPL-2.0-only
--- Events of a session: turns what the user or a script names into classes of the stream, each with
--- its fields, its typed view and, where asked for, a compiled key.
local bit = require 'bit'
local ffi = require 'ffi'
local diagnostic = require 'bindings.base.diagnostic'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local fold = require 'bindings.expr.ranges'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local probes = require 'bindings.select.probes'
local records = require 'bindings.select.records'
local sampling = require 'bindings.view.sampling'
local selector = require 'bindings.select.selector'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'
local glob = require 'bindings.base.glob'

local C = ffi.C
local events = {}
events.__index = events

local TYPE_TRACEPOINT = 2 -- PERF_TYPE_TRACEPOINT
local EACCES, EPERM = 13, 1
local IN_INTERRUPT = 0x18 -- TRACE_FLAG_HARDIRQ and TRACE_FLAG_SOFTIRQ of the kernel

--- An event that is asked for. Scripts may read name, alias, freq and index.
---@class Event
---@field name string "sys:name", or as perf calls it
---@field alias string what tables call it
---@field class integer
---@field request ffi.cdata* struct event_request: what is opened, and how. Its strings are set by open()
---@field system? string of a tracepoint
---@field config1_text? string
---@field freq? integer samples a second
---@field kind? string of perf's own events: see PerfEvent
---@field params EventParameters what a script gave for it
---@field program_of? BpfObject whose program filters its samples
---@field tracepoint? ffi.cdata* struct tracepoint *
---@field print_fmt? string where it is not the tracepoint's
---@field list Field[]
---@field fields table<string, Field>
---@field view View
---@field filter? string
---@field kernel_filter? string the part of it that the kernel evaluates
---@field user_filter? string and the part that we do
---@field attrs table<string, string|boolean>
---@field count_index? integer from 0, among those that are counted
---@field given SelectorAttr[] the attributes in their order, for those that may be given more than once
---@field group integer which -e it came from, 0 for those of a script
---@field owner? Instance the profiler that named it
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
    context = context,
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    opt = opt,
    is_recording = C.session_is_recorded(session),
    inherits = inherits,
    list = {},
    views = {},
  }, events)
end

--- The same events as another profiler names them. `by_script` is set while a script that came with profscript names
--- them itself: what is missing then is not misspelt.
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

--- Formats of the session's source: of the running kernel or of a recording.
---@param session ffi.cdata*
---@return ffi.cdata* formats struct formats *
function events.formats(session)
  local err = ffi.new 'struct error'
  local formats = C.session_formats(session, err)
  if formats == nil then failure.of(err) end
  return formats
end

--- All "sys:name", sorted.
---@return string[]
function events:names()
  local text = C.formats_names(events.formats(self.session))
  local names = {}
  for name in (text ~= nil and ffi.string(text) or ''):gmatch '[^\n]+' do
    names[#names + 1] = name
  end
  C.free(text)
  return names
end

--- Whether the event exists.
---@param name string "sys:name"
function events:has(name)
  local system, event = name:match '^(.-):(.*)$'
  if probes.is_probe(system) then return true end -- opening it says more
  if records.find(name) then return true end
  return system ~= nil and C.tracepoint_find(events.formats(self.session), system, event, nil) ~= nil
end

function events:find(system, name)
  local err = ffi.new 'struct error'
  local tp = C.tracepoint_find(events.formats(self.session), system, name, err)
  if tp == nil then
    -- What a damaged recording has lost is no mistake in the command line.
    local warning = C.session_warning(self.session)
    if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
    if self.by_script and not self.is_recording then
      failure.unavailable("%s: this kernel has no event '%s:%s'", self.profiler, system, name)
    end
    local message = ffi.string(err.text)
    if self.is_recording then message = message:gsub('^no such', self.profiler .. ': the recording has no') end
    failure.usage('%s', message)
  end
  return tp
end

--- All registers of user mode, where their part is asked for.
local function registers(bits, part)
  return bit.band(bits, part) ~= 0 and C.sample_user_registers() or 0
end

--- The request for what was found, still without class, payload and rate.
---@param found table as events:add() takes it
---@param params EventParameters
---@param bits integer of sample_bits
---@return ffi.cdata* request struct event_request
local function new_request(found, params, bits)
  local request = ffi.new 'struct event_request'
  local attr = request.attr
  attr.type, attr.config = found.type, found.config
  attr.config1, attr.config2 = found.config1 or 0, found.config2 or 0
  attr.bp_type = found.bp_type or 0
  attr.precise_ip = params.precise or 0
  attr.wakeup_events = params.wakeup or 0
  for _, exclude in ipairs { 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest', 'exclude_idle' } do
    attr[exclude] = (found[exclude] or params[exclude]) and 1 or 0
  end
  attr.sample_regs_user = registers(bits, C.SAMPLE_REGS_USER)
  attr.sample_regs_intr = registers(bits, C.SAMPLE_REGS_INTR)
  request.sample = bits
  request.record = found.record or 0
  request.resolve = params.resolve and 1 or 0
  return request
end

--- Adds one event.
---@param full string its name
---@param found { type: integer, config: integer, tracepoint?: ffi.cdata*, system?: string } or a PerfEvent
---@param parsed? Selector
---@param group integer
---@param params? EventParameters
---@return Event
function events:add(full, found, parsed, group, params)
  params = params or {}
  local list, by_name = found.list or {}, {}
  local is_perf_event = not found.list and not found.tracepoint and found.name ~= 'bpf-output'
  local bits = sampling.bits(params)
  local request = new_request(found, params, bits)
  if is_perf_event then
    request.perf_event = 1
    list = sampling.fields(C.session_sample_type(self.session, request))
  elseif bits ~= 0 then
    failure.raise('session.event: sample is for hardware, clock and memory events, not for %s', full)
  elseif not found.list and found.tracepoint then
    list = views.fields(found.tracepoint)
  end
  for _, field in ipairs(list) do
    by_name[field.name] = field
  end
  local key = (found.view_key or full) .. ':' .. bits
  local view = self.views[key] or views.new(full, list, self.context, params.sample)
  self.views[key] = view
  local attrs = {}
  for _, attr in ipairs(parsed and parsed.attrs or {}) do
    attrs[attr.name] = attr.value or true
  end
  local period, freq = sampling.rate(full, found, attrs, params, self.opt)
  request.class = C.EVENT_FIRST + #self.list
  request.payload = view.size
  request.attr.freq = freq and 1 or 0
  request.attr.sample_period = freq or period or 1 -- or its other name, sample_freq
  local event = {
    name = full,
    alias = attrs.alias or full:match '([^:]*)$',
    class = request.class,
    request = request,
    system = found.system,
    config1_text = found.config1_text,
    freq = freq,
    kind = found.kind,
    tracepoint = found.tracepoint,
    print_fmt = found.print_fmt,
    list = list,
    fields = by_name,
    view = view,
    filter = parsed and parsed.filter,
    attrs = attrs,
    given = parsed and parsed.attrs or {},
    group = group,
    params = params,
    owner = self.owner,
  }
  if event.class >= C.EVENT_CLASSES then failure.usage('more than %d events', C.EVENT_CLASSES - C.EVENT_FIRST) end
  self.list[#self.list + 1] = event
  return event
end

function events:add_tracepoint(system, name, parsed, group, params)
  local tp = self:find(system, name)
  local request = { type = TYPE_TRACEPOINT, config = C.tracepoint_id(tp), tracepoint = tp, system = system }
  return self:add(system .. ':' .. name, request, parsed, group, params)
end

--- The events that the recording has: name, type, config.
---@return { name: string, type: integer, config: integer }[]
function events:recorded()
  local n, list = ffi.new 'uint32_t[1]', {}
  local found = C.session_recorded_events(self.session, n)
  for i = 0, n[0] - 1 do
    list[i + 1] = { name = ffi.string(found[i].name), type = found[i].type, config = tonumber(found[i].config) }
  end
  return list
end

-- perf adds one to each recording, for names and mappings.
local function is_dummy(recorded) return recorded.type == 1 and recorded.config == 9 end

--- Adds all events of the recording, as one group.
---@return Event[]
function events:add_recorded()
  local found, seen = {}, {}
  for _, one in ipairs(self:recorded()) do
    local key = one.type .. ':' .. one.config
    if not seen[key] and not is_dummy(one) then
      seen[key] = true
      local system, name = one.name:match '^([^:]+):([^:]+)$'
      if one.type == TYPE_TRACEPOINT and system then
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

--- Whether this machine has what one of perf's own events needs.
---@param event PerfEvent
function events.supported(event)
  if event.kind == 'software' or event.kind == 'pmu' or event.kind == 'breakpoint' then return true end
  local code = -C.support_open(event.type, event.config, 0)
  return code == 0 or code == EACCES or code == EPERM
end

--- Whether an event can be had: from this kernel and machine, or from the recording.
---@param name string
---@return boolean
function events:supports(name)
  local record = records.find(name)
  if record then return C.session_has_records(self.session, record.record) end
  if self.is_recording then return self:find_recorded(name) ~= nil end
  if name:find(':', 1, true) then return self:has(name) end
  local event = perf_events.find(name)
  return event ~= nil and events.supported(event)
end

--- Says which PMU an event needs that this machine lacks.
local function check_machine(event)
  if events.supported(event) then return end
  for _, name in ipairs(sys.readdir(perf_events.DEVICES) or {}) do
    if name:match '^cpu' or name:match '^arm' then
      failure.unavailable("the PMU '%s' of this machine does not count '%s'", name, event.name)
    end
  end
  failure.unavailable(
    "'%s' needs a hardware PMU, and this machine has none: %s has no 'cpu'; cpu-clock samples by time", event.name,
    perf_events.DEVICES)
end

--- An event of perf in the recording; perf adds modifiers to the name, as in "cycles:u", and some events
--- have two names.
function events:find_recorded(name)
  local known = not name:find(':', 1, true) and perf_events.find(name)
  for _, recorded in ipairs(self:recorded()) do
    if recorded.name == name or recorded.name:match '^[^:/]+' == name then return recorded end
    if known and recorded.type == known.type and recorded.config == known.config then return recorded end
  end
end

--- The names of perf's own events in the recording; nil where there is none.
---@return string[]?
function events:recorded_samples()
  if not self.is_recording then return nil end
  local names = {}
  for _, recorded in ipairs(self:recorded()) do
    if recorded.type ~= TYPE_TRACEPOINT and not is_dummy(recorded) then names[#names + 1] = recorded.name end
  end
  return names
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
    event = self:find_recorded(event.name) or event
  else
    check_machine(event)
  end
  return self:add(event.name, event, one, group, params)
end

--- The words that stand for PMUs. A profiler goes before a PMU of its name.
function events:pmu_names()
  if self.pmus then return self.pmus end
  local pmus = perf_events.pmus(sys)
  for name in pairs(self.sources and self.sources:paths() or {}) do
    pmus[name] = nil
  end
  self.pmus = pmus
  return pmus
end

--- Names without a colon that a handler may be called after: perf's own events, and profilers.
---@return table<string, any>
function events:words()
  local words = {}
  for _, name in ipairs(perf_events.names) do
    words[name] = true
  end
  for name in pairs(self:profilers()) do
    words[name] = true
  end
  return words
end

--- Refuses a name that is no event.
function events:refuse_name(one)
  local names = {}
  for _, list in ipairs { nearest.keys(self.pmus), perf_events.names, nearest.keys(self:profilers()) } do
    for _, name in ipairs(list) do
      names[#names + 1] = name
    end
  end
  failure.usage("cannot trace '%s': it is neither a tracepoint, written as system:name, nor an event of perf,"
    .. ' nor a profiler%s', one.text, nearest.hint(one.name, names))
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
  return self:profilers()[name] ~= nil and not self:has(name)
end

--- Adds the events that one selector text names ("sys:a,sys:b/filter/attr/").
---@param text string
---@param group integer
---@param params? EventParameters
---@return Event[]
function events:select(text, group, params)
  local parsed, err = selector.parse(text, self:pmu_names(), self:profilers())
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
      local pattern, before = glob.pattern(one.system .. ':' .. one.name), #found
      for _, name in ipairs(one.system == records.SYSTEM and records.names or self:names()) do
        if name:match(pattern) and (one.system ~= records.SYSTEM or self:supports(name)) then
          local system, event = name:match '^(.-):(.*)$'
          found[#found + 1] = records.add(self, name, one, group, params)
            or self:add_tracepoint(system, event, one, group, params)
        end
      end
      if #found == before then failure.usage("no event matches '%s:%s'", one.system, one.name) end
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
  local recorded = self.is_recording and self:find_recorded(params[1])
  if recorded then return self:add(recorded.name, recorded, nil, 0, params) end
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

--- Divides the event's filter: `kernel` is text for the kernel, `user` what the dispatch loop
--- evaluates. A recording's filters are all ours, as are those of the probe PMUs, whose own fields
--- the kernel's filters do not know.
---@return { kernel?: string, user?: Compiled, user_text?: string }
function events.split_filter(event, recorded)
  if not event.filter or event.filter == '' then return {} end
  local result, err
  if recorded or not event.tracepoint then
    local user
    user, err = expr.compile_filter(event.filter, event.fields, { what = 'filter of ' .. event.name })
    if err and not err.kernel_only then
      user, err = expr.compile(event.filter, event.fields, { form = 'filter', what = 'filter of ' .. event.name })
    end
    result = user and { user = user, user_text = event.filter }
  else
    local what = { what = 'filter of ' .. event.name }
    result, err = expr.split_filter(event.filter, event.fields, what)
    -- What did not go to the kernel may only have been too long for it.
    local folded = result and result.user and fold.ranges(event.filter)
    if folded then result = expr.split_filter(folded, event.fields, what) end
  end
  if not result then
    if selector.attributes[event.filter] then
      err.hint = ('attributes stand behind the filter: %s//%s/'):format(event.name, event.filter)
    end
    failure.usage('%s', expr.caret(err))
  end
  return result
end

--- The filter that the kernel gets.
---@param event Event
---@param own_pid? integer process to leave out, nil: none
---@return string?
function events.kernel_filter(event, own_pid)
  local filter = event.kernel_filter
  -- A switch to or from ourselves matters to the others: leaving it out would falsify their
  -- times. What we do ourselves (system calls, page faults) is noise that feeds itself; what an
  -- interrupt does meanwhile is not ours.
  if own_pid and (event.tracepoint or probes.is_probe(event.system)) and event.system ~= 'sched' then
    local own = ('common_pid != %d || common_flags & %d'):format(own_pid, IN_INTERRUPT)
    if filter then own = '(' .. own .. ')' end
    filter = filter and ('(%s) && %s'):format(filter, own) or own
  end
  return filter
end

--- Registers all events with the session.
---@param own_pid? integer process to leave out, nil: none
function events:open(own_pid)
  local err = ffi.new 'struct error'
  local counted = 0
  for _, event in ipairs(self.list) do
    local request = event.request
    if request.counted == 1 then
      event.count_index = counted
      counted = counted + 1
    end
    local filter = events.kernel_filter(event, own_pid)
    request.name, request.config1_text, request.filter, request.cpus = event.name, event.config1_text, filter,
      event.attrs.cpus
    if request.output.per_cpu == 1 then request.output.size = self.opt.mmap_pages end
    if C.session_add_event(self.session, request, err) < 0 then failure.raise('%s', ffi.string(err.text)) end
  end
end

return events
