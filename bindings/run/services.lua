-- SPDX-License-Identifier: GPL-2.0-only
--- Services: functions of the session that other modules use: task names, kernel symbols, stacks, C expressions, copies
--- of events.
local addresses = require 'bindings.print.addresses'
local cgroups = require 'bpf.groups.cgroups'
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local frames = require 'bindings.print.frames'
local intern = require 'bindings.base.intern'
local libc = require 'bindings.base.libc'
local names = require 'bindings.base.number_names'
local nearest = require 'bindings.base.nearest'
local srcline = require 'bindings.print.srcline'
local text = require 'bindings.base.text'
local views = require 'bindings.view.views'

local C = ffi.C
local services = {}

local MAX_STRING_KEYS = 65536 -- distinct strings used as keys; all others share one key

--- A compiled C expression.
---@class Expression
---@field text string
---@field type string 'i32', 'u32', 'i64', 'u64' or 'string'
---@field fields string[] fields that it reads, sorted
---@field source string the generated Lua code
---@field value fun(ev: Ev): number|integer64|string|nil evaluates it; an integer64 for 64-bit types; nil after a
--- division by zero or a read beyond the record

---@class Services
---@field task_name fun(tid: integer, time: number): string not escaped
---@field symbol fun(address: integer|ffi.cdata*, with_offset?: boolean): string?
---@field kernel_string fun(address: ffi.cdata*): string?
---@field strings Keys ids of strings that are used as keys
---@field expression_env table<string, function> functions that C expressions can call
---@field expression fun(event: Event, text: string, allow_system?: boolean): Expression
---@field number fun(event: Event, text: string, what?: string): fun(ev: ffi.cdata*): number? compiles an expression
--- whose value is a Lua number, rounded beyond 2^53; what: its name in messages
---@field key_printer fun(event: Event, key?: string): (fun(key: number|ffi.cdata*): string)?
---@field stack fun(e: ffi.cdata*): integer id of the event's stack; -1 if it was recorded without one
---@field part fun(e: ffi.cdata*, bit: integer): ffi.cdata* a part of the sample that is a single number
---@field node fun(cpu: integer): integer NUMA node; -1: unknown
---@field container fun(cgroup: number|ffi.cdata*): string its container, see bpf/groups/containers.lua
---@field frames Frames
---@field keep fun(ev: ffi.cdata*): ffi.cdata* returns a copy of the event that is valid as long as it is referenced
---@field of_machine fun(member: integer, has_our_threads: boolean): Services the same services with the names of
--- another machine
---@field any ffi.ctype* view type for events of several classes
---@field warn fun(line: string)

--- Returns the formats of a machine.
local function formats(session, member)
  local err = ffi.new 'struct error'
  local found = C.session_formats(session, member, err)
  if found == nil then failure.raise('%s', ffi.string(err.text)) end
  return found
end

--- Returns the kernel symbol at an address: "name" or "name+0x1c"; nil if there is none.
local function symbol(session, member, address, with_offset)
  local start = ffi.new 'uint64_t[1]'
  local name = C.formats_symbol(formats(session, member), address, start)
  if name == nil then return end
  name = text.safe(ffi.string(name))
  return with_offset and ('%s+0x%x'):format(name, address - start[0]) or name
end

--- Returns the kernel string at an address in a print format; nil if unknown.
local function kernel_string(session, member, address)
  local s = C.formats_string(formats(session, member), address)
  return s ~= nil and ffi.string(s) or nil
end

local function expression_env(session, member, out, self)
  local strings, machine = self.strings, ffi.string(C.session_arch(session, member))
  return {
    intern = function(bytes, length)
      if type(bytes) == 'string' then return strings.id(bytes) end
      return strings.id(ffi.string(bytes, libc.strnlen(bytes, length)))
    end,
    comm_get = function(tid, time) return self.task_name(tid, time or math.huge) end,
    node = self.node,
    cgroup = function(e) return self.part(e, C.PERF_SAMPLE_CGROUP) end,
    container = function(e) return self.container(self.part(e, C.PERF_SAMPLE_CGROUP)) end,
    container_of = self.container,
    syscall_name = function(nr) return names.syscall(nr, machine) end,
    exit_reason_str = names.exit_reason,
    ksymbol = function(address) return self.symbol(address) or ('0x%x'):format(address) end,
    printf = function(format, ...)
      local line = format:format(...)
      out:write(line)
      return #line
    end,
    system = function(format, ...)
      out:flush() -- keeps the output in order
      return os.execute(format:format(...))
    end,
  }
end

--- Returns a compiled expression as a function of an event.
local function evaluator(event, compiled)
  local evaluate, view = expr.load(compiled, event.context.expression_env), event.view
  local payload, size, type, cast, istype = view.payload, view.size, view.type, ffi.cast, ffi.istype
  return function(ev)
    -- The first case is the usual one, and costs compiled code nothing.
    local e = istype(type, ev) and views.event_of(ev) or views.event(ev, 'an expression')
    if e.raw_size < size then error(('the expression is for %s, not for this event'):format(event.name), 2) end
    return evaluate(e, cast(payload, e.raw), e.raw, e.raw_size)
  end
