-- SPDX-License-Identifier: GPL-2.0-only
--- Parses and formats durations, sizes, numbers and times, and knows what numbers are: times, bytes, counts.
local bit = require 'bit'
local ffi = require 'ffi'

local units = {}

local MAX_EXACT = 2 ^ 53 -- integers above it are no longer exact

local NS = { ns = 1, us = 1e3, ['µs'] = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9, d = 86400e9 }
local FRACTION = { ns = 0, us = 3, ['µs'] = 3, ms = 6 } -- decimals down to 1 ns; 9 for larger units
local BYTES = { [''] = 0, k = 1, m = 2, g = 3, t = 4 } -- powers of 1024

--- Splits '1.5' into '1' and '5'. Returns nil if the text is not a plain decimal number.
local function split_number(text)
  local whole, fraction = text:match '^(%d*)%.(%d+)$'
  if whole then return whole, fraction end
  return text:match '^%d+$', ''
end

--- Parses a duration: '10ms', '1.5ms', '2h'. A number without a unit is ns.
---@param text string
---@return number? ns nil if invalid
---@return string? message
function units.duration(text)
  local number, unit = text:match '^([%d.]+)(.-)$'
  local whole, fraction = split_number(number or '')
  if not whole then return nil, ("invalid duration '%s' (expected a number and a unit, e.g. 1.5ms)"):format(text) end
  unit = unit == '' and 'ns' or unit:lower()
  local factor = NS[unit]
  if not factor then
    return nil, ("invalid duration '%s': unknown unit '%s' (expected ns, us, ms, s, min, h or d)"):format(text, unit)
  end
  if #fraction:gsub('0+$', '') > (FRACTION[unit] or 9) then
    return nil, ("invalid duration '%s': finer than 1 ns"):format(text)
  end
  local ns = math.floor(tonumber(number) * factor + 0.5)
  if ns > MAX_EXACT then return nil, ("invalid duration '%s': longer than 104 days"):format(text) end
  return ns
end

--- Parses a size: '4096', '4K', '1MiB', '1.5g'. K, M, G and T are powers of 1024.
---@param text string
---@return number? bytes nil if invalid
---@return string? message
function units.size(text)
  local number, unit = text:match '^([%d.]+)(%a*)$'
  local whole = split_number(number or '')
  local power = unit and BYTES[unit:lower():gsub('i?b$', '')]
  if not whole or not power then return nil, ("invalid size '%s' (expected e.g. 4096, 64K or 1MiB)"):format(text) end
  local bytes = tonumber(number) * 1024 ^ power
  if bytes ~= math.floor(bytes) then return nil, ("invalid size '%s': not a whole number of bytes"):format(text) end
  if bytes > MAX_EXACT then return nil, ("invalid size '%s': too large"):format(text) end
  return bytes
end

--- Parses an unsigned 64-bit number: '4096', or '0x1000' in hexadecimal.
---@param text string
---@return integer64? value nil if invalid
function units.unsigned(text)
  local digits, base = text:match '^0[xX](%x+)$', 16
  if not digits then digits, base = text:match '^%d+$', 10 end
  if not digits or #digits > (base == 16 and 16 or 19) then return nil end
  local value = 0ULL
  for digit in digits:gmatch '.' do value = value * base + tonumber(digit, 16) end
  return value
end

--- Formats ns as microseconds with three decimals: 1234567 is '1234.567'.
---@param ns number
---@return string
function units.us(ns) return ('%.3f'):format(tonumber(ns) / 1000) end

--- Formats a number with as few digits as possible without losing precision. NaN and infinity are not allowed.
---@param n number|integer64
---@return string
function units.number(n)
  if type(n) == 'cdata' then return (tostring(n):gsub('U?LL$', '')) end
  if n == math.floor(n) and math.abs(n) < 2 ^ 63 then return ('%d'):format(n) end
  local short = ('%.15g'):format(n)
  if tonumber(short) ~= n then short = ('%.16g'):format(n) end
  return tonumber(short) == n and short or ('%.17g'):format(n)
