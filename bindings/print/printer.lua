-- SPDX-License-Identifier: GPL-2.0-only
--- Printer: prints events as lines with wall time, task, flags, CPU, time, name and fields. Each class has a printer
--- compiled from the tracepoint's print format. libtraceevent prints formats that cannot be compiled, and events for
--- which it has a plugin.
local bit = require 'bit'
local buffer = require 'bindings.base.buffer'
local addresses = require 'bindings.print.addresses'
local ffi = require 'ffi'
local frames = require 'bindings.print.frames'
local printfmt = require 'bindings.print.printfmt'
local text = require 'bindings.base.text'
local trace_flags = require 'bindings.view.trace_flags'

local C = ffi.C
local printer = {}

local FALLBACK_SIZE = 16384 -- buffer for a line from libtraceevent

local NO_TIME = (' '):rep(28) -- as wide as the wall time

-- JSON and CSV fields of an event in the details of a pair (lib/detail.lua).
local DETAIL_FIELDS = { 'part', 'offset_ns', 'run_ns', 'note', 'hidden', 'reason' }

--- The columns that some events have beside those of printer.columns().
printer.extra = { uncertain = true }
for _, name in ipairs(DETAIL_FIELDS) do printer.extra[name] = true end

local function on(flags, flag) return bit.band(flags, trace_flags[flag]) ~= 0 end

--- Returns the first three columns of flags as the kernel prints them: irqs, need-resched, context.
local function irq_columns(flags)
  local irqs = on(flags, 'IRQS_OFF') and (on(flags, 'BH_OFF') and 'D' or 'd') or on(flags, 'BH_OFF') and 'b' or '.'
  local need, lazy = on(flags, 'NEED_RESCHED'), on(flags, 'NEED_RESCHED_LAZY')
  local preempt = on(flags, 'PREEMPT_RESCHED')
  local resched = '.'
  if need and lazy then
    resched = preempt and 'B' or 'b'
  elseif need then
    resched = preempt and 'N' or 'n'
  elseif lazy then
    resched = preempt and 'L' or 'l'
  elseif preempt then
    resched = 'p'
  end
  local hard, soft = on(flags, 'HARDIRQ'), on(flags, 'SOFTIRQ')
  local context = on(flags, 'NMI') and (hard and 'Z' or 'z') or hard and (soft and 'H' or 'h') or soft and 's' or '.'
  return irqs .. resched .. context
end

--- Returns the last two columns: preemption depth and migration-disable depth.
local function preempt_columns(count)
  return (('%x%x'):format(bit.band(count, 15), bit.rshift(count, 4)):gsub('0', '.'))
end

--- Returns a table of the texts for numbers, which are made on demand.
local function texts_of(format)
  return setmetatable({}, {
    __index = function(texts, n)
      texts[n] = format(n)
      return texts[n]
    end,
  })
end

local IRQ_COLUMNS, PREEMPT_COLUMNS = texts_of(irq_columns), texts_of(preempt_columns)
local CPU_TEXT = texts_of(function(cpu) return cpu < 0 and '---' or ('%03d'):format(cpu) end)

---@class Printer
---@field out Output
---@field bodies table<integer, function> by class: function(buf, ev)
local Printer = {}
Printer.__index = Printer

---@param run Run
---@return Printer
function printer.new(run)
  local self = { run = run, out = run.out, printers = {} }
  return setmetatable(self, Printer)
end

--- Returns a function(buf, e) that appends the formatted fields of struct event *e.
local function fields_printer(event, run)
  local tp = event.tracepoint
  local print_fmt = event.print_fmt or tp and ffi.string(C.tracepoint_print_fmt(tp))
  if event.is_task_event then
    return function(buf, e) buf:putf('pid=%d tid=%d', e.pid, e.tid) end
  elseif not print_fmt then
    return function(buf, e) buf:putf('%d', e.period) end
  end
  local scratch = ffi.new('char[?]', FALLBACK_SIZE)
  local function put_scratch(buf, n) buf:put(text.safe(ffi.string(scratch, math.min(n, FALLBACK_SIZE - 1)))) end
  local function fall_back(buf, e)
    if tp then put_scratch(buf, C.tracepoint_print(tp, e.raw, e.raw_size, scratch, FALLBACK_SIZE)) end
  end
  local format = { print_fmt = print_fmt, fields = event.fields }
  local render = printfmt.compile(format, {
    safe = text.safe,
    symbol = function(address, with_offset) return event.context.symbol(address, with_offset) end,
    string = function(address) return event.context.kernel_string(address) end,
  })
  local by_format = render and function(buf, e)
    if not render(buf, e.raw, e.raw_size) then fall_back(buf, e) end -- the payload is too short
  end or fall_back
  if not tp or run.opt.raw_fields or not C.tracepoint_has_plugin(tp) then return by_format end
  local more = ffi.new 'bool[1]'
  return function(buf, e)
    put_scratch(buf, C.tracepoint_print_plugin(tp, e.raw, e.raw_size, more, scratch, FALLBACK_SIZE))
    if more[0] then by_format(buf, e) end
  end