end

local function expression(event, source, allow_system)
  local compiled = events.compile(event, source, 'expression', nil, allow_system)
  return {
    text = source,
    type = compiled.type,
    fields = nearest.keys(compiled.fields_used),
    source = compiled.source,
    value = evaluator(event, compiled),
  }
end

local function number(event, source, what)
  return evaluator(event, events.compile(event, source, what or 'expression', 'number'))
end

--- Returns a function that evaluates the event's printkey= expression for a key, its variable `key`, or that returns
--- the text of an address, if the key is one; nil if the key is printed as it is.
local function key_printer(self, event, key_source)
  local source = event.attrs.printkey
  if not source then return addresses.is_source(event, key_source) and addresses.text or nil end
  local compiled, err = expr.compile(source, {}, {
    what = 'printkey of ' .. event.name,
    variables = { key = { type = 'u64', code = 'cast("uint64_t", e.key)' } },
  })
  if not compiled then failure.usage('%s', expr.caret(err)) end
  local e, printed = ffi.new 'struct event', nil
  local env = setmetatable({
    printf = function(format, ...)
      printed = (printed or '') .. format:format(...)
      return #printed
    end,
  }, { __index = self.expression_env })
  local evaluate = expr.load(compiled, env)
  return function(key)
    e.key, printed = key, nil
    local value = evaluate(e, nil, nil, 0)
    return printed or tostring(value)
  end
end

local function keeper()
  local timeline = ffi.gc(C.timeline_new(0), C.timeline_free)
  return function(ev)
    local kept = C.timeline_keep(timeline, views.event(ev, 'ev:keep'))
    if kept == nil then error('ev:keep: too many kept events', 2) end
    return ffi.gc(ffi.cast(ffi.typeof(ev), kept), function(e)
      C.timeline_release(timeline, ffi.cast('struct event *', e))
    end)
  end
end

--- Adds the functions that name what the events of a machine are about: its tasks, its addresses.
---@param self Services
---@param member integer see session_add_machine()
---@param has_our_threads? boolean its events are those of threads of this machine
---@return Services self
local function name_things(self, session, member, out, has_our_threads)
  local tasks = C.session_tasks(session, has_our_threads and 0 or member)
  function self.task_name(tid, time) return ffi.string(C.tasks_name(tasks, tid, time)) end
  function self.symbol(address, with_offset) return symbol(session, member, address, with_offset) end
  function self.kernel_string(address) return kernel_string(session, member, address) end
  function self.node(cpu) return (C.session_cpu_node(session, member, cpu)) end
  self.expression_env = expression_env(session, member, out, self)
  return self
end

--- Returns the view of the events of a class.
local function view_of(self, event_of, class)
  local event = event_of(class)
  if event then return event.view end
  local name = class == C.EVENT_FILTERED and '(expired)' or class == C.EVENT_EXIT and 'exit' or '(task)'
  return views.new(name, {}, self)
end

---@param session ffi.cdata* struct session *
---@param out Output
---@param event_of fun(class: integer): Event? the run's event of a class
---@param with_srcline? boolean add source lines to frames
---@param progress Progress
---@return Services
function services.new(session, out, event_of, with_srcline, progress)
  local add_frame = with_srcline and srcline.adder(session) or nil
  local part_size = ffi.new 'uint32_t[1]'
  local all_frames = frames.new(session, add_frame, progress)
  local self = {
    strings = intern.new(1, MAX_STRING_KEYS),
    stack = function(e)
      if e.chain == nil or C.session_stacks(session, 0) == nil then return -1 end
      return C.session_stack(session, e)
    end,
    part = function(e, bit)
      local words = C.session_sample_part(session, e, bit, part_size)
      return words ~= nil and words[0] or 0ULL
    end,
    frames = all_frames,
    container = cgroups.container,
    keep = keeper(),
    warn = function(line) out:warn(line) end,
  }
  cgroups.of_session(function(id)
    local path = C.session_group(session, 0, id)
    return path ~= nil and text.safe(ffi.string(path)) or nil
  end, C.session_is_recorded(session))
  self.any = views.any(function(class) return view_of(self, event_of, class) end)
  name_things(self, session, 0, out)
  self.expression = function(event, source, allow_system) return expression(event, source, allow_system) end
  self.of_machine = function(member, has_our_threads)
    return name_things(setmetatable({}, { __index = self }), session, member, out, has_our_threads)
  end
  self.key_printer = function(event, key) return key_printer(self, event, key) end
  self.number = function(event, source, what) return number(event, source, what) end
  return self
end

return services
