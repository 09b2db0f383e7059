-- SPDX-License-Identifier: GPL-2.0-only
--- Parses and formats durations, sizes, numbers and times.
local units = {}

local MAX_EXACT = 2 ^ 53 -- integers above it are no longer exact

local NS = { ns = 1, us = 1e3, ['µs'] = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9, d = 86400e9 }
local FRACTION = { ns = 0, us = 3, ['µs'] = 3, ms = 6 } -- decimals down to 1 ns; 9 for larger units
local BYTES = { [''] = 0, k = 1, m = 2, g = 3, t = 4 } -- powers of 1024

--- Splits '1.5' into '1' and '5'. Returns nil if the text is not a plain decimal number.
local function split_number(text)
  local whole, fraction = text:match '^(%d+)%.(%d+)$'
  if whole then return whole, fraction end
  fraction = text:match '^%.(%d+)$'
  if fraction then return '0', fraction end
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
  if not digits then
    digits, base = text:match '^%d+$', 10
  end
  if not digits or #digits > (base == 16 and 16 or 19) then return nil end
  local value = 0ULL
  for digit in digits:gmatch '.' do
    value = value * base + tonumber(digit, 16)
  end
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

--- Formats a number for people, with at most 12 digits: 0.1 + 0.2 is '0.3'. Integers keep all digits.
---@param n number|integer64
---@return string
function units.short(n)
  if type(n) == 'cdata' or n == math.floor(n) then return units.number(n) end
  return ('%.12g'):format(n)
end

--- Formats a number with three digits and its unit.
local function with_unit(n, steps)
  local size, unit = math.abs(n), steps[#steps]
  for _, step in ipairs(steps) do
    if size >= step[1] then
      unit = step
      break
    end
  end
  local value = n / unit[1]
  local digits = (value % 1 == 0 or unit[1] == 1) and 0 or 2
  if digits > 0 then digits = math.abs(value) < 10 and 2 or math.abs(value) < 100 and 1 or 0 end
  return ('%.' .. digits .. 'f %s'):format(value, unit[2])
end

local TIMES = { { 1e9, 's' }, { 1e6, 'ms' }, { 1e3, 'us' }, { 1, 'ns' } }
local SIZES = { { 2 ^ 60, 'EiB' }, { 2 ^ 50, 'PiB' }, { 2 ^ 40, 'TiB' }, { 2 ^ 30, 'GiB' }, { 2 ^ 20, 'MiB' },
  { 2 ^ 10, 'KiB' }, { 1, 'B' } }

--- Formats ns for people: '1.08 s', '64 us'.
---@param ns number|integer64
---@return string
function units.time(ns) return with_unit(tonumber(ns), TIMES) end

--- Formats bytes for people: '64 KiB', '1.50 MiB'.
---@param bytes number|integer64
---@return string
function units.bytes(bytes) return with_unit(tonumber(bytes), SIZES) end

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
  if sec ~= last_second then
    last_second, last_text = sec, os.date('%Y-%m-%d %H:%M:%S', sec)
  end
  return ('%s.%06d'):format(last_text, us)
end

return units