end

-- Lua's `..` takes 64-bit integers as it takes other numbers.
local function part(value)
  if type(value) ~= 'cdata' then return value end
  return tonumber(value) and units.number(value) or error(("'..' does not take '%s'"):format(ffi.typeof(value)), 3)
end
debug.getmetatable(0ULL).__concat = function(a, b) return part(a) .. part(b) end

--- Formats a number for people, with at most 12 digits: 0.1 + 0.2 is '0.3'. Integers keep all digits.
---@param n number|integer64
---@return string
function units.short(n)
  if type(n) == 'cdata' or n == math.floor(n) then return units.number(n) end
  return ('%.12g'):format(n)
end

local TIMES = { { 1e9, 's' }, { 1e6, 'ms' }, { 1e3, 'us' }, { 1, 'ns' } }
local SIZES = { { 2 ^ 60, 'EiB' }, { 2 ^ 50, 'PiB' }, { 2 ^ 40, 'TiB' }, { 2 ^ 30, 'GiB' }, { 2 ^ 20, 'MiB' },
  { 2 ^ 10, 'KiB' }, { 1, 'B' } }

--- Formats a number with three digits and its unit.
local function with_unit(n, steps)
  local at = 1
  while at < #steps and math.abs(n) < steps[at][1] do at = at + 1 end
  local value = n / steps[at][1]
  local size = math.abs(value)
  local digits = size % 1 == 0 and 0 or size < 9.995 and 2 or size < 99.95 and 1 or 0
  local text = ('%.' .. digits .. 'f'):format(value)
  -- 999.7 us is 1 ms, not 1000 us.
  local up = at > 1 and steps[at - 1]
  if up and math.abs(tonumber(text)) * steps[at][1] >= up[1] then return with_unit(n < 0 and -up[1] or up[1], steps) end
  return ('%s %s'):format(text, steps[at][2])
end

--- Formats ns for people: '1.08 s', '64 us'.
---@param ns number|integer64
---@return string
function units.time(ns) return with_unit(tonumber(ns), TIMES) end

--- Formats bytes for people: '64 KiB', '1.50 MiB'.
---@param bytes number|integer64
---@return string
function units.bytes(bytes) return with_unit(tonumber(bytes), SIZES) end

--- Returns an address as text: '0x7ffe1234'; other values than integers as they are.
---@param value any
---@return any
function units.address(value)
  local number = type(value) ~= 'string' and tonumber(value)
  if not number then return value end
  if type(value) == 'number' and value >= 0 then return ('0x%x'):format(value) end
  return '0x' .. bit.tohex(ffi.cast('uint64_t', ffi.cast('int64_t', value))):gsub('^0+(.)', '%1')
end

-- What a number is ---------------------------------------------------------------------------------------------------

--- What numbers of a unit are: as text, and as metrics, which have base units.
---@class Unit
---@field show? fun(value: number|integer64): string nil: a plain number
---@field base? 'seconds'|'bytes'|'ratio' the base unit
---@field divisor? number how many of them make one of the base unit

local function times(ns) return function(n) return units.time(tonumber(n) * ns) end end

--- Formats seconds since the epoch.
local function time_of_day(seconds)
  local whole = math.floor(seconds)
  return units.wall(whole, math.floor((seconds - whole) * 1e6 + 0.5) * 1000)
end

--- By name. `time` is in seconds since the epoch, `count` a plain number. Any name may end with `/s`: per second.
---@type table<string, Unit>
local UNITS = {
  ns = { show = units.time, base = 'seconds', divisor = 1e9 },
  us = { show = times(1e3), base = 'seconds', divisor = 1e6 },
  ms = { show = times(1e6), base = 'seconds', divisor = 1e3 },
  s = { show = times(1e9), base = 'seconds', divisor = 1 },
  bytes = { show = units.bytes, base = 'bytes', divisor = 1 },
  kb = { show = function(n) return units.bytes(tonumber(n) * 1024) end, base = 'bytes', divisor = 1 / 1024 },
  percent = { base = 'ratio', divisor = 100 },
  address = { show = units.address },
  time = { show = time_of_day, base = 'seconds', divisor = 1 },
  count = {},
}

