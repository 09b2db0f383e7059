-- SPDX-License-Identifier: GPL-2.0-only
--- Types of option values. Conversion is strict: an invalid value is rejected with the expected form, never truncated
--- or clamped.
local bit = require 'bit'
local cpu_list = require 'bindings.base.cpu_list'
local ffi = require 'ffi'
local nearest = require 'bindings.base.nearest'
local sys = require 'bindings.base.sys'
local units = require 'bindings.base.units'

local MAX_EXACT = 2 ^ 53 -- largest integer that is exact as a Lua number
local COPIES = { fp = 0, tables = 0, hybrid = 512, dwarf = 8192 } -- bytes of a stack copy
local MAX_COPY = 65528 -- samples are smaller than 64 KiB
local NS = { ns = 1, us = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9 }

--- Formats a number without loss of precision: '1000', not '1e+03'.
local function number_text(n)
  return ('%.15g'):format(n)
end

--- Formats a time in the largest unit that needs at most three decimals: '1.5s' for 1.5e9.
local function duration_text(ns)
  for _, unit in ipairs { 'h', 'min', 's', 'ms', 'us' } do
    if ns >= NS[unit] and (ns * 1000) % NS[unit] == 0 then return number_text(ns / NS[unit]) .. unit end
  end
  return number_text(ns) .. 'ns'
end

---@return nil
---@return string message
local function refuse(text, expected, hint)
  return nil, ("'%s' is not %s%s"):format(text, expected, hint or '')
end

---@return nil
---@return string message
local function invalid(what, text, expected)
  return nil, ("invalid %s '%s' (expected %s)"):format(what, text, expected)
end

local function in_range(n, option)
  return n >= (option.min or -math.huge) and n <= (option.max or math.huge)
end

---@param option opt.Option
---@param show fun(n: number): string
---@return string such as " from 0 to 100"
local function range_text(option, show)
  if option.min and option.max then return (' from %s to %s'):format(show(option.min), show(option.max)) end
  if option.min then return (' >= %s'):format(show(option.min)) end
  return option.max and (' <= %s'):format(show(option.max)) or ''
end

local function parse_whole(text)
  local n = (text:match '^[+-]?%d+$' or text:match '^0[xX]%x+$') and tonumber(text)
  return n and math.abs(n) <= MAX_EXACT and n or nil
end

local function parse_integer(text, option)
  local n = parse_whole(text)
  if n and in_range(n, option) then return n end
  return refuse(text, 'an integer' .. range_text(option, number_text))
end

--- A number; without a unit of its own, also a time, in ns.
local function parse_number(text, option)
  local n = text:match '^[+-]?%.?%d[%d.eE+-]*$' and tonumber(text)
  if not n and not option.unit and text:find '^[%d.]+%a+$' then n = units.duration(text) end
  if n and math.abs(n) < math.huge and in_range(n, option) then return n end
  return refuse(text, 'a number' .. range_text(option, number_text))
end

local function parse_pages(text, option)
  local n = parse_whole(text)
  if not n or not in_range(n, option) then
    return refuse(text, 'a power of two' .. range_text(option, number_text))
  end
  if bit.band(n, n - 1) == 0 then return n end
  local below = 2 ^ math.floor(math.log(n, 2))
  return refuse(text, 'a power of two', ('; the nearest are %d and %d'):format(below, below * 2))
end

local function parse_duration(text, option)
  local bare = text:match '^%d+$' or text:match '^%d*%.%d+$'
  local ns, message = units.duration(bare and text .. (option.unit or 'ns') or text)
  if not ns then return nil, message end
  if in_range(ns, option) then return ns end
  return refuse(text, 'a duration' .. range_text(option, duration_text))
end

local function parse_size(text, option)
  local bytes, message = units.size(text)
  if not bytes then return nil, message end
  if in_range(bytes, option) then return bytes end
  return refuse(text, 'a size' .. range_text(option, number_text))
end

local function parse_enum(text, option)
  for _, value in ipairs(option.values) do
    if value == text then return value end
  end
  return refuse(text, 'one of ' .. table.concat(option.values, ', '), nearest.hint(text, option.values))
end

--- Returns how stacks are recorded: the mode, and the bytes of each stack that are copied to be unwound.
local function parse_call_graph(text)
  local mode, size = text:match '^(%a+),?(.*)$'
  local usual = mode and COPIES[mode]
  size = size == '' and usual or usual ~= 0 and parse_whole(size or '')
  if not usual or not size or usual > 0 and (size < 8 or size > MAX_COPY) then
    return invalid('call graph mode', text,
      ('fp, tables, hybrid or dwarf, the last two also with ",SIZE" of at most %d bytes'):format(MAX_COPY))
  end
  return { mode = mode, bytes = math.ceil(size / 8) * 8 }
