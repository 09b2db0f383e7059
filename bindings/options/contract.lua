-- SPDX-License-Identifier: GPL-2.0-only
--- Checks what a profiler's start() returned, before the first event: the names of its handlers, and
--- the fields that each handler reads of its event.
---
--- The second check reads the handler's bytecode. The event is the first parameter, so it lives in
--- slot 0, and `ev.NAME` is one instruction with the name as a constant. A closure in the handler
--- reads the event through an upvalue; which one is recorded only in the dumped form of a function,
--- so that is parsed too. The check never guesses: a handler that assigns to its parameter, or names
--- a field at run time, is left alone.
local bit = require 'bit'
local util = require 'jit.util'
local nearest = require 'bindings.base.nearest'

local contract = {}

--- Names of handlers that are no events: LIFE[name] says what calls them.
contract.LIFE = {
  describe = 'one of its events is printed',
  interval = 'each interval',
  lost = 'records were lost',
  comm = 'a task got a name',
  fork = 'a task began',
  exit = 'a task ended',
  stop = 'the end of the run',
  status = 'SIGUSR1',
  targets = 'the threads that the run is about',
}

--- What the session knows of events.
---@class contract.Known
---@field has fun(event: string): boolean whether an event `sys:name` exists
---@field names fun(): string[] the events that exist, to propose one
---@field words? table<string, any> keys: aliases, and profilers that can be sources

---@class contract.Handlers
---@field events { selector?: string, event?: Event, handler: function }[] in the same order in each run
---@field consumers table[] what takes whole batches, in the script's order
---@field life table<string, function>

local function source(info)
  return (info.source:gsub('^[@=]', ''))
end

--- Where a function was defined.
---@param fn function
---@return string FILE:LINE
local function where(fn)
  local info = debug.getinfo(fn, 'S')
  return ('%s:%d'):format(source(info), info.linedefined)
end

