-- SPDX-License-Identifier: GPL-2.0-only
--- Compiler of tracepoints' print formats: from the text behind "print fmt:" to a Lua function
--- that appends the rendered fields to a string.buffer.
---
--- The texts are those of libtraceevent, except where it departs from C: it reads narrow fields
--- without their sign, takes a-b-c for a-(b-c), and does not print %c.
local c = require 'bindings.print.c_node'
local expr = require 'bindings.print.printfmt_expr'
local kprintf = require 'bindings.print.kprintf'

local convert, give_up = c.convert, c.give_up

local printfmt = {}

---@class PrintEnv services of the caller
---@field safe fun(s: string): string what is put out for a string of outside origin
---@field symbol? fun(address: ffi.cdata*, with_offset: boolean): string? kernel symbol at a uint64_t
---@field string? fun(address: ffi.cdata*): string? printk string at a uint64_t

---@alias FieldsPrinter fun(buf: string.buffer, raw: ffi.cdata*, size: integer): boolean

local TEXT_MAX = 65536
local WIDTH_MAX = 99 -- what LuaJIT's string.format takes

-- Bytes of an integer argument by its length modifier.
local LENGTHS = { hh = 1, h = 2, [''] = 4, l = 8, ll = 8, L = 8, q = 8, z = 8, Z = 8, t = 8, j = 8 }

---@class Conversion of a format string, "%-08.3lx"
---@field flags string
---@field width string digits, '*' or ''
---@field precision string '.digits', '.*' or ''
---@field length string
---@field kind string the conversion character

--- An integer argument as the conversion reads it.
local function integer(conv, n)
  local bytes = LENGTHS[conv.length] or give_up("length '%s'", conv.length)
  local signed = conv.kind == 'd' or conv.kind == 'i'
  if bytes == 8 then return c.number(n).code end
  if bytes == 4 then return convert(n, signed and 'i' or 'u').code end
  return c.narrow(n, bytes, signed).code
end

--- %ph, %phC, %phD, %phN: a dump of as many bytes as the width says.
local function dump(p, conv, n, extension)
  local count = conv.star and conv.star.code or tonumber(conv.width) or 1
  local delim = ({ C = ':', D = '-', N = '' })[extension:sub(2, 2)] or ' '
  conv.width, conv.star = '', nil
  return p:at_room('hex', n, tostring(count), ('%q'):format(delim))
end

local function ip_address(p, n, extension)
  local zeros, kind, rest = extension:match '^([Ii])(.)(.*)$'
  zeros = zeros == 'i' and 'true' or 'false'
  if kind == '4' then return p:at_bytes('ipv4', n, '4', zeros, tostring(rest:find '[hl]' ~= nil)) end
  if kind == 'S' then
    return p:at_room('sockaddr', n, tostring(rest:find 'c' ~= nil), tostring(rest:find 'p' ~= nil), zeros)
  end
  if rest == 'c' then return p:at_bytes('ipv6_short', n, '16') end
  return p:at_bytes('ipv6', n, '16', zeros == 'false' and 'true' or 'false')
end

local function mac(p, n, extension)
  local delim = extension:sub(1, 1) == 'm' and "''" or extension:find 'F' and "'-'" or "':'"
  return p:at_bytes('mac', n, '6', delim, tostring(extension:find 'R' ~= nil))
end

--- What may follow %p, and how its text is made: (parser, conversion, argument, extension).
local POINTERS = {
  { '^[SFB][Rb]?', function(p, _, n) return ('%s(%s)'):format(p:helper 'symbol_offset', convert(n, 'U').code) end },
  { '^[sf]', function(p, _, n) return ('%s(%s)'):format(p:helper 'symbol', convert(n, 'U').code) end },
  { '^[Ii]4[hnbl]?', function(p, _, n, extension) return ip_address(p, n, extension) end },
  { '^I6c?', function(p, _, n, extension) return ip_address(p, n, extension) end },
  { '^i6', function(p, _, n, extension) return ip_address(p, n, extension) end },
  { '^[Ii]S[pfsc]*[hnbl]?', function(p, _, n, extension) return ip_address(p, n, extension) end },
  { '^[Mm][RF]?', function(p, _, n, extension) return mac(p, n, extension) end },
  { '^U[bBlL]?', function(p, _, n, extension)
    local guid, upper = extension:find '[lL]' ~= nil, extension:find '[BL]' ~= nil
    return p:at_bytes('uuid', n, '16', tostring(guid), tostring(upper))
  end },
  { '^h[CDN]?', dump },
  { '^bl?', function(p, conv, n, extension)
    -- The width tells the bits; a mask is printed as long as its field is.
    conv.width, conv.star = '', nil
    return p:at_room(extension == 'bl' and 'bitlist' or 'bitmask', n)
  end },
  { '^K?', function(p, conv, n)
    conv.width = ''
    return ('%s(%s)'):format(p:helper 'pointer', convert(n, 'U').code)
  end },
}