end

--- Parses a number of 64 bits. As in C, one that is too large for a signed number is negative.
local function parse_offset(text)
  local sign, digits = text:match '^([+-]?)(%w+)$'
  local value = digits and units.unsigned(digits)
  if not value then return refuse(text, 'an integer of 64 bits, such as -1000 or 0xff') end
  return ffi.cast('int64_t', sign == '-' and -value or value)
end

--- Parses "START,STOP", in seconds; either may be missing. Returns them in ns.
local function parse_times(text)
  local function ns_of(seconds)
    local whole, part = seconds:match '^(%d+)%.?(%d*)$'
    if not whole or #whole > 10 or #part > 9 then return end
    return tonumber(whole) * 1000000000ULL + tonumber(part .. ('0'):rep(9 - #part))
  end
  local start, stop = text:match '^([^,]*),([^,]*)$'
  local from = start == '' and 0ULL or start and ns_of(start)
  local till = stop == '' and -1ULL or stop and ns_of(stop)
  if not from or not till or from > till then
    return refuse(text, 'two times in seconds, such as 12.5,13.000001 or 12.5,')
  end
  return { from = from, till = till }
end

local function parse_text(text)
  return text
end

--- Splits "a,b,c". An empty text has one empty element.
local function split(text)
  local words = {}
  for word in (text .. ','):gmatch '([^,]*),' do
    words[#words + 1] = word
  end
  return words
end

local function parse_cpus(text)
  if not cpu_list.parse(text) then return invalid('CPU list', text, 'e.g. 0-3,7') end
  return text
end

local function parse_ids(text)
  local ids = {}
  for _, word in ipairs(split(text)) do
    local id = word:match '^%d+$' and tonumber(word)
    if not id or id < 1 or id >= sys.PIDS_MAX then return invalid('id list', text, 'e.g. 12,345') end
    ids[#ids + 1] = id
  end
  return ids
end

--- Parses pids and names. Names are looked up later.
local function parse_processes(text)
  local list = {}
  for _, word in ipairs(split(text)) do
    local id = word:match '^%d+$' and tonumber(word)
    if word == '' or word:sub(1, 1) == '-' or id and (id < 1 or id >= sys.PIDS_MAX) then
      return invalid('process list', text, 'pids or names, e.g. 12,java')
    end
    list[#list + 1] = id or word
  end
  return list
end

local function is_before(a, b)
  if type(a) == type(b) then return a < b end
  return type(a) == 'number'
end

--- Properties of types:
--- - lua: Lua type of the default
--- - parse(text, option): returns the value, or nil and a message
--- - argument: name of the value in help
--- - list: the value is an array to which repeated options append; with `sorted` it is kept in that order, without
---   duplicates
--- - joined: the value is text to which repeated options append
--- - switch: takes no value, except after its long name a value that matches one of `claims`
local types = {
  flag     = { lua = 'boolean', switch = true, negatable = true },
  stacks   = { lua = 'boolean', switch = true, negatable = true, argument = 'fp|tables|hybrid|dwarf[,SIZE]',
    claims = { '^fp$', '^fp,', '^tables$', '^hybrid$', '^hybrid,', '^dwarf$', '^dwarf,', '^lbr' },
    parse = parse_call_graph },
  count    = { lua = 'number', switch = true },
  integer  = { lua = 'number', argument = 'N', parse = parse_integer },
  number   = { lua = 'number', argument = 'N', parse = parse_number },
  offset   = { lua = 'cdata', argument = 'N', parse = parse_offset },
  times    = { lua = 'table', argument = 'START,STOP', parse = parse_times },
  pages    = { lua = 'number', argument = 'N', parse = parse_pages },
  duration = { lua = 'number', argument = 'T', parse = parse_duration },
  size     = { lua = 'number', argument = 'SIZE', parse = parse_size },
  string   = { lua = 'string', argument = 'TEXT', parse = parse_text },
  event    = { lua = 'string', argument = 'EVENT', parse = parse_text },
  enum     = { lua = 'string', parse = parse_enum },
  cpus     = { lua = 'string', argument = 'LIST', joined = true, parse = parse_cpus },
  ids      = { lua = 'table', argument = 'LIST', list = true, sorted = is_before, parse = parse_ids },
  processes = { lua = 'table', argument = 'LIST', list = true, sorted = is_before, parse = parse_processes },
  words    = { lua = 'table', argument = 'LIST', list = true, parse = split },
}

return {
  types = types,
  NS = NS,
  number_text = number_text,
  duration_text = duration_text,
}
