-- SPDX-License-Identifier: GPL-2.0-only
--- What the kernel's print formats have beyond C's printf, as functions over a payload: strings,
--- names of values and flags, addresses, UUIDs, dumps. The code that printfmt generates calls them.
--- Their output is the same as libtraceevent's.
---
--- `raw` is a `const uint8_t *` to `size` bytes, and `offset` counts from raw. The callers of functions
--- without `size` check the offset first: whatever the payload says, nothing outside it is read.
local bit = require 'bit'
local ffi = require 'ffi'
local new_buffer = require('string.buffer').new
local INTEGERS = require('bindings.expr.types').INTEGERS

ffi.cdef 'size_t strnlen(const char *s, size_t max);'

local C = ffi.C
local band, bnot, bor, lshift, rshift = bit.band, bit.bnot, bit.bor, bit.lshift, bit.rshift
local cast, ffi_string, format = ffi.cast, ffi.string, string.format
local i64, u64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'

local kprintf = {}

--- Printed instead of data outside the payload.
kprintf.BAD = '(bad)'
local BAD = kprintf.BAD

-- Values that one map caches. Payloads choose the values, so a full cache is emptied.
local CACHE_MAX = 4096
-- Larger 64-bit integers may not be exact as Lua numbers.
local EXACT = 2 ^ 53

--- Makes a function from integers to strings that caches its results; text_of gets a uint64_t.
local function remember(text_of)
  local known, count = {}, 0
  local function miss(v, key)
    local text = text_of(u64(i64(v)))
    if key then
      if count == CACHE_MAX then
        known, count = {}, 0
      end
      known[key] = text
      count = count + 1
    end
    return text
  end
  return function(v)
    local key = v
    if type(v) == 'cdata' then
      key = tonumber(i64(v)) -- as signed numbers, kernel addresses are exact
      if key >= EXACT or key <= -EXACT then return miss(v) end
    end
    return known[key] or miss(v, key)
  end
end

--- __print_symbolic: the name of a value.
---@param names { [1]: ffi.cdata*, [2]: string }[] uint64_t and name
---@return fun(v: number|ffi.cdata*): string
function kprintf.symbolic(names)
  return remember(function(v)
    for _, entry in ipairs(names) do
      if entry[1] == v then return entry[2] end
    end
    return format('0x%x', v)
  end)
end

