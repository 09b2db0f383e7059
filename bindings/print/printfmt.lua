-- SPDX-License-Identifier: GPL-2.0-only
--- Compiles the print formats of tracepoints: from the text after "print fmt:" to a Lua function that appends the
--- formatted fields to a string.buffer.
---
--- The output is the same as libtraceevent's, except where libtraceevent deviates from C: it reads narrow fields as
--- unsigned, parses a-b-c as a-(b-c), and does not print %c.
local c = require 'bindings.print.printfmt_value'
local codegen = require 'bindings.print.printfmt_codegen'
local kprintf = require 'bindings.print.kprintf'
local parse = require 'bindings.expr.parse'

local convert, give_up = c.convert, c.give_up

local printfmt = {}

---@class PrintEnv services of the caller
---@field safe fun(s: string): string escapes an untrusted string
---@field symbol? fun(address: ffi.cdata*, with_offset: boolean): string? the kernel symbol at a uint64_t
---@field string? fun(address: ffi.cdata*): string? the printk string at a uint64_t

---@alias FieldsPrinter fun(buf: string.buffer, raw: ffi.cdata*, size: integer): boolean

local TEXT_MAX = 65536
local WIDTH_MAX = 99 -- the limit of LuaJIT's string.format

-- Bits of an integer argument, by its length modifier.
local LENGTHS = { hh = 8, h = 16, [''] = 32, l = 64, ll = 64, L = 64, q = 64, z = 64, Z = 64, t = 64, j = 64 }

---@class Conversion of a format string, "%-08.3lx"
---@field flags string
---@field width string digits, '*' or ''
---@field precision string '.digits', '.*' or ''
---@field length string
---@field kind string the conversion character

--- Returns the code of an integer argument, converted to the type of the conversion.
local function integer(conv, n)
  local bits = LENGTHS[conv.length] or give_up("length '%s'", conv.length)
  if bits == 64 then return c.number(n).code end
  return convert(n, ((conv.kind == 'd' or conv.kind == 'i') and 'i' or 'u') .. bits).code
end

--- %ph, %phC, %phD, %phN: a hex dump. The width is the number of bytes.
local function dump(t, conv, n, extension)
  local count = conv.star and conv.star.code or tonumber(conv.width) or 1
  local delim = ({ C = ':', D = '-', N = '' })[extension:sub(2, 2)] or ' '
  conv.width, conv.star = '', nil
  return t:at_room('hex', n, tostring(count), ('%q'):format(delim))
end

local function ip_address(t, n, extension)
  local zeros, kind, rest = extension:match '^([Ii])(.)(.*)$'
  zeros = zeros == 'i' and 'true' or 'false'
  if kind == '4' then return t:at_bytes('ipv4', n, '4', zeros, tostring(rest:find '[hl]' ~= nil)) end
  if kind == 'S' then
    return t:at_room('sockaddr', n, tostring(rest:find 'c' ~= nil), tostring(rest:find 'p' ~= nil), zeros)
  end
  if rest == 'c' then return t:at_bytes('ipv6_short', n, '16') end
  return t:at_bytes('ipv6', n, '16', zeros == 'false' and 'true' or 'false')
end

local function mac(t, n, extension)
  local delim = extension:sub(1, 1) == 'm' and "''" or extension:find 'F' and "'-'" or "':'"
  return t:at_bytes('mac', n, '6', delim, tostring(extension:find 'R' ~= nil))
end

--- The extensions of %p and the functions that generate their code: (translator, conversion, argument, extension).
local POINTERS = {
  { '^[SFB][Rb]?', function(t, _, n) return ('%s(%s)'):format(t:helper 'symbol_offset', convert(n, 'u64').code) end },
  { '^[sf]', function(t, _, n) return ('%s(%s)'):format(t:helper 'symbol', convert(n, 'u64').code) end },
  { '^[Ii]4[hnbl]?', function(t, _, n, extension) return ip_address(t, n, extension) end },
  { '^I6c?', function(t, _, n, extension) return ip_address(t, n, extension) end },
  { '^i6', function(t, _, n, extension) return ip_address(t, n, extension) end },
  { '^[Ii]S[pfsc]*[hnbl]?', function(t, _, n, extension) return ip_address(t, n, extension) end },
  { '^[Mm][RF]?', function(t, _, n, extension) return mac(t, n, extension) end },
  { '^U[bBlL]?', function(t, _, n, extension)
    local guid, upper = extension:find '[lL]' ~= nil, extension:find '[BL]' ~= nil
    return t:at_bytes('uuid', n, '16', tostring(guid), tostring(upper))
  end },
  { '^h[CDN]?', dump },
  { '^bl?', function(t, conv, n, extension)
    -- The width is the number of bits. It is ignored: the whole field is printed.
    conv.width, conv.star = '', nil
    return t:at_room(extension == 'bl' and 'bitlist' or 'bitmask', n)
  end },
  { '^K?', function(t, conv, n)
    conv.width = ''
    return ('%s(%s)'):format(t:helper 'pointer', convert(n, 'u64').code)
  end },
}