--- %p: the rest of the format begins behind the p. Returns the text's code and how much it took.
local function pointer(p, conv, n, rest)
  for _, entry in ipairs(POINTERS) do
    local extension = rest:match(entry[1])
    if extension and not rest:find('^%w', #extension + 1) and not rest:find '^fw' then
      return entry[2](p, conv, n, extension), #extension
    end
  end
  give_up('%%p%s', rest:match '^%w*')
end

--- The argument's code and the format for it, which is of string.format's kind.
local function convert_argument(p, conv, n, rest)
  local taken, spec = 0, 's'
  local code
  if conv.kind == 'p' then
    code, taken = pointer(p, conv, n, rest)
    conv.precision = ''
  elseif conv.kind == 's' then
    code = p:text(n)
    if conv.cut then
      code = ('%s(%s, %s)'):format(p:helper 'cut', code, conv.cut.code)
      conv.precision = ''
    end
  elseif conv.kind == 'c' then
    code = ('%s[%s]'):format(p:helper 'chars', c.narrow(n, 1, false).code)
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
    code = ('%s(%s, %s%s)'):format(p:helper 'pad', code, flags:find '-' and '-' or '', conv.star.code)
    return '%s', code, taken
  end
  return '%' .. flags .. conv.width .. conv.precision .. spec, code, taken
end

local function is_width(text) return text == '' or text == '*' or (tonumber(text) or WIDTH_MAX + 1) <= WIDTH_MAX end

--- Splits the format string; gives string.format's form of it and the code of its arguments.
local function format_code(p, format, args)
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
      conv.star = width == '*' and convert(next_argument(), 'i') or nil
      conv.cut = precision == '.*' and convert(next_argument(), 'i') or nil
      local spec, code, taken = convert_argument(p, conv, next_argument(), format:sub(at + #head))
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
  local p = expr.parser(tp.print_fmt, tp.fields, kprintf.bind(env))
  local text, args = p:strings(), {}
  while p:accept ',' do
    args[#args + 1] = p:expression()
  end
  if p:peek().kind ~= 'end' then give_up("'%s' behind the arguments", p:peek().text) end
  local format, codes = format_code(p, text, args)
  local lines = { PRELUDE }
  for i, value in ipairs(p.values) do
    lines[#lines + 1] = ('local %s = values[%d]\n'):format(p.names[value], i)
  end
  lines[#lines + 1] = ('return function(buf, raw, size)\n  if size < %d then return false end\n'):format(p.need)
  table.insert(codes, 1, ('%q'):format(format))
  lines[#lines + 1] = ('  buf:putf(%s)\n  return true\nend\n'):format(table.concat(codes, ', '))
  return table.concat(lines), p.values
end

--- Compiles a tracepoint's print format. The function appends the text of one payload to buf and
--- returns true; false, with buf as it was, for a payload that is shorter than its fields. Formats
--- with constructs that are not translated give nil and the reason.
---@param tp { print_fmt: string, fields: table<string, Field> }
---@param env PrintEnv
---@return FieldsPrinter? printer
---@return string? reason
function printfmt.compile(tp, env)
  local ok, source, values = pcall(generate, tp, env)
  if not ok then
    if type(source) == 'table' then return nil, source.reason end
    error(source, 0)
  end
  local chunk, message = loadstring(source, '=printfmt')
  if not chunk then return nil, message end -- too many values or levels for one Lua function
  return chunk(require 'bit', require 'ffi', values)
end

return printfmt
