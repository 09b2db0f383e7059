-- SPDX-License-Identifier: GPL-2.0-only
--- Contract: checks the table that a profiler's start() returned before the run begins: the names of the handlers, and
--- the event fields that each handler reads.
---
--- The second check reads the handler's bytecode. The event is the first parameter, so it is in slot 0, and `ev.NAME`
--- is one instruction with the name as a constant. A closure in the handler reads the event through an upvalue. Which
--- one is recorded only in the dump of a function, so the dump is parsed, too. The check never guesses: it skips
--- handlers that assign to their parameter, and fields whose names are computed at run time.
local bit = require 'bit'
local bytecode = require 'bpf.handlers.bytecode'
local facade = require 'bindings.base.facade'
local util = require 'jit.util'
local nearest = require 'bindings.base.nearest'

local contract = {}

local MAX_DEPTH = 8 -- of lists of events: a script's list may contain itself

--- What start() returns: handlers by event. A key is an event as -e takes it, an event of session.event(), or the
--- events of an option. The entries 1, 2, ... are consumers of whole batches, such as those of lib.pairs.
---@class Handlers
---@field interval? fun(time: number) at the end of each -i; time: ns, as in `ev._time`
---@field draw? fun(time: number) on a terminal, every second of a run without -i: what it prints takes the place of
--- what it printed before, and is gone at the end
---@field stop? fun(time: number) at the end of the run, also after an error in a handler
---@field status? fun() on SIGUSR1
---@field lost? fun(gap: { lost: number, from: number, to: number, cpu: integer?, tid: integer? }) the kernel dropped
--- events
---@field comm? fun(ev: Ev) a task got a name
---@field fork? fun(ev: Ev) a task was created: ev._tid by ev._parent
---@field exit? fun(ev: Ev) a task ended
---@field targets? fun(tids: integer[]) before the first event: the threads of -p, -t and the workload
---@field describe? fun(ev: Ev): string|string.buffer|nil, string?, boolean? text of an event that is printed, lines
--- after it, and whether these come before the user part of the stack; nil: its name and fields

--- Names of handlers that are not events. LIFE[name] describes when they are called.
contract.LIFE = {
  describe = 'one of its events is printed',
  interval = 'at each interval',
  draw = 'on a terminal, every second of a run without -i',
  lost = 'records were lost',
  comm = 'a task changed its name',
  fork = 'a task was created',
  exit = 'a task exited',
  stop = 'at the end of the run',
  status = 'on SIGUSR1',
  targets = 'once at the start, with the tids of the target threads',
}

--- The names of events that a session knows.
---@class contract.Known
---@field has fun(event: string): boolean whether an event `sys:name` exists
---@field names fun(): string[] all events, for suggestions
---@field words? table<string, any> keys: aliases, and profilers that can be sources

---@class contract.Handlers
---@field events { selector?: string, event?: Event, handler: function }[] in the same order in each run
---@field consumers table[] objects that process whole batches, in the script's order
---@field life table<string, function>

local function source(info)
  return (info.source:gsub('^[@=]', ''))
end

--- Returns where a function was defined.
---@param fn function
---@return string FILE:LINE
local function where(fn)
  local info = debug.getinfo(fn, 'S')
  return ('%s:%d'):format(source(info), info.linedefined)
end

