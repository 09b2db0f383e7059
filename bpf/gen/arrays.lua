-- SPDX-License-Identifier: GPL-2.0-only
--- Methods of the compiler (compile.lua): arrays and dynamic fields. A 'ptr' value has
---   name       of the field
---   elem       type of its elements; nil if they are not numbers
---   elem_size  bytes
---   field      for a fixed field, whose offsets count from its start; nil for a dynamic field, whose offsets count
---              from the start of the record
---   off, base, limit   the current offset, and those of the field's first byte and its end: numbers, or
---              { slot = place on the stack }
---   moved      off may be out of bounds
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local types = require 'bindings.expr.types'
local has = require('bindings.view.views').has

local TYPES, FRAME = types.INTEGERS, asm.FRAME
local MAX_INDEX = 2 ^ 31 - 1

local memory = {}

local function element_type(field)
  local kind = (has(field, 'SIGNED') and 'i' or 'u') .. field.elem_size * 8
  return TYPES[kind] and kind or nil
end

--- Returns the size of the next aligned piece of bytes at..stop-1.
---@param at integer offset from a multiple of 8
---@return integer 1, 2, 4 or 8
function memory.piece(at, stop)
  local size = 8
  while at % size ~= 0 or at + size > stop do size = size / 2 end
  return size
end

--- Loads a number that is not aligned, piece by piece. Uses r5.
function memory:gather(to, field, at, size)
  if ffi.abi 'be' then asm.refuse("'%s' is not aligned", field.name) end
  local a, done = self.a, 0
  while done < size do
    local piece = memory.piece(field.offset + at + done, field.offset + at + size)
    self.source:load(a, piece, done == 0 and to or 5, field, at + done)
    if done > 0 then
      a:alu('lsh', 5, done * 8)
      a:alu_r('or', to, 5)
    end
    done = done + piece
  end
end

--- Keeps r0 on the stack until the pointer is dropped.
function memory:keep()
  local slot = self.a:take(8)
  self.a:store(8, FRAME, slot, 0)
  return { slot = slot }
end

--- Puts an offset into a register.
function memory:offset(register, off)
  if type(off) == 'table' then
    self.a:load(8, register, FRAME, off.slot)
  else
    self.a:value(register, off)
  end
end

-- Puts a dynamic field's offset and length into r0 and r1.
function memory:dynamic(field)
  local a = self.a
  self.source:load(a, 4, 0, field, 0)
  a:alu_r('mov', 1, 0)
  a:alu('rsh', 1, 16)
  a:alu('and', 0, 0xffff)
  if has(field, 'RELATIVE') then a:alu('add', 0, field.offset + field.size) end
end

--- Returns the value of name_offset or name_len.
function memory:dynamic_part(field, part)
  if not has(field, 'DYNAMIC') then asm.refuse("no variable '%s_%s'", field.name, part) end
  self:dynamic(field)
  if part == 'len' then self.a:alu_r('mov', 0, 1) end
  return { kind = 'num', type = 'i32', upper = 'both' }
end

--- Returns the value of an array or a string.
function memory:array(name, field)
  local pointer = {
    kind = 'ptr', name = name, elem = element_type(field), elem_size = field.elem_size,
    field = field, off = 0, base = 0, limit = field.size,
  }
  if not has(field, 'DYNAMIC') then return pointer end
  local a = self.a
  self:dynamic(field)
  pointer.field = nil
  pointer.off = self:keep()
  a:alu_r('add', 0, 1)
  pointer.base, pointer.limit = pointer.off, self:keep()
  if self.source.size then
    self.source:size(a, 1)
    a:jump_r('>', 0, 1, self.labels.none)
  end
  return pointer
end

--- Returns the address of a node.
function memory:address(node)
  local operand = node.a
  if operand.op == 'deref' then return self:expression(operand.a) end
  if operand.op == 'index' then return self:move(self:expression(operand.a), operand.b, '+') end
  local field = operand.op == 'var' and self.fields[operand.name]
  if not field or has(field, 'ARRAY') or has(field, 'DYNAMIC') then return self:expression(operand) end
  return {
    kind = 'ptr', name = operand.name, elem = element_type { flags = field.flags, elem_size = field.size },
    elem_size = field.size, field = field, off = 0, base = 0, limit = field.size, is_alone = true,
  }
