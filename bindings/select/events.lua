-- SPDX-License-Identifier: GPL-2.0-only
--- Event set of a session: turns selectors of the user or a script into classes of the stream, each with its fields
--- and typed view.
local bit = require 'bit'
local ffi = require 'ffi'
local catalog = require 'bindings.select.catalog'
local diagnostic = require 'bindings.base.diagnostic'
local event_class = require 'bindings.select.event'
local event_filter = require 'bindings.select.event_filter'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local machines = require 'bindings.select.machines'
local nearest = require 'bindings.base.nearest'
local perf_events = require 'bindings.view.perf_events'
local probes = require 'bindings.select.probes'
local recorded = require 'bindings.select.recorded'
local records = require 'bindings.select.records'
local route = require 'bpf.plan.route'
local sampling = require 'bindings.view.sampling'
local selector = require 'bindings.select.selector'
local string_fields = require 'bpf.pointers.string_fields'
local sys = require 'bindings.base.sys'
local typed_events = require 'bpf.pointers.typed_events'
local views = require 'bindings.view.views'

local C = ffi.C
local events = {}
events.__index = events

local TRACEPOINT = perf_events.TYPES.tracepoint

--- Returns the attributes that have an effect: the common ones and those that this profiler reads.
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
---@param script { name: string, profiler: table } the profiler that requests the events
---@param opt table parsed options
---@param inherits? boolean child tasks inherit the events
---@param sources? Sources the profilers that can be sources of events
function events.new(session, context, script, opt, inherits, sources)
  return setmetatable({
    session = session,
    catalog = catalog.of_session(session, 0),
    context = context,
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    unused = {},
    opt = opt,
    sources = sources,
    is_recording = C.session_is_recorded(session),
    inherits = inherits,
    machines = machines.new(session, context, opt),
    list = {},
    by_class = {},
    next_class = { C.EVENT_FIRST },
    probes = {},
    views = {},
  }, events)
end

--- Returns the same event set for the requests of another profiler. `by_script` is set while a script that ships with
--- profscript requests events: if one is missing, it is not a spelling mistake.
---@param script { name: string, profiler: table }
---@param owner Instance
function events:of(script, owner)
  return setmetatable({
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    unused = {},
    opt = owner.opt,
    owner = owner,
  }, { __index = self })
end

--- Returns an event set for another version of the profiler, in a session whose events are open. An event that it
--- requests takes the class of an open one that looks the same; others get classes of their own, but are not open.
--- bindings/run/reload.lua compares them.
---@param script { name: string, profiler: table }
---@param opt table
---@param sources Sources
function events:again(script, opt, sources)
  local by_class, set_probes = {}, {}
  for class, event in pairs(self.by_class) do by_class[class] = event end
  for text, list in pairs(self.probes) do set_probes[text] = { unpack(list) } end
  return setmetatable({
    profiler = script.name,
    attributes = events.known_attributes(script.profiler),
    unused = {},
    opt = opt,
    sources = sources,
    list = {},
    by_class = by_class,
    next_class = { self.next_class[1] },
    open_events = self.open_events or self.list,
    set_probes = set_probes,
    taken_classes = {},
  }, { __index = self })
end

--- Returns the event of a class, also of the records of tasks.
---@param class integer
---@return Event
function events:of_class(class)
  local name = class == C.EVENT_EXIT and 'exit' or class == C.EVENT_FORK and 'fork' or 'comm'
  return self.by_class[class] or event_class.of_task(name, class, self.context)
end

--- Returns the class of a new event.
function events:new_class(name, request)
  for _, open in ipairs(self.open_events or {}) do
    local is_same = open.name == name and open.request.sample == request.sample
      and open.request.member == request.member and open.request.attr.config == request.attr.config
    if is_same and not self.taken_classes[open.class] then
      self.taken_classes[open.class] = open
      return open.class
    end
  end
  local class = self.next_class[1]
  self.next_class[1] = class + 1
  return class
end

--- Sets a probe, unless the version before has set it.
---@param one Selector
---@return string name
---@return table[] requests see probes.requests()
function events:probe_requests(one)
  local text = table.concat({ one.system, one.name, one.path or '', one.args or '' }, ' ')
  local set = self.set_probes and self.set_probes[text]
  if set and set[1] then return unpack(table.remove(set, 1)) end
  local name, requests = probes.requests(self, one)
  self.probes[text] = self.probes[text] or {}
  table.insert(self.probes[text], { name, requests })
  return name, requests