--- __print_flags: the names of the bits; bits without a name follow in hexadecimal.
---@param names { [1]: ffi.cdata*, [2]: string }[] uint64_t and name
---@param delim string
---@return fun(v: number|ffi.cdata*): string
function kprintf.flags(names, delim)
  return remember(function(v)
    local parts = {}
    for _, entry in ipairs(names) do
      local mask = entry[1]
      if mask ~= 0 and band(v, mask) == mask then
        parts[#parts + 1] = entry[2]
        v = band(v, bnot(mask))
      end
    end
    if v ~= 0 then parts[#parts + 1] = format('0x%x', v) end
    return table.concat(parts, delim)
  end)
end

--- %p.
---@param v number|ffi.cdata*
function kprintf.pointer(v)
  if v == 0 then return '(nil)' end
  return format('0x%x', v)
end

--- Pads a text to a width that the payload gives.
---@param text string
---@param width integer negative: left aligned
function kprintf.pad(text, width)
  local blanks = math.min(math.abs(width), 1024) - #text
  if blanks <= 0 then return text end
  return width < 0 and text .. (' '):rep(blanks) or (' '):rep(blanks) .. text
end

--- The first n characters; all of them for a negative n, as in C.
---@param text string
---@param n integer
function kprintf.cut(text, n) return n < 0 and text or text:sub(1, n) end

--- The functions that print text from untrusted sources or need the caller's services.
---@param env PrintEnv
function kprintf.bind(env)
  local safe, symbol_at, string_at = env.safe, env.symbol, env.string
  local bound = {}

  --- Text of the format itself, which may contain line breaks and tabs.
  function bound.literal(text) return (text:gsub('[^\n\t]+', safe)) end

  --- The texts of %c, by byte.
  bound.chars = setmetatable({}, {
    __index = function(chars, byte)
      chars[byte] = safe(string.char(byte))
      return chars[byte]
    end,
  })

  --- A string of at most `length` bytes.
  function bound.fixed_string(raw, offset, length)
    local at = cast('const char *', raw + offset)
    return safe(ffi_string(at, C.strnlen(at, length)))
  end

  --- The string of a dynamic field: word holds its length and its offset from base.
  function bound.dynamic_string(raw, size, word, base)
    local offset, length = band(word, 0xffff) + base, rshift(word, 16)
    if offset + length > size then return BAD end
    local at = cast('const char *', raw + offset)
    return safe(ffi_string(at, C.strnlen(at, length)))
  end

  --- %pS.
  bound.symbol_offset = remember(function(address)
    local text = symbol_at and symbol_at(address, true)
    return text and safe(text) or format('0x%x', address)
  end)

  --- %ps.
  bound.symbol = remember(function(address)
    local text = symbol_at and symbol_at(address, false)
    return text and safe(text) or format('0x%x', address)
  end)

  --- %s of a kernel address: one of the kernel's printk strings, or the address.
  bound.kernel_string = remember(function(address)
    local text = string_at and string_at(address)
    return text and safe(text) or format('%x', address)
  end)

  return bound
end

--- Loads an element at an offset that the payload gives; zero outside the payload.
local function loader(ctype, bytes, zero)
  return function(raw, size, offset)
    if offset < 0 or offset + bytes > size then return zero end
    return cast(ctype, raw + offset)[0]
  end
end

-- Pointers to the integer types. Not const: string.format takes no `const int64_t`.
local TYPES = {}
for name, limits in pairs(INTEGERS) do
  TYPES[name] = ffi.typeof(name:gsub('i', 'int', 1):gsub('u', 'uint', 1) .. '_t *')
  kprintf['load_' .. name] = loader(TYPES[name], limits.size, limits.size < 8 and 0 or limits.signed and 0LL or 0ULL)
end
kprintf.TYPES = TYPES

local scratch = new_buffer()

--- The first count bytes of `room` bytes, two digits each.
local function hex(raw, offset, room, count, delim)
  scratch:reset()
  for i = 0, math.min(count, room) - 1 do
    scratch:putf(i > 0 and delim .. '%02x' or '%02x', raw[offset + i])
  end
  return scratch:get()
end
kprintf.hex = hex

--- __print_array: unsigned decimals.
function kprintf.array(raw, offset, room, count, elem_size)
  local ctype = TYPES['u' .. 8 * elem_size]
  if not ctype then return BAD end
  local elements = cast(ctype, raw + offset)
  scratch:reset()
  for i = 0, math.min(count, math.floor(room / elem_size)) - 1 do
    scratch:putf(i > 0 and ' %u' or '%u', elements[i])
  end
  return scratch:get()
end

--- A bit mask like the kernel's %*pb: the highest word first, a comma every 32 bits.
function kprintf.bitmask(raw, offset, room)
  scratch:reset()
  for i = room - 1, 0, -1 do
    scratch:putf(i % 4 == 0 and i > 0 and '%02x,' or '%02x', raw[offset + i])
  end
  return scratch:get()
end

--- A bit mask like the kernel's %*pbl: "0,2-5".
function kprintf.bitlist(raw, offset, room)
  local from, delim = nil, ''
  scratch:reset()
  for n = 0, room * 8 do
    local set = n < room * 8 and band(raw[offset + rshift(n, 3)], lshift(1, band(n, 7))) ~= 0
    if set then
      from = from or n
    elseif from then
      scratch:putf(n - from == 1 and '%s%d' or '%s%d-%d', delim, from, n - 1)
      from, delim = nil, ','
    end
  end
  return scratch:get()
end

local function big_endian16(raw, offset) return bor(lshift(raw[offset], 8), raw[offset + 1]) end

--- %pI4, %pi4 (zeros) and their host order forms (reverse).
function kprintf.ipv4(raw, offset, zeros, reverse)
  local a, b, c, d = raw[offset], raw[offset + 1], raw[offset + 2], raw[offset + 3]
  if reverse then
    a, b, c, d = d, c, b, a
  end
  return format(zeros and '%03d.%03d.%03d.%03d' or '%d.%d.%d.%d', a, b, c, d)
end

--- %pI6 and %pi6 (no colons).
function kprintf.ipv6(raw, offset, colons)
  return format(
    colons and '%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x' or '%04x%04x%04x%04x%04x%04x%04x%04x',
    big_endian16(raw, offset), big_endian16(raw, offset + 2),
    big_endian16(raw, offset + 4), big_endian16(raw, offset + 6),
    big_endian16(raw, offset + 8), big_endian16(raw, offset + 10),
    big_endian16(raw, offset + 12), big_endian16(raw, offset + 14)
  )
end

--- The longest run of at least two zero words among the first n; from is n if there is none.
local function zero_run(raw, offset, n)
  local from, longest, run = n, 1, 0
  for i = 0, n - 1 do
    run = big_endian16(raw, offset + 2 * i) == 0 and run + 1 or 0
    if run > longest then
      from, longest = i - run + 1, run
    end
  end
  return from, longest
end

--- %pI6c: compressed; IPv4-mapped and ISATAP addresses end in dotted form.
function kprintf.ipv6_short(raw, offset)
  local words = cast(TYPES.u32, raw + offset)
  local mapped = words[0] == 0 and words[1] == 0 and words[2] == 0xffff0000
  local isatap = bor(words[2], 2) == bit.tobit(0xfe5e0002)
  local n = (mapped or isatap) and 6 or 8
  local from, longest = zero_run(raw, offset, n)
  local i, colon = 0, ''
  scratch:reset()
  while i < n do
    if i == from then
      scratch:put(i == 0 and '::' or colon .. ':')
      i, colon = i + longest, ''
    else
      scratch:putf('%s%x', colon, big_endian16(raw, offset + 2 * i))
      i, colon = i + 1, ':'
    end
  end
  if n == 6 then scratch:put(colon, kprintf.ipv4(raw, offset + 12)) end
  return scratch:get()
end

--- %pIS and its forms: a sockaddr in `room` bytes.
function kprintf.sockaddr(raw, offset, room, short, port, zeros)
  local family = room >= 2 and cast(TYPES.u16, raw + offset)[0]
  local v4, v6 = family == 2 and room >= 16, family == 10 and room >= 28
  if not v4 and not v6 then return family == 2 and 'INVALIDIPv4' or family == 10 and 'INVALIDIPv6' or '' end
  local tail = port and format(':%d', big_endian16(raw, offset + 2)) or ''
  if v4 then return kprintf.ipv4(raw, offset + 4, zeros) .. tail end
  local address = short and kprintf.ipv6_short(raw, offset + 8) or kprintf.ipv6(raw, offset + 8, not zeros)
  return port and '[' .. address .. ']' .. tail or address
end

--- %pM and its forms.
function kprintf.mac(raw, offset, delim, reverse)
  local a, b, c = raw[offset], raw[offset + 1], raw[offset + 2]
  local d, e, f = raw[offset + 3], raw[offset + 4], raw[offset + 5]
  if reverse then
    a, b, c, d, e, f = f, e, d, c, b, a
  end
  return format('%02x%s%02x%s%02x%s%02x%s%02x%s%02x', a, delim, b, delim, c, delim, d, delim, e, delim, f)
end

local UUID = '%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x'
local UUID_UPPER = UUID:upper()

--- %pU and its forms; guid: the first three groups are little endian.
function kprintf.uuid(raw, offset, guid, upper)
  local at = raw + offset
  local a, b, c, d, e, f, g, h = at[0], at[1], at[2], at[3], at[4], at[5], at[6], at[7]
  if guid then
    a, b, c, d, e, f, g, h = d, c, b, a, f, e, h, g
  end
  return format(
    upper and UUID_UPPER or UUID,
    a, b, c, d, e, f, g, h, at[8], at[9], at[10], at[11], at[12], at[13], at[14], at[15]
  )
end

return kprintf
