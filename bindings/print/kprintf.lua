-- SPDX-License-Identifier: GPL-2.0-only
--- What the kernel's print formats can do beyond C's printf, as functions over a payload: strings,
--- names of values and flags, addresses, UUIDs, dumps. The code that printfmt generates calls them;
--- the texts are those of libtraceevent.
---
--- `raw` is a `const uint8_t *`, `size` the bytes behind it, `offset` counts from raw. Functions
--- without `size` are called with a place that was checked before; nothing outside of the payload
--- is ever read, whatever it says.
local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local new_buffer = require('string.buffer').new

local band, bnot, bor, lshift, rshift = bit.band, bit.bnot, bit.bor, bit.lshift, bit.rshift
local cast, ffi_string, format = ffi.cast, ffi.string, string.format
local i64, u64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'

local kprintf = {}

--- Stands for data that the payload does not hold.
kprintf.BAD = '(bad)'
local BAD = kprintf.BAD

-- Distinct values one map remembers. Payloads choose them, so it is bounded: then it starts anew.
local CACHE_MAX = 4096
-- Above, a 64-bit integer may have no exact Lua number.
local EXACT = 2 ^ 53

--- Makes a function from integers to strings that computes each text once; text_of gets an uint64_t.
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
      key = tonumber(i64(v)) -- signed: kernel addresses are exact then
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

--- __print_flags: the names of the bits; what no name covers follows in hexadecimal.
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

--- A text in a column whose width the payload gives.
---@param text string
---@param width integer negative: left aligned
function kprintf.pad(text, width)
  local blanks = math.min(math.abs(width), 1024) - #text
  if blanks <= 0 then return text end
  return width < 0 and text .. (' '):rep(blanks) or (' '):rep(blanks) .. text
end

--- The first n characters; all of them for a negative n, as C has it.
---@param text string
---@param n integer
function kprintf.cut(text, n) return n < 0 and text or text:sub(1, n) end

--- Functions that give text of outside origin, and so need the caller's services.
---@param env PrintEnv
function kprintf.bind(env)
  local safe, symbol_at, string_at = env.safe, env.symbol, env.string
  local bound = {}

  --- Text of the format itself, where line breaks and tabs belong.
  function bound.literal(text) return (text:gsub('[^\n\t]+', safe)) end

  --- Texts of %c by byte.
  bound.chars = setmetatable({}, {
    __index = function(chars, byte)
      chars[byte] = safe(string.char(byte))
      return chars[byte]
    end,
  })

  --- A string in at most `length` bytes.
  function bound.fixed_string(raw, offset, length)
    local at = cast('const char *', raw + offset)
    return safe(ffi_string(at, libc.strnlen(at, length)))
  end

  --- The string that the word of a dynamic field tells; base is what its offset counts from.
  function bound.dynamic_string(raw, size, word, base)
    local offset, length = band(word, 0xffff) + base, rshift(word, 16)
    if offset + length > size then return BAD end
    local at = cast('const char *', raw + offset)
    return safe(ffi_string(at, libc.strnlen(at, length)))
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

--- Loads an element whose place the payload tells; outside of the payload there are zeros.
local function loader(ctype, bytes, zero)
  return function(raw, size, offset)
    if offset < 0 or offset + bytes > size then return zero end
    return cast(ctype, raw + offset)[0]
  end
end

-- By signedness and bytes. Not const: string.format takes no `const int64_t`.
local TYPES = {}
for bytes = 0, 3 do
  local size = 2 ^ bytes
  for sign, name in pairs { i = 'int%d_t *', u = 'uint%d_t *' } do
    local ctype = ffi.typeof(name:format(8 * size))
    TYPES[sign .. size] = ctype
    kprintf['load_' .. sign .. size] = loader(ctype, size, size < 8 and 0 or sign == 'i' and 0LL or 0ULL)
  end
end
kprintf.TYPES = TYPES

local scratch = new_buffer()

--- count bytes of the `room` that are there, two digits each.
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
  local ctype = TYPES['u' .. elem_size]
  if not ctype then return BAD end
  local elements = cast(ctype, raw + offset)
  scratch:reset()
  for i = 0, math.min(count, math.floor(room / elem_size)) - 1 do
    scratch:putf(i > 0 and ' %u' or '%u', elements[i])
  end
  return scratch:get()
end

--- A bit mask as the kernel's %*pb: the highest word first, a comma every 32 bits.
function kprintf.bitmask(raw, offset, room)
  scratch:reset()
  for i = room - 1, 0, -1 do
    scratch:putf(i % 4 == 0 and i > 0 and '%02x,' or '%02x', raw[offset + i])
  end
  return scratch:get()
end

--- A bit mask as the kernel's %*pbl: "0,2-5".
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

--- The longest run of at least two zero words among the first n; from is n without one.
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
  local words = cast(TYPES.u4, raw + offset)
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
  local family = room >= 2 and cast(TYPES.u2, raw + offset)[0]
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