end

--- Returns the same event set for the events that another machine sends.
---@param machine Machine
function events:on(machine)
  return setmetatable({
    catalog = machine.catalog,
    context = machine.context,
    machine = machine,
    is_recording = true,
  }, { __index = self })
end

--- Returns the formats of the running kernel or of the recording.
function events:formats()
  local formats, _, err = self.catalog:formats()
  if not formats then failure.of(err) end
  return formats
end

--- Returns the names of the recording's tracepoints that have no format, as a list and as a set.
---@return string[]
function events:formatless()
  local names = {}
  for _, one in ipairs(self.catalog.recorded) do
    local system, name = one.name:match '^([^:]+):([^:]+)$'
    if one.type == TRACEPOINT and system and not names[one.name] and not self.catalog:tracepoint(system, name) then
      names[#names + 1], names[one.name] = one.name, true
    end
  end
  return names
end

--- Returns a line about the selected tracepoints whose fields the recording does not contain; nil if there are none.
---@return string?
function events:fieldless()
  local names, members = {}, {}
  for _, one in ipairs(self.catalog.recorded) do members[one.name] = one.is_member end
  for _, event in ipairs(self.list) do
    if event.tracepoint and members[event.name] then names[#names + 1], members[event.name] = event.name, false end
  end
  if #names == 0 then return end
  return ('%s: only the leader of their group was sampled ({...}:S): the fields of %s are 0'):format(self.profiler,
    table.concat(names, ', '))
end

function events:lacks_formats(names)
  local list = table.concat(names, ', ')
  return ('%s: the recording lacks the formats of its tracepoints (%s)'):format(self.profiler, list)
end

--- Fails if a sender should have sent an event that is missing.
function events:check_sent(name)
  local address = self.machine and self.machine.address or self.opt.input
  if self.machine or address and machines.is_address(address) then machines.lacks(address, self.catalog, name) end
end

--- Returns a tracepoint, or fails if it does not exist.
---@return ffi.cdata* tp struct tracepoint *
function events:find(system, name)
  self:formats() -- raises the error if there are none
  local tp, message = self.catalog:tracepoint(system, name)
  if not tp then
    -- An event missing from a damaged recording is not a mistake in the command line.
    local warning = C.session_warning(self.session)
    if warning ~= nil then failure.raise('%s', ffi.string(warning)) end
    if self.by_script and not self.is_recording then
      failure.unavailable("%s: this kernel has no event '%s:%s'", self.profiler, system, name)
    end
    self:check_sent(system .. ':' .. name)
    local formatless = self.is_recording and #self.catalog:tracepoints() == 0 and self:formatless() or {}
    if #formatless > 0 then failure.raise('%s', self:lacks_formats(formatless)) end
    if self.is_recording then message = message:gsub('^no such', self.profiler .. ': the recording contains no') end
    failure.usage('%s', message)
  end
  return tp
end

--- Returns the mask of all user registers if the part is requested, else 0.
local function registers(bits, part)
  return bit.band(bits, part) ~= 0 and C.sample_user_registers() or 0
end

--- Returns the request for an event, still without class, payload and rate.
---@param found table as events:add() takes it
---@param params EventParameters
---@param bits integer see sampling.bits()
---@param machine? Machine
---@return ffi.cdata* request struct event_request
local function new_request(found, params, bits, machine)
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
  attr.sample_regs_user = registers(bits, C.PERF_SAMPLE_REGS_USER)
  attr.sample_regs_intr = registers(bits, C.PERF_SAMPLE_REGS_INTR)
  request.sample = bits
  request.member = machine and machine.index or 0
  request.record = found.record or 0
  request.resolve = params.resolve == 'data' and 2 or params.resolve and 1 or 0
  return request
end

--- Returns the parameters of an event, with the control group in its samples if it is read and an own event has it.
function events:with_groups(full, found, params)
  if found.list or found.record or self.machine or not self.owner:reads_groups() then return params end
  local copy = {}
  for name, value in pairs(params) do copy[name] = value end
  copy.sample = { 'cgroup', unpack(params.sample or {}) }
  if self.is_recording then
    local request = new_request(found, copy, sampling.OF_ALL)
    if bit.band(C.session_sample_type(self.session, request), sampling.OF_ALL) == 0 then
      failure.usage('%s: %s has no control groups in this recording; record it with --all-cgroups', self.profiler, full)
    end
  end
  return copy
end

--- Adds an event.
---@param full string its name
---@param found { type: integer, config: integer, tracepoint?: ffi.cdata*, system?: string } or a PerfEvent
---@param parsed? Selector
---@param params? EventParameters
---@return Event
function events:add(full, found, parsed, params)
  params = self:with_groups(full, found, params or {})
  local list, by_name = found.list or {}, {}
  local is_perf_event = not found.list and not found.tracepoint and found.name ~= 'bpf-output'
  local bits = sampling.bits(params)
  local request = new_request(found, params, bits, self.machine)
  if is_perf_event then
    request.perf_event = 1
    list = sampling.fields(C.session_sample_type(self.session, request))
  elseif bit.band(bits, bit.bnot(sampling.OF_ALL)) ~= 0 then
    failure.raise('session.event: %s: sample applies to hardware, clock and memory events only', full)
  elseif not found.list and found.tracepoint then
    list = views.fields(found.tracepoint)
  end
  for _, field in ipairs(list) do
    by_name[field.name] = field
  end
  local key = ('%s:%d:%d'):format(found.view_key or full, bits, request.member)
  local view = self.views[key] or views.new(full, list, self.context, params.sample)
  self.views[key] = view
  local attrs = {}
  for _, attr in ipairs(parsed and parsed.attrs or {}) do
    attrs[attr.name] = attr.value or true
  end
  local period, freq = sampling.rate(full, found, attrs, params, self.opt)
  request.class = self:new_class(full, request)
  request.payload = view.size
  request.attr.freq = freq and 1 or 0
  request.attr.sample_period = freq or period or 1 -- a union with sample_freq
  local added = event_class.new {
    name = full,
    route = route.new(full),
    alias = attrs.alias or full:match '([^:]*)$',
    class = request.class,
    request = request,
    system = found.system,
    config1_text = found.config1_text,
    kind = found.kind,
    tracepoint = found.tracepoint,
    print_fmt = found.print_fmt,
    list = list,
    fields = by_name,
    view = view,
    filter = parsed and parsed.filter,
    attrs = attrs,
    given = parsed and parsed.attrs or {},
    params = params,
    owner = self.owner,
    context = self.context,
    machine = self.machine,
  }
  if added.class >= C.EVENT_CLASSES then failure.usage('more than %d events', C.EVENT_CLASSES - C.EVENT_FIRST) end
  self.list[#self.list + 1], self.by_class[added.class] = added, added
  return added
end

function events:add_tracepoint(system, name, parsed, params, tp)
  tp = tp or self:find(system, name)
  local strings = not self.is_recording and string_fields.add(self.catalog, system, name, tp, self.owner)
  local request = { type = TRACEPOINT, config = C.tracepoint_id(tp), tracepoint = tp, system = system }
  local added = self:add(system .. ':' .. name, request, parsed, params)
  added:set_strings(strings)
  -- The kernel does not unwind user stacks at each function, because that may fault.
  if added.name == 'ftrace:function' then added.request.attr.exclude_callchain_user = 1 end
  return added
end

--- Adds a probe that the recording or the sender has set, at all of its places.
function events:add_recorded_probe(one, params, found)
  local name = one.system .. ':' .. one.name
  local list = self.catalog:probes(name)
  if #list == 0 then
    self:check_sent(name)
    failure.usage('the recording contains no %s, and probes cannot be set in a recording', name)
  end
  for _, tp in ipairs(list) do
    found[#found + 1] = self:add_tracepoint(one.system, one.name, one, params, tp)
  end
end

--- Adds all events of the recording whose fields are known.
---@return Event[]
function events:add_recorded()
  local found, seen, formatless = {}, {}, self:formatless()
  for _, one in ipairs(self.catalog.recorded) do
    local key = one.type .. ':' .. one.config
    if not seen[key] and not recorded.is_dummy(one) and not formatless[one.name] then
      seen[key] = true
      local system, name = one.name:match '^([^:]+):([^:]+)$'
      if one.type == TRACEPOINT and system then
        found[#found + 1] = self:add_tracepoint(system, name)
      else
        found[#found + 1] = self:add(one.name, one)
      end
    end
  end
  if #formatless == 0 then return found end
  local warning = C.session_warning(self.session)
  if #found == 0 then
    failure.raise('%s', warning ~= nil and ffi.string(warning) or self:lacks_formats(formatless))
  end
  self.context.warn(self:lacks_formats(formatless) .. ': their events are left out')
  return found
end

local function refuse(text, column, message, hint)
  failure.usage('%s', selector.caret(diagnostic.new('event', text, column, message, hint)))
end

--- Removes attributes that the profiler does not read, with one warning for each name: a list of events can be used
--- for several profilers.
function events:drop_attributes(parsed)
  local kept = {}
  for _, attr in ipairs(parsed.attrs) do
    if self.attributes[attr.name] then
      kept[#kept + 1] = attr
    elseif not self.unused[attr.name] then
      self.unused[attr.name] = true
      self.context.warn(("%s: the attribute '%s' has no effect on this profiler"):format(self.profiler, attr.name))
    end
  end
  parsed.attrs = kept
end

--- Fails if this machine cannot sample an event.
local function check_machine(event)
  if catalog.can_sample(event) then return end
  for _, name in ipairs(sys.readdir(perf_events.DEVICES) or {}) do
    if name:match '^cpu' or name:match '^arm' then
      failure.unavailable("'%s' is not supported by the PMU '%s' of this machine", event.name, name)
    end
  end
  failure.unavailable(
    "'%s' needs a hardware PMU, and this machine has none (no 'cpu' in %s); use cpu-clock to sample by time",
    event.name, perf_events.DEVICES)
end

--- Adds one of perf's own events: a PMU event or a named one.
function events:add_perf_event(text, one, params)
  local event, message, column
  if one.kind == 'pmu' then
    event, message, column = perf_events.parse(perf_events.open_pmu(one.name, sys), one.filter or '')
    if not event then refuse(text, (one.filter_column or one.column) + column - 1, message) end
    one.filter = nil
  else
    event = perf_events.find(one.name)
    local word, number = (one.filter or ''):match '^(%a+)=(%d+)$'
    if word == 'period' or word == 'freq' then -- perf's syntax
      if tonumber(number) == 0 then
        refuse(text, (one.filter_column or one.column) + #word + 1, ("'%s' must be more than 0"):format(word))
      end
      one.filter = nil
      one.attrs[#one.attrs + 1] = { name = word, value = tonumber(number) }
    end
  end
  if self.is_recording then
    local sent = self.catalog:find_recorded(event.name)
    if not sent then self:check_sent(event.name) end
    event = sent or event
    self.catalog:check_recorded(event)
  else
    check_machine(event)
  end
  return self:add(event.name, event, one, params)
end

--- Fails for an unknown name.
function events:refuse_name(one)
  for _, name in ipairs(self.catalog:tracepoints() or {}) do
    if name:match ':(.*)$' == one.name then
      failure.usage("cannot trace '%s': a tracepoint is written as system:name; did you mean '%s'?", one.text, name)
    end
  end
  local words = catalog.words(self:profilers())
  for name in pairs(self.catalog:pmus()) do words[name] = true end
  failure.usage("unknown event '%s': not a tracepoint (system:name), perf event or profiler%s", one.text,
    nearest.hint(one.name, nearest.keys(words)))
end

--- Returns the profilers that may be event sources, by name.
---@return table<string, any>
function events:profilers()
  return self.sources and self.sources:paths() or {}
end

--- Returns whether a selector is a profiler, given by name or by the path of its file.
function events:is_source(one)
  if not self.sources then return false end
  local name = one.system and one.system .. ':' .. one.name or one.name
  if one.kind == 'profiler' then return self:profilers()[name] ~= nil or name:find '/' ~= nil end
  return self:profilers()[name] ~= nil and not self.catalog:has(name)
end

--- Adds the events of a selector ("sys:a,sys:b/filter/attr/").
---@param text string
---@param params? EventParameters
---@param lacks? fun(name: string): boolean whether to leave out an event, if others remain
---@return Event[]
function events:select(text, params, lacks)
  local parsed, err = selector.parse(text, self.catalog:pmus(self:profilers()), self:profilers(), self.is_recording)
  if not parsed then failure.usage('%s', selector.caret(err)) end
  local found = {}
  for i, one in ipairs(parsed) do
    local has_others = i < #parsed or #found > 0
    if lacks and one.system and has_others and lacks(one.system .. ':' .. one.name) then goto continue end
    self:drop_attributes(one)
    for _, set in ipairs(self:sets_of(text, one)) do set:select_one(text, one, params, found) end
    ::continue::
  end
  return found
end

--- Returns the event sets in which to look for an event: those of the machines of pull=, or this one.
---@return table[]
function events:sets_of(text, one)
  local sets, seen, vm, column = {}, {}, nil, nil
  for _, attr in ipairs(one.attrs) do
    if attr.name == 'vm' then vm, column = attr.value, attr.column end
  end
  for _, attr in ipairs(one.attrs) do
    for address in (attr.name == 'pull' and attr.value .. ',' or ''):gmatch '%s*(.-)%s*,' do
      if self.is_recording then
        refuse(text, attr.column, 'pull= cannot be combined with --input')
      end
      if not seen[address] then sets[#sets + 1] = self:on(self.machines:at(address, vm)) end
      seen[address] = true
    end
  end
  if vm and #sets == 0 then refuse(text, column, 'vm= names the guest that sends the event of a pull=') end
  return #sets > 0 and sets or { self }
end

--- Adds the events of one selector to a list.
---@param found Event[]
function events:select_one(text, one, params, found)
  if self.is_recording and probes.is_probe(one.system) then
    self:add_recorded_probe(one, params, found)
  elseif self.machine and self:is_source(one) then
    refuse(text, one.column, "pull= takes events of others, but '" .. one.text:match '^[^/]*' .. "' is created here")
  elseif typed_events.is_one(self, one) then
    for _, request in ipairs(typed_events.requests(self, one)) do
      found[#found + 1] = self:add(request.name, request, one, params)
    end
  elseif probes.is_probe(one.system) then
    local name, requests = self:probe_requests(one)
    for _, request in ipairs(requests) do
      found[#found + 1] = self:add(name, request, one, params)
    end
  elseif one.kind == 'pmu' or one.is_perf_event then
    found[#found + 1] = self:add_perf_event(text, one, params)
  elseif not one.glob and self:is_source(one) then
    for _, event in ipairs(self.sources:open(self, text, one)) do
      found[#found + 1] = event
    end
  elseif not one.system or one.kind ~= 'event' then
    self:refuse_name(one)
  elseif one.glob then
    local names = self.catalog:matching(one.system, one.name)
    if #names == 0 then failure.usage("no event matches '%s:%s'", one.system, one.name) end
    for _, name in ipairs(names) do
      local system, event = name:match '^(.-):(.*)$'
      found[#found + 1] = records.add(self, name, one, params)
        or self:add_tracepoint(system, event, one, params)
    end
  else
    found[#found + 1] = records.add(self, one.system .. ':' .. one.name, one, params)
      or self:add_tracepoint(one.system, one.name, one, params)
  end
end

--- Adds the event of a session.event() call.
---@param params EventParameters
---@return Event
function events:request(params)
  sampling.check(params)
  local one = self.is_recording and self.catalog:find_recorded(params[1])
  if one and one.type ~= TRACEPOINT then return self:add(one.name, one, nil, params) end
  local found = self:select(params[1], params)
  if #found ~= 1 then failure.raise("session.event: '%s' is not a single event", params[1]) end
  return found[1]
end

--- Compiles a C expression over the event's fields.
---@param event Event
---@param text string
---@param what string for messages, such as "key"
---@param form? string see ExprOptions
---@param allow_system? boolean allow calls of system()
---@return Compiled
function events.compile(event, text, what, form, allow_system)
  local compiled, err = expr.compile(text, event.fields, {
    form = form,
    what = what .. ' of ' .. event.name,
    allow_system = allow_system,
  })
  if not compiled then failure.usage('%s', expr.caret(err)) end
  return compiled
end

--- Returns all events but those that are derived from others.
---@return Event[]
function events:shown()
  local list = {}
  for _, event in ipairs(self.list) do
    if not event.is_derived then list[#list + 1] = event end
  end
  return list
end

--- Adds all events to the session.
---@param own? integer[] threads to exclude, nil: none
function events:open(own)
  local err = ffi.new 'struct error'
  for _, one in ipairs(self:shown()) do
    if route.is_read(one.route) then
      one:complete(event_filter.for_kernel(one, own))
      if one.request.output.per_cpu == 1 then one.request.output.size = self.opt.mmap_pages end
      if C.session_add_event(self.session, one.request, err) < 0 then failure.raise('%s', ffi.string(err.text)) end
    end
  end
end

return events
