-- SPDX-License-Identifier: GPL-2.0-only
-- Methods of the code generator (codegen.lua): fields, pointers into the payload, and strings. Every computed address
-- is checked against its bounds before it is read.

local has = require('bindings.view.views').has
local value_of = require 'bindings.expr.value'

local TYPES = require('bindings.expr.types').INTEGERS
local NONE, COMPARE, ADD, MUL = value_of.NONE, value_of.COMPARE, value_of.ADD, value_of.MUL
local UNARY, ATOM, merge, num = value_of.UNARY, value_of.ATOM, value_of.merge, value_of.num
local constant, load, bool = value_of.constant, value_of.load, value_of.bool
local str, literal, operand, norm = value_of.str, value_of.literal, value_of.operand, value_of.norm
local retyped = value_of.retyped

local memory = {}

local KEYWORDS = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
    return then true until while]]):gmatch('%S+') do
  KEYWORDS[word] = true
end

local function element_type(field)
  local kind = (has(field, 'SIGNED') and 'i' or 'u') .. field.elem_size * 8
  return TYPES[kind] and kind or nil
end

local function member(name)
  return KEYWORDS[name] and ("p['%s']"):format(name) or 'p.' .. name:gsub('%.', '__')
end

-- Returns offset and length of a dynamic field, decoded from its 32-bit word.
function memory.dynamic(_, name, field)
  local word = member(name)
  local base = has(field, 'RELATIVE') and field.offset + field.size or 0
  local off = ('band(%s, 65535)'):format(word)
  if base > 0 then off = ('%s + %d'):format(off, base) end
  off = num('i64', off, base > 0 and ADD or ATOM, base, base + 65535)
  return off, num('i64', ('rshift(%s, 16)'):format(word), ATOM, 0, 65535)
end

function memory:element(pointer, column)
  local limits = TYPES[pointer.elem or '']
  if not limits then
    self:fail(column, ("'%s' has elements of %d bytes, which are not numbers"):format(pointer.name, pointer.elem_size))
  end
  return limits
end

-- Moves the pointer by a number of elements.
function memory:offset(pointer, index, sign, column)
  if pointer.kind ~= 'ptr' then self:fail(column, 'only arrays have elements') end
  local size = self:element(pointer, column).size
  index = norm(self:integer(index, column))
  if index.kind == 'wide' then
    -- Beyond 2^53 it is not exact, but then it is outside any record.
    index = num('i64', ('tonumber(%s)'):format(index.code), ATOM, -2 ^ 63, 2 ^ 64, index)
  end
  local off = pointer.off
  local step = size == 1 and index
    or num('i64', ('%s * %d'):format(operand(index, MUL), size), MUL, index.lo * size, index.hi * size, index)
  local lo, hi = off.lo + step.lo, off.hi + step.hi
  if sign == '-' then lo, hi = off.lo - step.hi, off.hi - step.lo end
  local moved = retyped(pointer, pointer.type)
  moved.off = num('i64', ('%s %s %s'):format(operand(off, ADD), sign, operand(step, MUL)), ADD, lo, hi, off, step)
  moved.moved = true
  return moved
end

-- Reads the element at a pointer after checking the bounds.
function memory:deref(pointer, column)
  if pointer.kind ~= 'ptr' then
    self:fail(column, pointer.kind == 'str' and 'the characters of this string cannot be read'
      or "the record does not contain the traced system's memory")
  end
  local limits = self:element(pointer, column)
  local off, base, limit = pointer.off, pointer.base, pointer.limit
  if limit.lo == limit.hi and off.lo == off.hi then
    if off.lo < base.lo or off.lo + limits.size > limit.lo then
      local index = (off.lo - base.lo) / limits.size
      self:fail(column, ("index %d is out of bounds: '%s' has %d elements"):format(index, pointer.name,
        (limit.lo - base.lo) / limits.size))
    end
  elseif off.lo < base.hi or off.hi + limits.size > limit.lo then
    off = self:spill(off, column)
    local below = off.lo < base.hi and ('%s < %s or '):format(off.code, base.code) or ''
    self:check(('%s%s > %s'):format(below, off.lo == off.hi and ('%.0f'):format(off.lo + limits.size)
      or ('%s + %d'):format(off.code, limits.size), limit.code))
  end
  local code = ('cast(p%s, raw + %s)[0]'):format(pointer.elem, operand(off, MUL))
  local from = { depth = off.depth, temps = merge(off.temps, pointer.temps) }
  return load(pointer.elem, code, ATOM, from)
end

function memory:field(name, field, column)
  self.used[name] = true
  local pointer = {
    kind = 'ptr', depth = 0, temps = NONE, name = name, elem = element_type(field), elem_size = field.elem_size,
  }
  if has(field, 'DYNAMIC') then
    local off, length = self:dynamic(name, field)
    off, length = self:spill(off, column), self:spill(length, column)
    self:check(('%s + %s > size'):format(off.code, length.code))
    pointer.limit = num('i64', ('%s + %s'):format(off.code, length.code), ADD, 0, 2 ^ 18)
    pointer.temps = merge(off.temps, length.temps)
    off.temps = NONE
    pointer.off, pointer.base = off, off
    return pointer
  end
  if has(field, 'STRING') or has(field, 'ARRAY') then
    pointer.off = constant('i64', field.offset)
    pointer.base = pointer.off
    pointer.limit = constant('i64', field.offset + field.size)
    return pointer
  end
  local kind = (has(field, 'SIGNED') and not has(field, 'POINTER') and 'i' or 'u') .. field.size * 8
  if not TYPES[kind] then
    self:fail(column, ("field '%s' is %d bytes wide and not a number"):format(name, field.size))
  end
  return load(kind, member(name), ATOM)