end

--- Casts a pointer or a string to a pointer to elements of a type.
function memory:cast_pointer(value, elem) -- luacheck: no self
  if value.kind == 'str' then return value end
  local cast = {}
  for key, member in pairs(value) do cast[key] = member end
  cast.elem, cast.elem_size = elem, TYPES[elem].size
  return cast
end

--- Moves a pointer by a number of elements.
function memory:move(pointer, index, sign)
  if pointer.kind ~= 'ptr' or not pointer.elem then asm.refuse('only arrays of numbers have elements') end
  if pointer.is_alone then asm.refuse("'%s' is not an array", pointer.name) end
  local a, size = self.a, pointer.elem_size
  local moved = self:cast_pointer(pointer, pointer.elem)
  moved.moved = true
  local value = self:integer(self:expression(index))
  if value.constant then
    local n = tonumber(value.constant)
    if value.type == 'u64' and n < 0 or math.abs(n) > MAX_INDEX then asm.refuse('the index is too large') end
    n = sign == '-' and -n * size or n * size
    if type(pointer.off) == 'number' then
      moved.off = pointer.off + n
      return moved
    end
    a:value(0, n)
  else
    self:settle(value)
    if value.type == 'u64' then
      a:jump('>', 0, MAX_INDEX, self.labels.none)
    elseif value.type == 'i64' then
      a:jump('s>', 0, MAX_INDEX, self.labels.none)
      a:jump('s<', 0, -MAX_INDEX, self.labels.none)
    end
    if size > 1 then a:alu('mul', 0, size) end
    if sign == '-' then a:alu('neg', 0, 0) end
  end
  self:offset(1, pointer.off)
  a:alu_r('add', 0, 1)
  moved.off = self:keep()
  return moved
end

--- Generates a jump to labels.none unless the next `size` bytes are within the field.
function memory:check_bounds(pointer, size)
  local a, none = self.a, self.labels.none
  self:offset(0, pointer.off)
  self:offset(1, pointer.base)
  a:jump_r('s<', 0, 1, none)
  self:offset(1, pointer.limit)
  if size > 0 then a:alu('add', 0, size) end
  a:jump_r('s>', 0, 1, none)
end

--- Copies bytes from a pointer to the stack. Their number is a constant, or in r2.
function memory:copy(slot, pointer, size)
  local a = self.a
  self.source:address(a, 3, pointer.field)
  self:offset(4, pointer.off)
  a:alu_r('add', 3, 4)
  a:address(1, FRAME, slot)
  if size then a:alu('mov', 2, size) end
  a:call 'probe_read_kernel'
end

--- Gives back the places of a pointer that is not used any more.
function memory:drop(pointer)
  local given = {}
  for _, off in ipairs { pointer.off, pointer.base, pointer.limit } do
    if type(off) == 'table' and not given[off] then
      given[off] = true
      self.a:give(off.slot, 8)
    end
  end
end

--- Returns the value of the element at a pointer.
function memory:read(pointer)
  if pointer.kind ~= 'ptr' or not pointer.elem then asm.refuse('only arrays of numbers have elements') end
  local a, size, field, off = self.a, TYPES[pointer.elem].size, pointer.field, pointer.off
  if field and type(off) == 'number' then
    if off < 0 or off + size > pointer.limit then asm.refuse("a read outside of '%s'", pointer.name) end
    self:gather(0, field, off, size)
    return self:loaded(pointer.elem, 0)
  end
  self:check_bounds(pointer, size)
  local slot = a:take(8)
  self:copy(slot, pointer, size)
  a:load(size, 0, FRAME, slot)
  a:give(slot, 8)
  self:drop(pointer)
  return self:loaded(pointer.elem, 0)
end

return memory