end

--- Returns a function(e) that returns whether it is unknown if interrupts were disabled at an event: a program has
--- written it, and a task wakes up itself outside of interrupts.
local function irqs_are_unknown(event)
  if event.is_task_event or not event.route.has_unsure_flags then return function() return false end end
  local int, pid = ffi.typeof 'const int32_t *', event.fields.pid.offset
  local interrupts = trace_flags.HARDIRQ + trace_flags.NMI
  return function(e)
    return bit.band(e.raw[2], interrupts) == 0 and ffi.cast(int, e.raw + 4)[0] == ffi.cast(int, e.raw + pid)[0]
  end
end

--- Appends the text in a buffer, escaped.
local function put_buffer(buf, more)
  local bytes, size = buffer.bytes(more)
  if C.text_clean(bytes, size, C.TEXT_CELL) ~= 0 then
    buf:put(more)
  else
    buf:put(text.safe(ffi.string(bytes, size)))
  end
end

local function check_description(description, describe)
  if getmetatable(description) == 'buffer' then return end
  local info = debug.getinfo(describe, 'S')
  error(('%s:%d: describe returned a %s, not text'):format(info.source:gsub('^[@=]', ''), info.linedefined,
    type(description)), 0)
end

--- Returns a function(buf, e) that appends the profiler's description of the event, or its name and fields. That
--- function returns additional lines of the description and whether they belong to user space.
local function body_printer(event, run)
  local name, fields = text.safe(event.name), fields_printer(event, run)
  local describe, view, checked = event.owner.describe, event.view.type, nil
  return function(buf, e)
    local description, block, is_user
    if describe then description, block, is_user = describe(ffi.cast(view, e)) end
    if type(description) == 'string' then
      buf:put(text.safe(description))
    elseif description then
      -- LuaJIT does not compile getmetatable() of a buffer. Most profilers always return the same one.
      if description ~= checked then
        check_description(description, describe)
        checked = description
      end
      put_buffer(buf, description)
    end
    if description then
      return block and text.lines(block), is_user
    else
      buf:put(name, ': ')
      fields(buf, e)
    end
  end
end

--- Reads the wall time of the session's time base, nil if unknown. Must be called after the first events.
function Printer:read_clock()
  local clock = ffi.new 'struct session_clock'
  C.session_read_clock(self.run.session, clock)
  self.base = clock.base
  if clock.wall_sec == clock.wall_sec then
    self.wall_sec, self.wall_nsec = clock.wall_sec, clock.wall_nsec
  end
end

--- Returns a margin with the mark of another machine's event at its end.
local function mark_prefix(prefix)
  local margin = prefix == true and NO_TIME or prefix
  return margin:sub(-2) == '  ' and margin:sub(1, -2) .. 'G' or margin .. 'G'
end

--- Returns a function(e, bare, prefix, part) that prints an event of one class as text. bare: omit the stack; prefix:
--- printed instead of the wall time; part.uncertain: mark it with ~.
function Printer:line_printer(event)
  local services = event.context
  local out, safe, task_name = self.out, text.safe, services.task_name
  local buf, stack, stack_text, halves = out:text_buffer(), services.stack, services.frames.text, services.frames.halves
  local body = body_printer(event, self.run)
  local floor = math.floor
  local has_flags = not event.is_task_event and event.request.perf_event == 0 and event.request.is_output == 0
    and event.request.record == 0
  local knows_flags = has_flags and not event.route.has_no_flags
  local has_column, is_unsure = has_flags or not event.owner.describe, irqs_are_unknown(event)
  local put_time, wall_sec, wall_nsec = self.run.axis.put, self.wall_sec, self.wall_nsec
  local mark = event.machine and ' G' or '  ' -- as perf-prof marks the events of guests
  local last_sec, last_text = nil, ''

  return function(e, bare, prefix, part)
    local time = e.time
    if prefix and (prefix ~= true or not wall_sec) then
      buf:put(mark == '  ' and (prefix == true and NO_TIME or prefix) or mark_prefix(prefix))
    elseif wall_sec then
      local ns = wall_nsec + time
      local sec = floor(ns / 1e9)
      if sec ~= last_sec then
        last_sec, last_text = sec, os.date('%Y-%m-%d %H:%M:%S', wall_sec + sec)
      end
      buf:putf('%s.%06d%s', last_text, floor((ns - sec * 1e9) / 1000),
        part and part.uncertain and '~' .. mark:sub(2) or mark)
    end
    -- common_type u16, common_flags u8, common_preempt_count u8, common_pid s32
    local irq, preempt, blank = '...', '..', ' '
    if not has_column then
      irq, preempt, blank = '', '', ''
    elseif knows_flags and e.raw_size >= 8 then
      irq, preempt = IRQ_COLUMNS[e.raw[2]], PREEMPT_COLUMNS[e.raw[3]]
      if is_unsure(e) then irq = '?' .. irq:sub(2) end
    end
    buf:putf('%16s %6d %s%s%s[%s] ', safe(task_name(e.tid, time)), e.tid, irq, preempt, blank, CPU_TEXT[e.cpu])
    put_time(buf, time)
    buf:put ': '
    local block, is_user = body(buf, e)
    buf:put '\n'
    if bare then return end
    if block and is_user and e.chain ~= nil then
      local kernel, user = halves(stack(e))
      buf:put(kernel, block, user)
      return
    end
    if block then buf:put(block) end
    if e.chain ~= nil then buf:put(stack_text(stack(e))) end
  end
