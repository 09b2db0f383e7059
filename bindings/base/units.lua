-- SPDX-License-Identifier: GPL-2.0-only
--- Durations, sizes, numbers and times, as users write and read them.
local units = {}

local MAX_EXACT = 2 ^ 53 -- above it a number is no longer exact

local NS = { ns = 1, us = 1e3, ['µs'] = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9, d = 86400e9 }
local FRACTION = { ns = 0, us = 3, ['µs'] = 3, ms = 6 } -- digits that are not finer than 1 ns; else 9
local BYTES = { [''] = 0, k = 1, m = 2, g = 3, t = 4 } -- powers of 1024

--- '1.5' as whole, fraction: '1', '5'; nothing if text is no plain decimal number.
local function split_number(text)
  local whole, fraction = text:match '^(%d+)%.(%d+)$'
  if whole then return whole, fraction end
  fraction = text:match '^%.(%d+)$'
  if fraction then return '0', fraction end
  return text:match '^%d+$', ''
end

--- Reads a duration: '10ms', '1.5ms', '2h'. A number without a unit is ns.
---@param text string
---@return number? ns nil: message says what is wrong
---@return string? message
function units.duration(text)
  local number, unit = text:match '^([%d.]+)(.-)$'
  local whole, fraction = split_number(number or '')
  if not whole then return nil, ("bad duration '%s': not a number with a unit, such as 1.5ms"):format(text) end
  unit = unit == '' and 'ns' or unit:lower()
  local factor = NS[unit]
  if not factor then return nil, ("bad duration '%s': unit '%s' is none of ns us ms s min h d"):format(text, unit) end
  if #fraction:gsub('0+$', '') > (FRACTION[unit] or 9) then
    return nil, ("bad duration '%s': finer than 1 ns"):format(text)
  end
  local ns = math.floor(tonumber(number) * factor + 0.5)
  if ns > MAX_EXACT then return nil, ("bad duration '%s': longer than 104 days"):format(text) end
  return ns
end

--- Reads a size: '4096', '4K', '1MiB', '1.5g'. K, M, G and T are powers of 1024.
---@param text string
---@return number? bytes nil: message says what is wrong
---@return string? message
function units.size(text)
  local number, unit = text:match '^([%d.]+)(%a*)$'
  local whole = split_number(number or '')
  local power = unit and BYTES[unit:lower():gsub('i?b$', '')]
  if not whole or not power then return nil, ("bad size '%s': not bytes, or such as 64K, 1MiB"):format(text) end
  local bytes = tonumber(number) * 1024 ^ power
  if bytes ~= math.floor(bytes) then return nil, ("bad size '%s': not a whole number of bytes"):format(text) end
  if bytes > MAX_EXACT then return nil, ("bad size '%s': too large"):format(text) end
  return bytes
end

--- Reads an unsigned 64-bit number: '4096', or '0x1000' in hexadecimal.
---@param text string
---@return integer64? value nil: it is not one
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

--- ns as microseconds with three decimals: 1234567 is '1234.567'.
---@param ns number
---@return string
function units.us(ns) return ('%.3f'):format(tonumber(ns) / 1000) end

--- A number in as few digits as keep its value. NaN and infinity are not allowed.
---@param n number|integer64
---@return string
function units.number(n)
  if type(n) == 'cdata' then return (tostring(n):gsub('U?LL$', '')) end
  if n == math.floor(n) and math.abs(n) < 2 ^ 63 then return ('%d'):format(n) end
  local short = ('%.15g'):format(n)
  return tonumber(short) == n and short or ('%.17g'):format(n)
end

--- A number in at most 12 digits, for people: 0.1 + 0.2 is '0.3'. Whole numbers keep all of theirs.
---@param n number|integer64
---@return string
function units.short(n)
  if type(n) == 'cdata' or n == math.floor(n) then return units.number(n) end
  return ('%.12g'):format(n)
end

--- 2^exponent in short: 10 is '1K', 21 is '2M'.
---@param exponent integer 0 to 63
---@return string
function units.power2(exponent)
  local step = math.floor(exponent / 10)
  return ('%d%s'):format(2 ^ (exponent % 10), ('KMGTPE'):sub(step, step))
end

--- A time that is not wall time, as seconds with six decimals.
---@param sec number
---@param ns number is added; may be more than a second
---@return string
function units.seconds(sec, ns)
  local us = math.floor(ns / 1000)
  local carry = math.floor(us / 1e6)
  return ('%d.%06d'):format(sec + carry, us - carry * 1e6)
end

-- One second's text is reused: os.date costs as much as ten lines.
local last_second, last_text

--- Local time as 'YYYY-MM-DD HH:MM:SS.uuuuuu'.
---@param sec number whole seconds since the epoch
---@param ns number is added; may be more than a second
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