--- Returns the names of units.
---@return string[]
function units.names()
  local list = {}
  for name in pairs(UNITS) do list[#list + 1] = name end
  table.sort(list)
  return list
end

--- Returns what numbers of a unit are; nil if there is none of that name.
---@param name? string such as 'ns' or 'bytes/s'
---@return Unit?
function units.get(name)
  if not name then return end
  local found = UNITS[name]
  if found then return found end
  local of = UNITS[name:match '^(%w+)/s$']
  if not of then return end
  local show = of.show or units.short
  found = { show = function(value) return show(value) .. '/s' end }
  UNITS[name] = found
  return found
end

--- Formats a value for people: '1.08 s' of ns, '64 KiB' of bytes, '0x7ffe1234' of an address.
---@param value number|integer64
---@param name? string of the unit; nil: a plain number
---@return string
function units.text(value, name)
  local unit = units.get(name)
  return (unit and unit.show or units.short)(value)
end

--- Endings of the names of columns, and titles that say the unit.
local ENDINGS = { 'ns', 'us', 'ms', 'bytes', 'kb', 'percent', 'address' }

--- Returns the unit of a column, from the column itself, its name or its title; nil if nothing says it.
---@param column { name: string, title?: string, unit?: string }
---@return string? unit
---@return string? name the name without its unit, if that says it
function units.of(column)
  if column.unit then return column.unit end
  local name = '_' .. column.name:lower()
  for _, unit in ipairs(ENDINGS) do
    if name:sub(-#unit - 1) == '_' .. unit then return unit, name:sub(2, -#unit - 2) end
  end
  if column.title and column.title:find '%%$' then return 'percent' end
end

--- Units of the fields of events, by a part of their names.
local FIELDS = {
  { '^runtime$', 'ns' }, { '^vruntime$', 'ns' }, { '^delay$', 'ns' }, { 'latency', 'ns' }, { '_ns$', 'ns' },
  { '^bytes', 'bytes' },
}

--- Returns the unit of an event's field; nil if its name does not say it.
---@param name string
---@return string?
function units.of_field(name)
  for _, one in ipairs(FIELDS) do if name:find(one[1]) then return one[2] end end
end

--- Formats 2^exponent: 10 is '1K', 21 is '2M'.
---@param exponent integer 0 to 63
---@return string
function units.power2(exponent)
  local step = math.floor(exponent / 10)
  return ('%d%s'):format(2 ^ (exponent % 10), ('KMGTPE'):sub(step, step))
end

--- Formats a time that is not wall time as seconds with six decimals.
---@param sec number
---@param ns number added to sec; may exceed a second
---@return string
function units.seconds(sec, ns)
  local us = math.floor(ns / 1000)
  local carry = math.floor(us / 1e6)
  return ('%d.%06d'):format(sec + carry, us - carry * 1e6)
end

-- The text of the last second is cached: os.date costs as much as ten lines.
local last_second, last_text

--- Formats wall time as local time: 'YYYY-MM-DD HH:MM:SS.uuuuuu'.
---@param sec number whole seconds since the epoch
---@param ns number added to sec; may exceed a second
---@return string
function units.wall(sec, ns)
  local us = math.floor(ns / 1000)
  local carry = math.floor(us / 1e6)
  sec, us = sec + carry, us - carry * 1e6
  if sec ~= last_second then last_second, last_text = sec, os.date('%Y-%m-%d %H:%M:%S', sec) end
  return ('%s.%06d'):format(last_text, us)
end

return units
