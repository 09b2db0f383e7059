-- SPDX-License-Identifier: GPL-2.0-only
--- One-liners (exec, repl). Each call of count(k...), sum(v, k...), hist(v, k...) and so on in the source becomes an
--- aggregation, whose columns are named after the expressions in the call. Calls must be direct and have parentheses.
---
---   local program = oneliner.compile 'hist(ev.bytes, ev._comm)'
---   -- program.source: 'hist_1(ev.bytes, ev._comm)'; program.env.hist_1 adds to the aggregation
---   program:print(out)
local addresses = require 'bindings.print.addresses'
local aggregate = require 'lib.aggregate'
local bpftrace_words = require 'lib.bpftrace_words'
local failure = require 'bindings.base.failure'
local field_names = require 'lib.sql.names'
local lua_source = require 'bindings.base.lua_source'
local globals = require 'bindings.options.globals'
local nearest = require 'lib.nearest'
local number_names = require 'lib.names'
local tables = require 'lib.table'
local public_event = require 'bindings.view.public_event'
local units = require 'lib.units'
local wide_keys = require 'bindings.options.wide_keys'

local oneliner = {}

--- The value of a variable that has none.
oneliner.NONE = setmetatable({}, { __tostring = function() return 'nil' end })

--- The functions of one-liners, for help.
oneliner.FUNCTIONS = {
  { 'count', 'count(k...)', 'count events by key' },
  { 'sum', 'sum(v, k...)', 'sum v by key' },
  { 'avg', 'avg(v, k...)', 'number, total and average of v by key' },
  { 'min', 'min(v, k...)', 'least v by key; max(v, k...): the greatest' },
  { 'hist', 'hist(v, k...)', 'power-of-two histogram of v by key' },
  { 'lhist', 'lhist(v, low, high, step, k...)', 'linear histogram of v by key' },
  { 'quantiles', 'quantiles(v, k...)', 'calls, total, p50, p95, p99 and max of v by key' },
  { 'stats', 'stats(v, k...)', 'calls, total, min, max, mean, standard deviation and variance of v' },
  { 'print', 'print(...)', "print values; print(t, n): a table's n largest; print(stack): frames" },
  { 'printf', 'printf(format, ...)', 'print formatted text' },
  { 'row', 'row { name, value, ... }', 'print a row, in JSON and CSV too' },
  { 'str', 'str(ev.NAME)', "string behind an argument; user('u32', ev.NAME): number behind it" },
  { 'syscall', 'syscall(n), errno(n)', 'names of numbers; also signal(n), open_flags(n)' },
  { 'ip', 'ip(address)', 'an IP address as text' },
  { 'ksym', 'ksym(address)', 'its symbol in the kernel; usym(address): in the process' },
  { 'stop', 'stop()', 'end the run; also exit()' },
}

--- Returns a line of text for each function.
---@return string
function oneliner.help()
  local lines = {}
  for i, one in ipairs(oneliner.FUNCTIONS) do lines[i] = ('  %-32s %s\n'):format(one[2], one[3]) end
  return table.concat(lines)
end

--- Arguments before the keys.
local VALUES = { count = 0, sum = 1, avg = 1, min = 1, max = 1, hist = 1, lhist = 4, quantiles = 1, stats = 1 }
local MAX_KEYS = { lhist = 3 } -- default: 4
local CLOSE = { ['('] = ')', ['['] = ']', ['{'] = '}' }
local TAKEN = { table = true, time = true, low = true, high = true, total = true, min = true, max = true, p50 = true,
  p95 = true, p99 = true, count = true, sum = true, avg = true, stddev = true, variance = true }