end

--- Returns the fields of an event as a JSON or CSV object, in their order.
---@param event Event
---@return string[] order
---@return { key: string, field: string }[] names of those of the payload, and what they are in the payload
function printer.columns(event)
  local order, names = { 'time', 'cpu', 'pid', 'tid', 'comm', 'clock' }, {}
  if event.machine then table.insert(order, 1, 'host') end
  for _, field in ipairs(event.list) do
    if not field.name:match '^common_' then
      -- The payload may also have a pid, cpu or comm.
      local key = field.name
      for i = 1, #order do
        if order[i] == key then key = 'event_' .. key end
      end
      names[#names + 1] = { key = key, field = field.name }
      order[#order + 1] = key
    end
  end
  if event.request.callchain ~= 0 then order[#order + 1] = 'stack' end
  return order, names
end

--- Returns a function(e, bare, _, part) that prints an event of one class as a JSON or CSV object, with the fields of
--- part.
function Printer:record_printer(event)
  local out, view, services = self.out, event.view, event.context
  local task_name, clock_value, floor = services.task_name, self.run.axis.value, math.floor
  local sec, nsec = 0, self.base -- as Output:seconds()
  if self.wall_sec then sec, nsec = self.wall_sec, self.wall_nsec end
  local order, names = printer.columns(event)
  local is_address = addresses.of(event)
  local order_with_part = { unpack(order) }
  for _, name in ipairs(DETAIL_FIELDS) do
    order_with_part[#order_with_part + 1] = name
  end
  if C.session_machines(self.run.session) > 1 then order_with_part[#order_with_part + 1] = 'uncertain' end
  return function(e, bare, _, part)
    local ev = not event.is_task_event and ffi.cast(view.type, e)
    local record = {
      host = event.machine and event.machine.host,
      time = sec + floor((nsec + e.time) / 1000) / 1e6,
      cpu = e.cpu,
      pid = e.pid,
      tid = e.tid,
      comm = task_name(e.tid, e.time),
      clock = clock_value(e.time), -- as in the line of text
    }
    for _, name in ipairs(names) do
      local value = ev[name.field]
      if type(value) == 'cdata' and not tonumber(value) then
        local list = {}
        for i = 0, #value - 1 do
          list[i + 1] = value[i]
        end
        value = list
      end
      record[name.key] = is_address[name.field] and addresses.text(value) or value
    end
    if event.request.callchain ~= 0 and not bare then
      record.stack = {}
      for i, frame in ipairs(services.frames.list(services.stack(e))) do
        record.stack[i] = frames.text(frame)
      end
    end
    for name, value in pairs(part or {}) do
      record[name] = value
    end
    out:put_record(event.name, record, part and order_with_part or order)
  end
end

--- Creates the printer of a class at its first event, because most runs print few of their classes.
function Printer:make(class)
  jit.off() -- see bindings/init.lua
  if not self.base then self:read_clock() end
  local event = self.run.events:of_class(class)
  local made = self.out.format == 'text' and self:line_printer(event) or self:record_printer(event)
  self.printers[class] = made
  jit.on()
  return made
end

--- Prints an event passed to a handler or kept by a pair.
---@param e ffi.cdata* struct event *
---@param bare? boolean omit the stack
---@param prefix? string|true text instead of the wall time and the spaces after it; true: spaces if the wall time
--- is unknown
---@param part? table<string, any> JSON and CSV: values of DETAIL_FIELDS
function Printer:print(e, bare, prefix, part)
  local print_line = self.printers[e.class] or self:make(e.class)
  print_line(e, bare, prefix, part)
end

return printer