--- Translates %p. rest is the format after the p. Returns the code of the text and the length of the extension.
local function pointer(t, conv, n, rest)
  for _, entry in ipairs(POINTERS) do
    local extension = rest:match(entry[1])
    if extension and not rest:find('^%w', #extension + 1) and not rest:find '^fw' then
      return entry[2](t, conv, n, extension), #extension
    end
  end
  give_up('%%p%s', rest:match '^%w*')
end

--- Returns the conversion for string.format, the argument's code, and the length of %p's extension.
local function convert_argument(t, conv, n, rest)
  local taken, spec = 0, 's'
  local code
  if conv.kind == 'p' then
    code, taken = pointer(t, conv, n, rest)
    conv.precision = ''
  elseif conv.kind == 's' then
    code = t:text(n)
    if conv.cut then
      code = ('%s(%s, %s)'):format(t:helper 'cut', code, conv.cut.code)
      conv.precision = ''
    end
  elseif conv.kind == 'c' then
    code = ('%s[%s]'):format(t:helper 'chars', convert(n, 'u8').code)
    conv.precision = ''
  else
    code, spec = integer(conv, n), conv.kind == 'i' and 'd' or conv.kind
    if conv.cut then give_up 'a precision from an argument' end
  end
  local flags = spec == 's' and conv.flags:gsub('[^-]', '') or conv.flags
  if conv.star then
    if spec ~= 's' then
      if flags:find '0' then give_up 'a width with zeros from an argument' end
      code = ('format(%q, %s)'):format('%' .. flags:gsub('-', '') .. conv.precision .. spec, code)
    end
    code = ('%s(%s, %s%s)'):format(t:helper 'pad', code, flags:find '-' and '-' or '', conv.star.code)
    return '%s', code, taken
  end
  return '%' .. flags .. conv.width .. conv.precision .. spec, code, taken
end

local function is_width(text) return text == '' or text == '*' or (tonumber(text) or WIDTH_MAX + 1) <= WIDTH_MAX end

--- Returns the format for string.format, and the code of its arguments.
local function format_code(t, format, args)
  local parts, codes, at, used = {}, {}, 1, 0
  local function next_argument()
    used = used + 1
    return args[used] or give_up 'fewer arguments than conversions'
  end
  while at <= #format do
    local literal = format:match('^[^%%]+', at)
    if literal or format:sub(at, at + 1) == '%%' then
      parts[#parts + 1] = literal or '%%'
      at = at + #parts[#parts]
    else
      local head, flags, width, precision, length, kind =
        format:match('^(%%([-+ 0#]*)([%d*]*)(%.?[%d*]*)([hlLqzZtj]*)([diuxXocsp]))', at)
      if not head then give_up("conversion '%s'", format:sub(at, at + 3)) end
      if not is_width(width) or not is_width(precision:sub(2)) then give_up("the width in '%s'", head) end
      local conv = { flags = flags, width = width, precision = precision, length = length, kind = kind }
      conv.star = width == '*' and convert(next_argument(), 'i32') or nil
      conv.cut = precision == '.*' and convert(next_argument(), 'i32') or nil
      local spec, code, taken = convert_argument(t, conv, next_argument(), format:sub(at + #head))
      parts[#parts + 1] = spec
      codes[#codes + 1] = code
      at = at + #head + taken
    end
  end
  return table.concat(parts), codes
end

local PRELUDE = [[
local bit, ffi, values = ...
local band, bor, bxor, bnot, tobit = bit.band, bit.bor, bit.bxor, bit.bnot, bit.tobit
local lshift, rshift, arshift = bit.lshift, bit.rshift, bit.arshift
local cast, i64, u64 = ffi.cast, ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local format, tonumber = string.format, tonumber
]]

local function generate(tp, env)
  if #tp.print_fmt > TEXT_MAX then give_up 'too long a format' end
  local nodes = parse.print_format(tp.print_fmt, codegen.TYPES)
  local t = codegen.new(tp.fields, kprintf.bind(env))
  local text, args = t:literal(nodes[1]), {}
  for i = 2, #nodes do
    args[i - 1] = t:expression(nodes[i])
  end
  local format, codes = format_code(t, text, args)
  local lines = { PRELUDE }
  for i, value in ipairs(t.values) do
    lines[#lines + 1] = ('local %s = values[%d]\n'):format(t.names[value], i)
  end
  lines[#lines + 1] = ('return function(buf, raw, size)\n  if size < %d then return false end\n'):format(t.need)
  table.insert(codes, 1, ('%q'):format(format))
  lines[#lines + 1] = ('  buf:putf(%s)\n  return true\nend\n'):format(table.concat(codes, ', '))
  return table.concat(lines), t.values
end

--- Compiles a tracepoint's print format. The function appends the text of a payload to buf and returns true. If the
--- payload is too short for the fields, it returns false and does not change buf. Returns nil and the reason if the
--- format contains an unsupported construct.
---@param tp { print_fmt: string, fields: table<string, Field> }
---@param env PrintEnv
---@return FieldsPrinter? printer
---@return string? reason
function printfmt.compile(tp, env)
  local ok, source, values = pcall(generate, tp, env)
  if not ok then
    if type(source) == 'table' then return nil, source.message end
    error(source, 0)
  end
  local chunk, message = loadstring(source, '=printfmt')
  if not chunk then return nil, message end -- too many values or nesting levels for a Lua function
  return chunk(require 'bit', require 'ffi', values)
end

return printfmt