--- Returns the arguments of the call whose '(' is at `at`, and the position after its ')'; nil if there is no ')'.
local function arguments(source, at)
  local list, open = {}, {}
  local start = at + 1
  local function finish(stop)
    local arg = source:sub(start, stop):match '^%s*(.-)%s*$'
    if arg ~= '' then list[#list + 1] = arg end
  end
  while at <= #source do
    local after, token = lua_source.next(source, at)
    if CLOSE[token] then
      open[#open + 1] = CLOSE[token]
    elseif token and token == open[#open] then
      open[#open] = nil
      if #open == 0 then
        finish(at - 1)
        return list, after
      end
    elseif token == ',' and #open == 1 then
      finish(at - 1)
      start = after
    end
    at = after
  end
end

--- Returns a column name for an expression: 'comm' for 'ev._comm', 'filename' for 'ev:string("filename")'.
local function column_name(expression, used)
  local short = expression:match '^ev:string%s*%(?%s*[\'"]([%a][%w_]*)[\'"]%s*%)?$'
    or expression:match "^str%(ev, '([%a][%w_.]*)'%)$" or expression:match "^ev:user%(.*'([%a][%w_.]*)'%)$"
    or expression:match '^([%a][%w_]*)%(ev[.][%w_]+%)$' or expression:match '^([ku]sym)%(ev, ev[^()]+%)$'
    or expression:match "^ev%['(%a+)'%]$"
  if short and not TAKEN[short] and not used[short] then return short end
  short = expression:match '^ev[.:]_*([%a][%w_.]*)' or expression
  if expression:find '^ev[.:]_*[%w_.]+%(?%)?$' and not TAKEN[short] and not used[short] then return short end
  local name, n = expression, 1
  while TAKEN[name] or used[name] do
    n = n + 1
    name = ('%s#%d'):format(expression, n)
  end
  return name
end

--- Keys that are the stack of the event, as in scripts or as in bpftrace.
local IS_STACK = { ['ev._stack'] = true, stack = true, ['stack()'] = true }

local PRINTED_STACK = "ev._stack < 0 and '<no stack>' or (session.stack_text(ev._stack):gsub('\\n$', ''))"

--- Returns a number that is written in the source.
local function constant(text)
  local code = text and load('return ' .. text, '=constant', 't', {})
  local ok, value = pcall(code or error)
  return ok and tonumber(value) or nil
end

--- Returns the unit of the values that a call aggregates; nil: it is unknown.
local function unit_of(value, kind)
  if kind == 'count' then return end
  if value:find '^ev%._time%s*%-%s*[%w_.%[%]]+$' then return 'ns' end -- since a time that was kept
  local field = value:match '^ev%.([%w_]+)$'
  return field and units.of_field(field)
end

--- Returns the field that an expression is, and true; or the one to which it adds a number.
local function field_of(expression)
  local field = expression:match '^ev%.([%a_][%w_]*)$' or expression:match "^ev%['(%a+)'%]$"
  if field then return field, true end
  return expression:match '^ev%.([%a_][%w_]*)%s*[-+]%s*%d%w*$' or expression:match '^%d%w*%s*%+%s*ev%.([%a_][%w_]*)$'
end

local function new_aggregation(kind, title, args, session)
  local names, used, stacks, found, fields = {}, {}, {}, {}, {}
  for i = VALUES[kind] + 1, #args do
    local name = IS_STACK[args[i]] and not used.stack and 'stack' or column_name(args[i], used)
    used[name] = true
    stacks[name] = IS_STACK[args[i]]
    local field, is_field = field_of(args[i])
    fields[#fields + 1] = { name = name, field = field, found = found, is_key = is_field }
    names[#names + 1] = name
  end
  if kind == 'min' or kind == 'max' then
    fields[#fields + 1] = { name = kind, field = field_of(args[1]), found = found }
  end
  return aggregate.new(kind, names, {
    name = title or ('%s(%s)'):format(kind, table.concat(args, ', ')),
    low = constant(args[2]), high = constant(args[3]), step = constant(args[4]),
    unit = unit_of(args[1], kind), stacks = stacks,
    session = session,
    addresses = found,
  }), next(stacks) ~= nil, fields
end

--- Returns the source of a call's arguments with `stack` replaced by ev._stack, without the buckets of a histogram.
local function arguments_source(kind, text, args)
  local short = kind == 'lhist'
  for _, arg in ipairs(args) do short = short or arg == 'stack' or arg == 'stack()' end
  if not short then return text end
  local list = {}
  for i, arg in ipairs(args) do
    if i == 1 or i > VALUES[kind] then list[#list + 1] = IS_STACK[arg] and 'ev._stack' or arg end
  end
  local _, lines = text:gsub('\n', '')
  return ('(%s)%s'):format(table.concat(list, ', '), ('\n'):rep(lines - select(2, table.concat(list):gsub('\n', ''))))
end

-- What a program does if it is one call, possibly under a condition: as data, in C expressions ----------------------

local EXACT = 2 ^ 53
local COMPARE = { ['=='] = '==', ['~='] = '!=', ['<'] = '<', ['>'] = '>', ['<='] = '<=', ['>='] = '>=' }

--- Returns the C expression for a member of the event or a constant; nil for anything else.
local function operand(text)
  local name = text:match '^ev%.([%a_][%w_.]*)$'
  if name then return name ~= '_event' and name ~= '_stack' and name or nil, true end
  local number = (text:match '^%-?%d+$' or text:match '^0x%x+$') and tonumber(text)
  if number then return math.abs(number) < EXACT and text or nil, false end -- a larger one is another number in Lua
  local quoted = text:match "^'([^'\\\"]*)'$" or text:match '^"([^"\\]*)"$'
  return quoted and ('"%s"'):format(quoted), false
end

--- Returns the C expression of a condition: comparisons joined by and, or and not. In Lua, numbers are no conditions.
---@param text string
---@param signed table<string, boolean> becomes the fields that are compared as signed numbers
---@return string?
local function condition(text, signed)
  local whole = text:match '^%s*(%b())%s*$'
  if whole then
    local inner = condition(whole:sub(2, -2), signed)
    return inner and ('(%s)'):format(inner)
  end
  for _, word in ipairs { 'or', 'and' } do
    local depth, at = 0, 1
    while at <= #text do
      local after, token = lua_source.next(text, at)
      depth = depth + (token == '(' and 1 or token == ')' and -1 or 0)
      if token == word and depth == 0 then
        local left, right = condition(text:sub(1, at - 1), signed), condition(text:sub(after), signed)
        return left and right and ('%s %s %s'):format(left, word == 'or' and '||' or '&&', right)
      end
      at = after
    end
  end
  local negated = text:match '^%s*not%s*(%b())%s*$'
  if negated then
    local inner = condition(negated, signed)
    return inner and '!' .. inner
  end
  local left, sign, right = text:match '^%s*([^=~<>]-)%s*([=~<>]=?)%s*([^=~<>]-)%s*$'
  if not COMPARE[sign] then return nil end
  local a, a_is_field = operand(left)
  local b, b_is_field = operand(right)
  if not a or not b then return nil end
  -- Lua compares the numbers, whatever their types are.
  local a_signed = a_is_field and (b_is_field or b:match '^%-')
  local b_signed = b_is_field and (a_is_field or a:match '^%-')
  if a_signed then signed[a] = true end
  if b_signed then signed[b] = true end
  a, b = a_signed and '(s64)' .. a or a, b_signed and '(s64)' .. b or b
  return ('%s %s %s'):format(a, COMPARE[sign], b)
end

--- Returns the arguments of the only call as keys and value, and its condition.
local function as_data(source, kind, args)
  local call = source:match '^%s*(.-)%s*;?%s*$'
  local test, inner = call:match '^if%s+(.-)%s+then%s+(.-)%s*;?%s+end$'
  if inner then call = inner end
  local _, stop = call:find('^' .. kind .. '%s*%b()')
  if stop ~= #call then return nil end
  local data = { key = {}, signed = {} }
  data.filter = test and condition(test, data.signed)
  if test and not data.filter then return nil end
  for i, arg in ipairs(args) do
    local text, is_field = operand(arg)
    if i <= VALUES[kind] then
      if not is_field or not text then return nil end
      data.value = text
    elseif arg == 'ev._event' then
      data.key[#data.key + 1] = { is_event = true }
    elseif is_field and text then
      data.key[#data.key + 1] = text
    else
      return nil
    end
  end
  return data
end

--- Returns the letter of a format for each of its arguments: 's' for %-8s.
local function letters(format)
  local list = {}
  for letter in format:gsub('%%%%', ''):gmatch '%%[^%a]*(%a)' do list[#list + 1] = letter end
  return list
end

--- Returns the source with the fields that print(), row{} and %s of printf() show in a call of `shown`, which writes
--- addresses as such.
local function with_shown(source, program)
  local parts, copied, at, before, found = {}, 1, 1, nil, {}
  while at <= #source do
    local after, token = lua_source.next(source, at)
    local is_call = before ~= '.' and before ~= ':' and before ~= 'function'
    local open = is_call and ((token == 'print' or token == 'printf') and source:match('^%s*()%(', after)
      or token == 'row' and source:match('^%s*%(?%s*(){', after))
    local args, stop = arguments(source, open or #source + 1)
    local kinds, is_changed = token == 'printf' and args and letters(args[1] or ''), false
    for i, arg in ipairs(args or {}) do
      local field = field_of(arg)
      if field and (not kinds or kinds[i - 1] == 's') then
        program._keys[#program._keys + 1] = { name = field, field = field, found = found }
        args[i], is_changed = ("shown('%s', %s)"):format(field, arg), true
      end
    end
    if is_changed then
      local _, lines = source:sub(open, stop - 1):gsub('\n', '')
      local text = table.concat(args, ', ')
      parts[#parts + 1] = source:sub(copied, open) .. text .. ('\n'):rep(lines - select(2, text:gsub('\n', '')))
      copied, after = stop - 1, stop
    end
    before, at = token or before, after
  end
  program.env.shown = function(name, value) return found[name] and addresses.text(value) or value end
  return table.concat(parts) .. source:sub(copied)
end

---@class oneliner.Program
---@field source string the source with the calls renamed; line numbers are unchanged
---@field env table<string, function> the functions of the renamed calls
---@field others string[] the other code, with the words of Lua
---@field resolves boolean it looks up addresses
---@field stacks? boolean a key is the stack of the event
---@field stack_part? 'kernel'|'user' only these frames of it
---@field package _keys { name: string, field?: string, found: table<string, any>, is_key?: boolean }[]
---@field package _data? table what it does, if that is one call
local Program = {}
Program.__index = Program

--- Prints all aggregations.
---@param out Output
---@param settings? { limit?: integer, sort?: string } see Aggregate:print(); those without the column are sorted by
--- value
function Program:print(out, settings)
  for i, aggregation in ipairs(self._list) do
    aggregation.is_followed = i < #self._list
    local has_column = settings and settings.sort and aggregation:has_column(settings.sort)
    aggregation:print(out, settings and { limit = settings.limit, sort = has_column and settings.sort or nil })
  end
end

--- Returns why no aggregation can be sorted by a column; nil if one can.
---@param sort? string
---@return string?
function Program:refuses_sort(sort)
  if not sort then return end
  local known = { 'key', 'value' }
  for _, aggregation in ipairs(self._list) do
    if aggregation:has_column(sort) then return end
    for _, name in ipairs(aggregation:column_names()) do known[#known + 1] = name end
  end
  return ("there is no column '%s'; --sort takes %s"):format(sort, table.concat(known, ', '))
end

--- Finds the fields of an event that are shown as addresses, and the keys that are shown as names: if all events have
--- the same.
---@param event table description
function Program:find_addresses(event)
  local is_address, texts = addresses.of(event), nil
  for _, key in ipairs(self._keys) do
    local field, before = key.field, key.found[key.name]
    if field and event.fields[field] then
      texts = texts or key.is_key and field_names.texts(event)
      key.is_address = key.is_address or is_address[field] or false
      local how = key.is_key and texts[field] or key.is_address
      key.found[key.name] = (before == nil or before == how) and how or key.is_address
    end
  end
end

--- Makes the events of a class count, in the kernel if possible. Returns the handler.
---@param session Session
---@param event Event
---@param handler fun(ev: Ev) runs the program
---@return fun(ev: Ev) handler
function Program:count(session, event, handler)
  self:find_addresses(public_event.one(event, 'exec'))
  local data = self._data
  local value = data and data.value and event.fields[data.value]
  if not data or data.value == '_comm' or value and value.kind == 'string' then return handler end
  for name, field in pairs(event.fields) do -- Lua compares unsigned ones in another way
    if data.signed[name] and field.size == 8 and field.kind ~= 'signed' then return handler end
  end
  local key = {}
  for i, part in ipairs(data.key) do key[i] = type(part) == 'table' and { constant = event.name } or part end
  return self._list[1]:count(session, event, { key = key, value = data.value, filter = data.filter, handler = handler })
end

--- Clears all aggregations.
function Program:clear()
  for _, aggregation in ipairs(self._list) do aggregation:clear() end
end

--- Returns of which part of the stack a source asks; nil: both.
local function stack_part(source)
  local kernel, user = source:find '%f[%w_]kstack%f[^%w_]', source:find '%f[%w_]ustack%f[^%w_]'
  if source:find '%f[%w_]stack%f[^%w_]' or (kernel ~= nil) == (user ~= nil) then return end
  return kernel and 'kernel' or 'user'
end

--- Returns the key that stands for several.
local function map_key(...)
  local list = { ... }
  for i = 1, select('#', ...) do list[i] = tostring(list[i]) end
  return table.concat(list, ', ')
end

--- Prints the maps that have values.
---@param print fun(...) of one-liners
---@param limit? integer most rows of each, then the largest values
function Program:print_maps(print, limit)
  local names = {}
  for name in pairs(self._maps) do names[#names + 1] = name end
  table.sort(names)
  for _, name in ipairs(names) do
    local value = rawget(self.env, 'map_' .. name:sub(2))
    if oneliner.is_map(value) then
      if #names > 1 then print(name .. ':') end
      print(value, limit)
    elseif value ~= nil then
      print(name .. ':', value)
    end
  end
end

--- Finds and renames the calls.
---@param source string
---@param session? Session
---@param others? string[] other code that shares its variables
---@param known? table<string, any> variables of other programs
---@return oneliner.Program? program nil: a call is wrong, see message
---@return string? message
function oneliner.compile(source, session, others, known)
  failure.set_parts('exec', not known and { source, unpack(others or {}) } or nil)
  local typed, translated, message, maps = source, bpftrace_words.translate({ source, unpack(others or {}) }, known)
  if not translated then return nil, message end
  source = table.remove(translated, 1)
  local program = setmetatable({ env = {}, _list = {}, _keys = {}, _maps = maps, others = translated }, Program)
  for name, kind in pairs(maps) do
    local where, variable = known or program.env, 'map_' .. name:sub(2)
    if kind == 'keys' then where[variable] = where[variable] or {} end
  end
  program.env.map_key = map_key
  source = source:gsub('%f[%w_]print%s*%(%s*([%w_.]+%(?%)?)%s*%)', function(arg)
    if not IS_STACK[arg] then return end
    program.stacks, program.stack_part = true, stack_part(typed)
    return ('print(%s)'):format(PRINTED_STACK)
  end)
  source = with_shown(source, program)
  program.resolves = (source .. table.concat(translated)):find '%f[%w_][ku]sym%(' ~= nil
  local parts, copied, at, before = {}, 1, 1, nil
  while at <= #source do
    local after, token = lua_source.next(source, at)
    local title, paren
    if VALUES[token or ''] then
      title, paren = source:match('^%-%-%[%[(@[%w_]*)%]%]()%(', after)
      paren = paren or source:match('^%s*()%(', after)
    end
    if paren and before ~= '.' and before ~= ':' and before ~= 'function' then
      local args, args_end = arguments(source, paren)
      local min, max = VALUES[token], VALUES[token] + (MAX_KEYS[token] or 4)
      if not args then
        local _, line = source:sub(1, at):gsub('\n', '')
        return nil, ("line %d: the '(' after %s is not closed"):format(line + 1, token)
      end
      if #args < min or #args > max then
        local _, line = source:sub(1, at):gsub('\n', '')
        return nil, ('line %d: %s takes %d to %d arguments'):format(line + 1, token, min, max)
      end
      if token == 'lhist' and not (constant(args[2]) and constant(args[3]) and constant(args[4])) then
        return nil, 'lhist takes a value, then three numbers: low, high, step'
      end
      local aggregation, has_stacks, fields = new_aggregation(token, title, args, session)
      for _, one in ipairs(fields) do program._keys[#program._keys + 1] = one end
      program._list[#program._list + 1] = aggregation
      if has_stacks then program.stacks, program.stack_part = true, stack_part(typed) end
      local name = ('%s_%d'):format(token, #program._list)
      program.env[name] = program._list[#program._list].call
      parts[#parts + 1] = source:sub(copied, at - 1) .. name
      parts[#parts + 1] = arguments_source(token, source:sub(paren, args_end - 1), args)
      copied, after = args_end, args_end
      program._data = #program._list == 1 and as_data(source, token, args) or nil
    end
    before, at = token or before, after
  end
  program.source = table.concat(parts) .. source:sub(copied)
  return program
end

local MAX_DEPTH = 4 -- parts of a printed key

--- Returns whether print() shows a value as rows: a plain table, or a map of lib.map.
---@param value any
---@return boolean
function oneliner.is_map(value)
  return type(value) == 'table' and (getmetatable(value) == nil or type(value.each) == 'function' and value.take ~= nil)
end

--- Returns a key or a value as a row has it.
local function plain(value)
  local kind = type(value)
  return (kind == 'number' or kind == 'string' or kind == 'cdata' and tonumber(value)) and value or tostring(value)
end

--- Appends the rows of a table. Keys of tables in tables are parts of one key.
local function add_rows(rows, map, before)
  local function add(...)
    local n, key = select('#', ...), { unpack(before) }
    local value = select(n, ...)
    for i = 1, n - 1 do key[#key + 1] = plain((select(i, ...))) end
    if oneliner.is_map(value) and #key < MAX_DEPTH then return add_rows(rows, value, key) end
    for i, part in ipairs(#key > 1 and key or {}) do key[i] = type(part) == 'string' and part or units.number(part) end
    rows[#rows + 1] = { key = #key == 1 and key[1] or table.concat(key, ', '), value = plain(value) }
  end
  if map.each then return map:each(add) end
  for key, value in pairs(map) do add(key, value) end
end

--- Orders numbers before text.
local function less(a, b)
  local x, y = type(a) ~= 'cdata' and a or tonumber(a), type(b) ~= 'cdata' and b or tonumber(b)
  if type(x) == type(y) and (type(x) == 'number' or type(x) == 'string') then return x < y end
  return type(x) == 'number' or type(y) ~= 'number' and tostring(x) < tostring(y)
end

--- Prints a table: all rows by key, or some with the largest values.
local function print_map(out, spec, map, limit)
  local rows = {}
  add_rows(rows, map, {})
  if #rows == 0 then return out:print '{}' end
  table.sort(rows, function(a, b)
    if limit and a.value ~= b.value then return less(b.value, a.value) end
    return less(a.key, b.key)
  end)
  for i = #rows, (limit or math.huge) + 1, -1 do rows[i] = nil end
  out:table(spec, rows)
end

--- Returns what one-liners can use beside Lua's own names.
---@param session Session
---@param out Output
---@param base table those of Lua
---@return table<string, any>
function oneliner.globals(session, out, base)
  tables.record('print', { 'text' })
  local map_spec = tables.new('map', { { name = 'key', metric = 'label' }, { name = 'value' } }, { stamp = false })
  local scope = {
    session = session, out = out, names = number_names,
    print = function(...)
      local first, limit = ...
      if oneliner.is_map(first) then return print_map(out, map_spec, first, tonumber(limit)) end
      out:print(...)
    end,
    printf = function(...) out:printf(...) end,
    row = function(...) out:row(...) end,
    stop = session.stop, exit = session.stop,
    syscall = session.syscall_name, errno = number_names.errno, signal = number_names.signal,
    ip = number_names.ip, open_flags = number_names.open_flags, flags = number_names.flags,
    ksym = session.address_text, usym = session.address_text,
    str = function(ev, name)
      if name:find('.', 1, true) then return (ev:string(name)) end
      local value = ev[name]
      return type(value) == 'string' and value or ev:string(name)
    end,
  }
  for name, value in pairs(base) do scope[name] = scope[name] or value end
  return scope
end

--- Returns the metatable of globals whose variables are in a table that they share.
local function share(scope, shared)
  return {
    __index = function(_, name)
      local value = shared[name]
      if value == nil then return scope[name] end
      if value ~= oneliner.NONE then return value end
    end,
    __newindex = function(_, name, value)
      if value == nil then value = oneliner.NONE end
      shared[name] = value
    end,
  }
end

--- Appends the nearest function to a message about an unknown name: they are no globals.
local function with_hint(message)
  local names = {}
  for i, one in ipairs(oneliner.FUNCTIONS) do names[i] = one[1] end
  return (message:gsub("(undeclared global '([^'\n]*)')%f[\n%z]", function(text, name)
    return text .. nearest.hint(name, names)
  end))
end

--- Loads the parts of a one-liner: what runs before the first event, for each event, and at the end. Names that one of
--- them assigns are variables of all; any other unknown name is an error.
---@param sources string[]
---@param env table the globals, whose metatable is replaced
---@param shared? table<string, any> variables of other one-liners: the values by name, NONE before there is one
---@return function[]? functions of `ev`
---@return string? message
function oneliner.load(sources, env, shared)
  local list, scope, known, assigned = {}, getmetatable(env).__index, {}, {}
  failure.add_script '=exec'
  for i, source in ipairs(sources) do
    local chunk, message = wide_keys.load('return function(ev) ' .. source .. '\nend', '=exec', 't', env)
    if not chunk then return nil, message end
    list[i] = chunk
    for name in pairs(globals.assigned(chunk)) do assigned[name] = true end
  end
  for _, names in ipairs { scope, env, shared or {}, assigned } do
    for name in pairs(names) do known[name] = true end
  end
  for _, chunk in ipairs(list) do
    local message = globals.check('exec', chunk, known)
    if message then return nil, with_hint(message) end
  end
  if shared then
    for name in pairs(assigned) do
      if shared[name] == nil then shared[name] = oneliner.NONE end
    end
    setmetatable(env, share(scope, shared))
  else
    setmetatable(env, {
      __index = function(_, name)
        if not assigned[name] then return scope[name] end
      end,
    })
  end
  for i, chunk in ipairs(list) do list[i] = chunk() end
  return list
end

return oneliner