--- Checks a key that is a plain name. Selectors with filters, globs or probes are left to their parser,
--- which reports with a column.
---@param key string
---@param known contract.Known
---@return string? message
local function check_name(key, known)
  if key:match '^[%w_]+:[%w_.-]+$' then
    if known.has(key) then return end
    return ("no event '%s'%s"):format(key, nearest.hint(key, known.names()))
  end
  local words = known.words or {}
  if not key:match '^[%w_-]+$' or words[key] then return end
  local names = nearest.keys(contract.LIFE)
  for _, word in ipairs(nearest.keys(words)) do
    names[#names + 1] = word
  end
  return ("unknown handler '%s'%s"):format(key, nearest.hint(key, names))
end

--- What a key names: itself, or all that is in a list. An option's events are lists of lists.
---@param key any
---@param names any[] is appended to
---@return any[] names strings, events, and what is neither
local function flatten(key, names)
  if type(key) ~= 'table' or key.class then
    names[#names + 1] = key
    return names
  end
  for _, element in ipairs(key) do
    flatten(element, names)
  end
  return names
end

--- The keys that name handlers, in an order that is the same in each run: strings, then events by
--- their class.
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

--- Sorts one handler into the result.
---@param result contract.Handlers
---@param name any one that a key stands for
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

--- Checks and sorts the table that start() returned. A key is the selector of an event, an event or a
--- list of them as an option holds it, or a name of LIFE. Without a key stand consumers, which have
--- a method feed, poll or both.
---@param start function the profiler's, for messages about the whole table
---@param handlers any
---@param known contract.Known
---@return contract.Handlers? handlers, string? message
function contract.check(start, handlers, known)
  local function refuse(...)
    return nil, where(start) .. ': ' .. (...):format(select(2, ...))
  end
  if type(handlers) ~= 'table' then return refuse('start returned a %s, not a table of handlers', type(handlers)) end
  local result = { events = {}, consumers = {}, life = {} }
  for _, key in ipairs(sorted_keys(handlers)) do
    local handler = handlers[key]
    if type(key) == 'number' then
      if type(handler) ~= 'table' or not (handler.feed or handler.poll) then
        return refuse('entry %s of the handlers is a %s that names no event and takes none', key, type(handler))
      end
    else
      for _, name in ipairs(flatten(key, {})) do
        local shown = type(name) == 'table' and name.name or tostring(name)
        if type(name) ~= 'table' and type(name) ~= 'string' then
          return refuse('a handler is named by a %s, not by an event', type(name))
        end
        if type(handler) ~= 'function' then
          return refuse("handler '%s' is a %s, not a function", shown, type(handler))
        end
        local message = add(result, name, handler, known)
        if message then return nil, ('%s: %s'):format(where(handler), message) end
      end
    end
  end
  for i, consumer in ipairs(handlers) do
    result.consumers[i] = consumer
  end
  return result
end

-- Fields -----------------------------------------------------------------------------------------

local function opcode(ins)
  return bit.band(ins, 0xff)
end

local function field_a(ins)
  return bit.band(bit.rshift(ins, 8), 0xff)
end

local function field_b(ins)
  return bit.rshift(ins, 24)
end

local function field_c(ins)
  return bit.band(bit.rshift(ins, 16), 0xff)
end

local function field_d(ins)
  return bit.rshift(ins, 16)
end

--- Opcodes are numbered differently in each LuaJIT; these are read off functions that hold them.
local TGETS = opcode(util.funcbc(function(ev) return ev.name end, 1))
local UGET = opcode(util.funcbc(function() return util.name end, 1))
local MOV = opcode(util.funcbc(function(ev) local other = ev return other, ev end, 1))

local MODE_A, WRITES_A = 7, 1 -- bits of an instruction's mode: operand A is a slot it writes

local UV_LOCAL, UV_IMMUTABLE, UV_INDEX = 0x8000, 0x4000, 0xff -- bits of an upvalue description

--- Whether an upvalue is the local variable in a slot of the enclosing function.
local function captures(uv, slot)
  return bit.band(uv, UV_LOCAL) ~= 0 and bit.band(uv, UV_INDEX) == slot
end

--- Upvalue descriptions of a function and those inside it, children before their parent.
---@param fn function
---@return integer[][]
local function upvalues(fn)
  local dump, at = string.dump(fn), 5 -- behind the magic and the version
  local function uleb()
    local value, shift = 0, 1
    repeat
      local byte = dump:byte(at)
      at = at + 1
      value = value + bit.band(byte, 0x7f) * shift
      shift = shift * 128
    until byte < 0x80
    return value
  end
  uleb() -- flags; the dump is not stripped, so the chunk's name follows
  local name_size = uleb()
  at = at + name_size
  local all = {}
  while true do
    local size = uleb()
    if size == 0 then return all end
    local next_at = at + size
    local count = dump:byte(at + 3)
    at = at + 4
    uleb() -- collectable constants
    uleb() -- numeric constants
    local instructions = uleb()
    if uleb() > 0 then -- debug information: first line, lines
      uleb()
      uleb()
    end
    at = at + instructions * 4
    local list = {}
    for i = 0, count - 1 do
      list[i] = dump:byte(at + 2 * i) + 256 * dump:byte(at + 2 * i + 1)
    end
    all[#all + 1] = list
    at = next_at
  end
end

--- The functions created inside one, in the order of their dump.
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

--- Calls found(name, line) for each field that a function or prototype reads of the event.
---@param fn function|userdata
---@param slot? integer where the event is, nil if nowhere
---@param captured table<integer, boolean> upvalues that are the event
---@param found fun(name: string, line: integer)
local function reads(fn, slot, captured, found)
  local loaded -- slot an UGET has just filled with the event
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins = util.funcbc(fn, pc)
    local op = opcode(ins)
    if op == TGETS and (field_b(ins) == slot or field_b(ins) == loaded) then
      found(util.funck(fn, -field_c(ins) - 1), util.funcinfo(fn, pc).currentline)
    end
    if op == UGET and captured[field_d(ins)] then
      loaded = field_a(ins)
    elseif op ~= MOV or field_a(ins) == loaded then -- a method call copies the event to its arguments first
      loaded = nil
    end
  end
end

--- Calls found(name, line) for all fields of the first parameter that a handler reads.
---@param fn function
---@param found fun(name: string, line: integer)
local function field_reads(fn, found)
  if util.funcinfo(fn).params == 0 or reassigns(fn) then return end
  local descriptions, nth = upvalues(fn), 0

  -- Depth first, as the dump is. Returns what the parent needs: the description of the function's
  -- upvalues comes only behind its children.
  local function number(proto)
    local node = { proto = proto, children = {} }
    for i, child in ipairs(children(proto)) do
      node.children[i] = number(child)
    end
    nth = nth + 1
    node.upvalues = descriptions[nth]
    return node
  end

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
  local root = number(fn)
  for _, child in ipairs(root.children) do
    for _, uv in pairs(child.upvalues) do
      if captures(uv, 0) and bit.band(uv, UV_IMMUTABLE) == 0 then return end
    end
  end
  visit(root, 0, {})
end

--- Reports the fields that a handler reads and its events lack. A handler of several events may read
--- what any of them has.
---@param handler function
---@param events { name: string, fields: string[] }[]
---@param methods string[] names valid on every event
---@return string? message one line for each wrong name
function contract.check_fields(handler, events, methods)
  local info = debug.getinfo(handler, 'S')
  if info.what ~= 'Lua' then return end
  local valid, names = {}, {}
  for _, name in ipairs(methods) do
    valid[name] = true
  end
  for i, event in ipairs(events) do
    names[i] = event.name
    for _, name in ipairs(event.fields) do
      valid[name] = true
    end
  end
  local candidates = nearest.keys(valid)
  local subject = #names == 1 and ('event %s has'):format(names[1])
    or ('events %s have'):format(table.concat(names, ', '))

  local lines, reported = {}, {}
  field_reads(handler, function(name, line)
    if valid[name] then return end
    local hint = nearest.hint(name, candidates)
    local message = ("%s:%d: %s no field '%s'%s"):format(source(info), line, subject, name, hint)
    if not reported[message] then lines[#lines + 1] = message end
    reported[message] = true
  end)
  return #lines > 0 and table.concat(lines, '\n') or nil
end

return contract