end

function memory:address(node)
  local a = node.a
  if a.op == 'deref' then
    local pointer = self:expression(a.a)
    if pointer.kind ~= 'ptr' then self:fail(node.column, "'&' requires a field of the event") end
    return pointer
  end
  if a.op == 'index' then
    return self:offset(self:expression(a.a), self:expression(a.b), '+', a.b.column)
  end
  local field = a.op == 'var' and not self.variables[a.name] and self.fields[a.name]
  if not field then self:fail(node.column, "'&' requires a field of the event") end
  if has(field, 'ARRAY') or has(field, 'DYNAMIC') then return self:expression(a) end
  self.used[a.name] = true
  return {
    kind = 'ptr', depth = 0, temps = NONE, name = a.name, elem_size = field.size, moved = true,
    elem = element_type { flags = field.flags, elem_size = field.size },
    off = constant('i64', field.offset), base = constant('i64', 0),
    limit = num('i64', 'size', ATOM, 0, 2 ^ 32),
  }
end

-- Returns the code of a string's address and room, and the operand that they come from.
function memory:bytes(value, column)
  if value.kind == 'str' then
    value = self:spill(value, column)
    return ('bytes(%s)'):format(value.code), '#' .. value.code, value
  end
  if value.kind ~= 'ptr' or not TYPES[value.elem or ''] or TYPES[value.elem].size ~= 1 then
    self:fail(column, 'a number is not a string')
  end
  local off, limit = value.off, value.limit
  if value.moved then
    off = self:spill(off, column)
    self:check(('%s < %s or %s > %s'):format(off.code, value.base.code, off.code, limit.code))
  end
  local code = ('%s - %s'):format(operand(limit, ADD), operand(off, MUL))
  local room = num('i64', code, ADD, limit.lo - off.hi, limit.hi - off.lo)
  return 'raw + ' .. operand(off, MUL), room.code, { depth = off.depth, temps = merge(off.temps, value.temps) }
end

-- Converts the value to a Lua string.
function memory:string(value, column)
  if value.kind == 'str' then return value end
  local address, room, from = self:bytes(value, column)
  return str(('tostr(%s, %s)'):format(address, room), from)
end

function memory:compare_strings(sign, a, b, node)
  if sign ~= '==' and sign ~= '!=' then
    self:fail(node.column, ("strings can be compared with == != ~, not with '%s'"):format(sign))
  end
  if a.kind == 'str' then a, b = b, a end
  local value
  if a.kind == 'str' then
    value = bool(('%s == %s'):format(a.code, b.code), COMPARE, a, b)
  elseif b.literal then
    local address, room, from = self:bytes(a, node.column)
    value = bool(('same(%s, %s, %s, %d)'):format(address, room, b.code, #b.literal), ATOM, from)
  else
    local left, left_room, from_a = self:bytes(a, node.a.column)
    local right, right_room, from_b = self:bytes(b, node.b.column)
    value = bool(('equal(%s, %s, %s, %s)'):format(left, left_room, right, right_room), ATOM, from_a, from_b)
  end
  return sign == '==' and value or bool('not ' .. operand(value, UNARY), UNARY, value)
end

-- Converts a glob to fnmatch(3)'s syntax. In the kernel's globs, only '!' negates a class, and a backslash in a class
-- is literal.
function memory.fnmatch_pattern(pattern, kernel)
  if not kernel then return pattern end
  return (pattern:gsub('%[(!?)(%]?[^%]]*)%]', function(negate, class)
    return '[' .. negate .. class:gsub('[%^%[\\]', '\\%0') .. ']'
  end))
end

-- A glob that is not known before it is evaluated, such as another field.
function memory:glob_of(value, pattern, column)
  local address, room, from = self:bytes(value, column)
  pattern = self:string(pattern, column)
  return bool(('glob(%s, %s, %s)'):format(address, room, pattern.code), ATOM, from, pattern)
end

-- Generates a glob match: a comparison of the start or end or a substring search if that is sufficient, otherwise a
-- call of fnmatch(3).
function memory:glob(value, pattern, kernel, column)
  local function special(text) return text:find('[*?%[\\]') end
  local address, room, from = self:bytes(value, column)
  local middle = pattern:match('^%*(.-)%*?$')
  local call
  if not special(pattern) then
    call = { 'same', pattern }
  elseif pattern:find('^%*+$') then
    call = { 'contains', '' }
  elseif pattern:find('%*$') and not special(pattern:sub(1, -2)) then
    call = { 'starts', pattern:sub(1, -2) }
  elseif middle and not special(middle) then
    call = { pattern:find('%*$') and 'contains' or 'ends', middle }
  else
    call = { 'glob', memory.fnmatch_pattern(pattern, kernel) }
  end
  return bool(('%s(%s, %s, %s, %d)'):format(call[1], address, room, literal(call[2]).code, #call[2]), ATOM, from)
end

return memory