--- Checks a key that is a plain name. Selectors with filters, globs or probes are left to their parser, which reports
--- columns.
---@param key string
---@param known contract.Known
---@return string? message
local function check_name(key, known)
  if key:match '^[%w_]+:[%w_.-]+$' then
    if known.has(key) then return end
    return ("no such event '%s'%s"):format(key, nearest.hint(key, known.names()))
  end
  local words = known.words or {}
  if not key:match '^[%w_-]+$' or words[key] then return end
  for _, name in ipairs(known.names()) do
    if name:match ':(.*)$' == key then
      return ("unknown handler '%s': a tracepoint is written as system:name; did you mean '%s'?"):format(key, name)
    end
  end
  local names = nearest.keys(contract.LIFE)
  for _, word in ipairs(nearest.keys(words)) do
    names[#names + 1] = word
  end
  return ("unknown handler '%s'%s"):format(key, nearest.hint(key, names))
end

local function class_of(event) return event.class end

--- Whether a table is an event. Some tables, such as opt, raise an error for a field that they do not have.
local function is_event(t)
  local ok, class = pcall(class_of, t)
  return ok and type(class) == 'number'
end

--- Appends a key, or all elements of a list, recursively: the events of an option are lists of lists.
---@param key any
---@param names any[]
---@param depth? integer
---@return any[] names false stands for a table that is not an event
local function flatten(key, names, depth)
  depth = depth or 0
  if type(key) ~= 'table' or is_event(key) then
    names[#names + 1] = key
  elseif depth > MAX_DEPTH or rawget(key, 1) == nil and (next(key) ~= nil or getmetatable(key)) then
    names[#names + 1] = false
  else
    for _, element in ipairs(key) do flatten(element, names, depth + 1) end
  end
  return names
end

--- Returns the keys of handlers in an order that is the same in each run: strings, then events by class.
local function sorted_keys(handlers)
  local keys, rank = {}, {}
  for key in pairs(handlers) do
    local first = flatten(key, {})[1]
    rank[key] = type(first) == 'table' and ('\255%08d'):format(first.class) or tostring(first)
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b) return rank[a] < rank[b] end)
  return keys
end

--- Adds one handler to the result.
---@param result contract.Handlers
---@param name any an element of its key
---@param handler function
---@param known contract.Known
---@return string? message
local function add(result, name, handler, known)
  if type(name) == 'table' then
    result.events[#result.events + 1] = { event = name, handler = handler }
  elseif contract.LIFE[name] then
    result.life[name] = handler
  else
    result.events[#result.events + 1] = { selector = name, handler = handler }
    return check_name(name, known)
  end
end

--- Returns the consumer of an entry without a key; nil if it is not one. Only consumers of the library get whole
--- batches: these are pointers, which scripts must not get.
local function consumer(handler)
  local object = facade.object(handler)
  if object then return (object.feed or object.poll) and object or nil end
  if type(handler) ~= 'table' or type(handler.poll) ~= 'function' then return end
  return { poll = function() return handler:poll() end }
end

--- Checks and sorts the table that start() returned. A key is the selector of an event, an event or a list of events
--- as in an option, or a name in LIFE. Entries without a key are consumers, which have a method feed, poll or both.
---@param start function the profiler's, for messages about the whole table
---@param handlers any
---@param known contract.Known
---@return contract.Handlers? handlers, string? message
function contract.check(start, handlers, known)
  local function refuse(...)
    return nil, where(start) .. ': ' .. (...):format(select(2, ...))
  end
  if type(handlers) ~= 'table' then
    return refuse('start returned %s, not a table of handlers', handlers == nil and 'nothing' or 'a ' .. type(handlers))
  end
  local result = { events = {}, consumers = {}, life = {} }
  for _, key in ipairs(sorted_keys(handlers)) do
    local handler = handlers[key]
    if type(key) == 'number' then
      result.consumers[key] = consumer(handler)
      if not result.consumers[key] then
        return refuse('entry %s of the handlers is a %s, but has no event as its key', key, type(handler))
      end
    else
      for _, name in ipairs(flatten(key, {})) do
        if name == false then return refuse 'the key of a handler is a table, not an event' end
        local shown = type(name) == 'table' and name.name or tostring(name)
        if type(name) ~= 'table' and type(name) ~= 'string' then
          return refuse('the key of a handler is a %s, not an event', type(name))
        end
        if type(handler) ~= 'function' then
          return refuse("handler '%s' is a %s, not a function", shown, type(handler))
        end
        local message = add(result, name, handler, known)
        if message then return nil, ('%s: %s'):format(where(handler), message) end
      end
    end
  end
  return result
end

-- Fields -----------------------------------------------------------------------------------------

local opcode, field_a, field_b, field_c, field_d = bytecode.op, bytecode.a, bytecode.b, bytecode.c, bytecode.d
local TGETS, UGET, MOV, KSTR = bytecode.OPS.TGETS, bytecode.OPS.UGET, bytecode.OPS.MOV, bytecode.OPS.KSTR

local MODE_A, WRITES_A = 7, 1 -- bits of an instruction's mode: operand A is the slot that it writes

--- Returns whether an upvalue is the local variable in a slot of the enclosing function.
local function captures(uv, slot)
  return bit.band(uv, bytecode.UV_LOCAL) ~= 0 and bit.band(uv, bytecode.UV_INDEX) == slot
end

--- Returns the inner functions of a function, in the order of the dump.
---@param fn function|userdata function or prototype
---@return userdata[]
local function children(fn)
  local list = {}
  for i = -1, -0x10000, -1 do
    local constant = util.funck(fn, i)
    if constant == nil then break end
    if type(constant) == 'proto' then list[#list + 1] = constant end
  end
  return list
end

---@param fn function
---@return boolean whether the function assigns to its first parameter
local function reassigns(fn)
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins, mode = util.funcbc(fn, pc)
    if bit.band(mode, MODE_A) == WRITES_A and field_a(ins) == 0 then return true end
  end
  return false
end

--- Returns the string that a method call passes first; nil if it is not a constant.
---@param fn function|userdata
---@param pc integer of the instruction that loads the method
---@return string?
local function constant_argument(fn, pc)
  local ins = util.funcbc(fn, pc + 1)
  return ins and opcode(ins) == KSTR and util.funck(fn, -field_d(ins) - 1) or nil
end

--- Returns the names that a function or prototype passes to methods called `string`, without those of functions in it.
---@param fn function|userdata
---@return string[]
function contract.strings(fn)
  local names = {}
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins = util.funcbc(fn, pc)
    if opcode(ins) == TGETS and util.funck(fn, -field_c(ins) - 1) == 'string' then
      names[#names + 1] = constant_argument(fn, pc)
    end
  end
  return names
end

--- Returns the constant that a value is compared with for equality; nil: it is not.
---@param fn function|userdata
---@param pc integer of the instruction that loads the value
---@return string|number?
local function compared_with(fn, pc)
  local ins = util.funcbc(fn, pc + 1)
  local how = ins and bytecode.WITH_CONSTANTS[opcode(ins)]
  if not how or field_a(ins) ~= field_a(util.funcbc(fn, pc)) then return end
  return util.funck(fn, how[2] and -field_d(ins) - 1 or field_d(ins))
end

--- Calls found(name, line, argument, other) for each field that a function or prototype reads of the event. For
--- methods, argument is the first one that is passed, if it is a constant string; other: the constant that the field
--- is compared with.
---@param fn function|userdata
---@param slot? integer slot of the event, nil if it is in none
---@param captured table<integer, boolean> upvalues that hold the event
---@param found fun(name: string, line: integer, argument: string?, other: string|number?)
local function reads(fn, slot, captured, found)
  local loaded -- slot into which a UGET has just loaded the event
  local named -- slot that the last instruction has filled with `ev._event`
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins = util.funcbc(fn, pc)
    local op = opcode(ins)
    local key = op == TGETS and util.funck(fn, -field_c(ins) - 1)
    local of_event = key and (field_b(ins) == slot or field_b(ins) == loaded)
    if of_event then
      found(key, util.funcinfo(fn, pc).currentline, constant_argument(fn, pc), compared_with(fn, pc))
    elseif key and field_b(ins) == named and not string[key] then
      found('_event.' .. key, util.funcinfo(fn, pc).currentline)
    end
    named = of_event and key == '_event' and field_a(ins) or nil
    if op == UGET and captured[field_d(ins)] then
      loaded = field_a(ins)
    elseif op ~= MOV or field_a(ins) == loaded then -- a method call first copies the event to its arguments
      loaded = nil
    end
  end
end

--- Returns a function and those in it, with what their upvalues are.
---@return { proto: any, children: table[], upvalues: integer[] }
local function tree(fn)
  local descriptions, nth = bytecode.upvalues(fn), 0

  -- Depth first, in the order of the dump: the upvalues of a function follow its children.
  local function number(proto)
    local node = { proto = proto, children = {} }
    for i, child in ipairs(children(proto)) do
      node.children[i] = number(child)
    end
    nth = nth + 1
    node.upvalues = descriptions[nth]
    return node
  end
  return number(fn)
end

--- Calls found() for each field of its first parameter that a function of a tree reads, see reads().
local function field_reads(root, found)
  if util.funcinfo(root.proto).params == 0 or reassigns(root.proto) then return end
  local function visit(node, slot, captured)
    reads(node.proto, slot, captured, found)
    for _, child in ipairs(node.children) do
      local theirs = {}
      for i, uv in pairs(child.upvalues) do
        theirs[i] = captures(uv, slot) or captured[uv]
      end
      visit(child, nil, theirs)
    end
  end
  for _, child in ipairs(root.children) do
    for _, uv in pairs(child.upvalues) do
      if captures(uv, 0) and bit.band(uv, bytecode.UV_IMMUTABLE) == 0 then return end
    end
  end
  visit(root, 0, {})
end

--- Returns the mistakes in what a function reads of its first parameter, one line each; nil if there are none.
---@param mistake fun(name: string, argument: string?, other: any): string? what is wrong with a name
---@param node? table the function that is looked at, if it is one in `fn`
local function mistakes(fn, mistake, node)
  local info, lines, reported = debug.getinfo(fn, 'S'), {}, {}
  if info.what ~= 'Lua' then return end
  field_reads(node or tree(fn), function(name, line, argument, other)
    local what = mistake(name, argument, other)
    local message = what and ('%s:%d: %s'):format(source(info), line, what)
    if message and not reported[message] then lines[#lines + 1], reported[message] = message, true end
  end)
  return #lines > 0 and table.concat(lines, '\n') or nil
end

--- Reports options that start() or a handler in it reads by a name that is not declared, in branches never taken too.
---@param start function the profiler's
---@param names string[] the declared options
---@return string? message one line per name
function contract.check_options(start, names)
  local valid = {}
  for _, name in ipairs(names) do valid[name] = true end
  return mistakes(start, function(name)
    return not valid[name] and ("no such option '%s'%s"):format(name, nearest.hint(name, names)) or nil
  end)
end

--- Returns the handlers that are written in start() with a constant key, before it runs.
---@param start function
---@return { key: string, node: table, line: integer }[]
function contract.written_handlers(start)
  local root, list, made = tree(start), {}, {}
  for pc = 1, util.funcinfo(start).bytecodes - 1 do
    local ins = util.funcbc(start, pc)
    local op, made_here = opcode(ins), made[field_a(ins)]
    if op == bytecode.OPS.FNEW then
      local proto = util.funck(start, -field_d(ins) - 1)
      for _, child in ipairs(root.children) do
        if child.proto == proto then made[field_a(ins)] = child end
      end
    elseif op == bytecode.OPS.TSETS and made_here then
      list[#list + 1] = { key = util.funck(start, -field_c(ins) - 1), node = made_here,
        line = util.funcinfo(made_here.proto).linedefined }
    end
  end
  return list
end

--- Returns whether a function has an instruction that returns something.
---@param fn function
---@return boolean
function contract.returns(fn)
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    if bytecode.RETURNS[opcode(util.funcbc(fn, pc))] then return true end
  end
  return false
end

---@class contract.EventFields
---@field name string
---@field fields string[]
---@field texts? table<string, boolean> by field: whether it is text; nil: it is neither that nor a number
---@field strings? table<string, any> keys: the names that `ev:string()` takes
---@field others? string[] names of strings to suggest
---@field no_strings? string why the event does not have the strings that a live event would have

--- Returns why a field of events is never equal to a constant; nil: it may be.
---@param events contract.EventFields[]
---@param name string
---@param other string|number
local function never_equal(events, name, other)
  local wanted = type(other) == 'string'
  for _, event in ipairs(events) do
    local is_text = event.texts and event.texts[name]
    if is_text == nil or is_text == wanted then return end
  end
  return wanted and ("ev.%s is a number, which is never equal to the text '%s'%s"):format(name, other,
    tonumber(other) and ('; write %s without quotes'):format(other) or '')
    or ('ev.%s is text, which is never equal to the number %s'):format(name, tostring(other))
end

local function wrong_field(subject, name, candidates)
  local of_name = name:match '^_event%.(.*)'
  if of_name then return ("ev._event is the event's name, a string: it has no '%s'"):format(of_name) end
  return ("%s no field '%s'%s"):format(subject, name, nearest.hint(name, candidates))
end

--- Reports fields that a handler reads but that none of its events has, and the strings that it asks for.
---@param handler function
---@param events contract.EventFields[]
---@param methods string[] names that are valid for every event
---@param node? table the handler, if it is one of contract.written_handlers() of the function `handler`
---@return string? message one line per invalid name
function contract.check_fields(handler, events, methods, node)
  local valid, names, strings, others, why = {}, {}, {}, {}, nil
  for _, name in ipairs(methods) do
    valid[name] = true
  end
  for i, event in ipairs(events) do
    names[i] = event.name
    for _, name in ipairs(event.fields) do
      valid[name] = true
    end
    for name in pairs(event.strings or {}) do strings[name] = true end
    for _, name in ipairs(event.others or {}) do others[#others + 1] = name end
    why = why or event.no_strings
  end
  local candidates = nearest.keys(valid)
  local subject = #names == 1 and ('event %s has'):format(names[1])
    or ('events %s have'):format(table.concat(names, ', '))
  return mistakes(handler, function(name, argument, other)
    local is_string = name == 'string' and argument and #events > 0
    local mismatch = other ~= nil and valid[name] and never_equal(events, name, other)
    if mismatch then return mismatch end
    if is_string and strings[argument] or not is_string and valid[name] then return end
    if not is_string then return wrong_field(subject, name, candidates) end
    return ("%s no string '%s'%s"):format(subject, argument, why and ': ' .. why or nearest.hint(argument, others))
  end, node)
end

return contract
