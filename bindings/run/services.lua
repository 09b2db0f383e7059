-- SPDX-License-Identifier: GPL-2.0-only
--- Services: the session's functions for the parts of a run: task names, kernel symbols, stacks, C expressions,
--- copies of events.
local ffi = require 'ffi'
local events = require 'bindings.select.events'
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local frames = require 'bindings.print.frames'
local names = require 'bindings.base.number_names'
local native = require 'bindings.base.native'
local nearest = require 'bindings.base.nearest'
local srcline = require 'bindings.print.srcline'
local text = require 'bindings.base.text'

local C = ffi.C
local services = {}

local MAX_STRING_KEYS = 65536 -- distinct strings as keys; further ones share one key

--- A C expression over an event's fields, for scripts.
---@class Expression
---@field text string
---@field type string i32, u32, i64, u64 or string
---@field fields string[] fields that it reads, sorted
---@field source string the generated Lua code
---@field value fun(ev: ffi.cdata*): any a number; int64_t or uint64_t for 64-bit types; a string; nil

--- Copies of events by number. The numbers are not checked.
---@class Shelf
---@field put fun(i: integer, ev: ffi.cdata*) replaces the event that was there
---@field get fun(i: integer): ffi.cdata*? struct event *, for out:print_event()
---@field drop fun(i: integer)

---@class Services
---@field task_name fun(tid: integer, time: number): string not escaped
---@field symbol fun(address: integer|ffi.cdata*, with_offset?: boolean): string?
---@field kernel_string fun(address: ffi.cdata*): string?
---@field strings native.Keys of string keys
---@field expression_env table<string, function> functions that C expressions can call
---@field expression fun(event: Event, text: string, allow_system?: boolean): Expression
---@field number fun(event: Event, text: string, what?: string): fun(ev: ffi.cdata*): number? the value of an
--- expression as a Lua number, rounded beyond 2^53; what: its name in messages
---@field key_printer fun(event: Event): (fun(key: number|ffi.cdata*): string)?
---@field stack fun(ev: ffi.cdata*): integer id of the event's stack; -1 if no stacks are recorded
---@field part fun(ev: ffi.cdata*, bit: integer): ffi.cdata* a part of the sample that is one number
---@field address fun(ev: ffi.cdata*, address: ffi.cdata*|number): Frame? symbolizes an address of the event's process
---@field frames Frames
---@field keep fun(ev: ffi.cdata*): ffi.cdata* a copy of the event that lasts as long as it is referenced
---@field shelf fun(n: integer): Shelf
---@field warn fun(line: string)

--- Returns the kernel symbol at an address: "name" or "name+0x1c"; nil if there is none.
local function symbol(session, address, with_offset)
  local start = ffi.new 'uint64_t[1]'
  local name = C.formats_symbol(events.formats(session), address, start)
  if name == nil then return end
  name = text.safe(ffi.string(name))
  return with_offset and ('%s+0x%x'):format(name, address - start[0]) or name
end

--- Returns a kernel string that a print format points to; nil if unknown.
local function kernel_string(session, address)
  local s = C.formats_string(events.formats(session), address)
  return s ~= nil and ffi.string(s) or nil
end

local function expression_env(session, out, self)
  local strings, machine = self.strings, ffi.string(C.session_arch(session))
  return {
    intern = function(bytes, length)
      if type(bytes) == 'string' then return strings.id(bytes) end
      return strings.id(ffi.string(bytes, C.strnlen(bytes, length)))
    end,
    comm_get = function(tid, time) return self.task_name(tid, time or math.huge) end,
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
local function evaluator(self, event, compiled)
  local evaluate, payload = expr.load(compiled, self.expression_env), event.view.payload
  return function(ev)
    local e = ffi.cast('struct event *', ev)
    return evaluate(e, ffi.cast(payload, e.raw), e.raw, e.raw_size)
  end
end

local function expression(self, event, source, allow_system)
  local compiled = events.compile(event, source, 'expression', nil, allow_system)
  return {
    text = source,
    type = compiled.type,
    fields = nearest.keys(compiled.fields_used),
    source = compiled.source,
    value = evaluator(self, event, compiled),
  }
end

local function number(self, event, source, what)
  return evaluator(self, event, events.compile(event, source, what or 'expression', 'number'))
end

--- Returns the function of the event's printkey= expression, whose variable is `key`; nil without printkey=.
local function key_printer(self, event)
  local source = event.attrs.printkey
  if not source then return end
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
    local kept = C.timeline_keep(timeline, ffi.cast('struct event *', ev))
    if kept == nil then error('too many events are kept', 2) end
    return ffi.gc(ffi.cast(ffi.typeof(ev), kept), function(e)
      C.timeline_release(timeline, ffi.cast('struct event *', e))
    end)
  end
end

--- Keeps copies of up to n events, numbered from 0.
local function shelf(n)
  local timeline = ffi.gc(C.timeline_new(0), C.timeline_free)
  local memory = ffi.gc(C.calloc(n, ffi.sizeof 'struct event *'), C.free)
  local list = ffi.cast('struct event **', memory)
  local function drop(i)
    if list[i] ~= nil then C.timeline_release(timeline, list[i]) end
    list[i] = nil
  end
  return {
    put = function(i, ev)
      drop(i)
      list[i] = C.timeline_keep(timeline, ffi.cast('struct event *', ev))
    end,
    get = function(i) return list[i] ~= nil and list[i] or nil end,
    drop = drop,
    anchor = memory,
  }
end

---@param session ffi.cdata* struct session *
---@param out Output
---@param with_srcline? boolean frames get source lines
---@return Services
function services.new(session, out, with_srcline)
  local add_frame = with_srcline and srcline.adder(session) or nil
  local tasks, part_size = C.session_tasks(session), ffi.new 'uint32_t[1]'
  local all_frames = frames.new(session, add_frame)
  local self = {
    task_name = function(tid, time) return ffi.string(C.tasks_name(tasks, tid, time)) end,
    symbol = function(address, with_offset) return symbol(session, address, with_offset) end,
    kernel_string = function(address) return kernel_string(session, address) end,
    strings = native.keys(1, MAX_STRING_KEYS),
    stack = function(ev)
      if C.session_stacks(session) == nil then return -1 end
      return C.session_stack(session, ffi.cast('struct event *', ev))
    end,
    part = function(ev, bit)
      local words = C.session_sample_part(session, ffi.cast('struct event *', ev), bit, part_size)
      return words ~= nil and words[0] or 0ULL
    end,
    address = function(ev, address)
      if C.session_stacks(session) == nil then error('session.address needs resolve = true of an event', 2) end
      return all_frames.list(C.session_address(session, ffi.cast('struct event *', ev), address))[1]
    end,
    frames = all_frames,
    keep = keeper(),
    shelf = shelf,
    warn = function(line) out:warn(line) end,
  }
  self.expression_env = expression_env(session, out, self)
  self.expression = function(event, source, allow_system) return expression(self, event, source, allow_system) end
  self.key_printer = function(event) return key_printer(self, event) end
  self.number = function(event, source, what) return number(self, event, source, what) end
  return self
end

return services
