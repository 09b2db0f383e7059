-- SPDX-License-Identifier: GPL-2.0-only
--- Compiles C expressions (the syntax trees of bindings/expr/parse.lua) to BPF instructions. The results are those of
--- the Lua code that bindings/expr/codegen.lua generates; tests/unit/bindings/kernel/compile_spec.lua compares them.
--- What BPF cannot do is refused with a reason.
---
--- The value of a subexpression is a table:
---   kind 'num'  an integer of C type `type`: `constant` (an int64_t), or in r0. `upper` tells what the upper half of
---               the register holds beside a type of up to 32 bits: 'sign' or 'zero': extended; 'both': extended and
---               not negative; nil: anything
---   kind 'ptr'  an array or string of the event, see memory.lua
---   kind 'str'  another string: `literal`, or the name of the task
--- r1 to r5 hold nothing beyond one operation. Values that must survive are kept in r7 to r9, then on the stack.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local codegen = require 'bindings.expr.codegen'
local memory = require 'bindings.kernel.memory'
local strings = require 'bindings.kernel.strings'
local types = require 'bindings.expr.types'
local has = require('bindings.view.views').has

local TYPES, FRAME = types.INTEGERS, asm.FRAME

local compile = {}

---@class KernelContext
---@field source Source
---@field registers? integer[] of r7 to r9, those that the program has not used; default: all

--- Where the code jumps to.
---@class KernelLabels
---@field none string the expression has no value, as after a division by zero
---@field undecided? string a string is too long to be compared in the kernel; nil: refuse such comparisons

---@class Compiler
---@field a Asm
---@field source Source
---@field fields table<string, Field>
---@field tree ExprTree
---@field labels KernelLabels
---@field free integer[] registers
---@field copies table<string, { type: string, slot: integer }> assigned variables
local Compiler = {}
Compiler.__index = Compiler
for _, methods in ipairs { memory, strings } do
  for name, method in pairs(methods) do Compiler[name] = method end
end

-- Constants and types -----------------------------------------------------------------------------

local CTYPES = {}
for name in pairs(TYPES) do
  CTYPES[name] = ffi.typeof((name:gsub('^i', 'int'):gsub('^u', 'uint') .. '_t'))
end
local int64 = ffi.typeof 'int64_t'

local function number(kind, upper) return { kind = 'num', type = kind, upper = upper } end

local function constant(kind, value)
  return { kind = 'num', type = kind, constant = int64(ffi.cast(CTYPES[kind], value)) }
end

-- Returns the constant as an operand of an instruction; nil if it does not fit.
local function immediate(value, kind)
  if not value.constant then return nil end
  if TYPES[kind].size == 4 then return tonumber(ffi.cast('int32_t', value.constant)) end
  local n = tonumber(value.constant)
  return asm.fits(n) and n or nil
end

local function is_wide(kind) return TYPES[kind].size == 8 end
local function is_signed(kind) return TYPES[kind].signed == true end

-- Promotes types below int to int.
local function promote(value)
  if TYPES[value.type].size >= 4 then return value end
  local upper = value.upper
  return { kind = 'num', type = 'i32', constant = value.constant, upper = upper }
end

--- Refuses what is not a number, and promotes it.
function Compiler:integer(value) -- luacheck: no self
  if value.kind ~= 'num' then asm.refuse('an array or a string is not a number') end
  return promote(value)
end

--- Converts a promoted value in a register, or a constant, to a type of at least 32 bits.
---@param register? integer default: r0
function Compiler:widen(value, kind, register)
  if value.constant then return constant(kind, value.constant) end
  local upper = value.upper
  if is_wide(kind) and not is_wide(value.type) then
    local wanted = is_signed(value.type) and 'sign' or 'zero'
    if upper ~= wanted and upper ~= 'both' then self.a:extend(register or 0, 32, wanted == 'sign') end
    upper = nil
  end
  if is_wide(value.type) then upper = nil end
  return number(kind, upper)
end

--- Puts a value into r0, extended to 64 bits according to its type.
function Compiler:settle(value)
  if value.constant then
    self.a:value(0, value.constant)
  elseif not is_wide(value.type) then
    local wanted = is_signed(value.type) and 'sign' or 'zero'
    if value.upper ~= wanted and value.upper ~= 'both' then self.a:extend(0, 32, wanted == 'sign') end
  end
  return number(value.type, not is_wide(value.type) and (is_signed(value.type) and 'sign' or 'zero') or nil)
end

--- Converts a value to any integer type.
function Compiler:convert(value, kind)
  value = promote(value)
  local limits = TYPES[kind]
  if limits.size >= 4 then return self:widen(value, kind) end
  if value.constant then return constant(kind, value.constant) end
  if limits.signed then
    self.a:extend(0, limits.size * 8, true)
  else
    self.a:alu('and', 0, limits.hi)
  end
  return number(kind, limits.signed and 'sign' or 'both')
end

-- Saving values -----------------------------------------------------------------------------------

--- Keeps r0 in a place that survives calls.
function Compiler:save()
  local register = table.remove(self.free)
  if register then
    self.a:alu_r('mov', register, 0)
    return { register = register }
  end
  local slot = self.a:take(8)
  self.a:store(8, FRAME, slot, 0)
  return { slot = slot }
end

--- Loads a saved value into r0 and releases its place.
function Compiler:restore(saved)
  if saved.register then
    self.a:alu_r('mov', 0, saved.register)
    self.free[#self.free + 1] = saved.register
  else
    self.a:load(8, 0, FRAME, saved.slot)
    self.a:give(saved.slot, 8)
  end
end

-- Variables ---------------------------------------------------------------------------------------

local SAMPLE = { _cpu = true, _pid = true, _tid = true, _time = true, _period = true, _comm = true }

--- Returns the type of a field that is a number.
local function type_of(field)
  local kind = (has(field, 'SIGNED') and not has(field, 'POINTER') and 'i' or 'u') .. field.size * 8
  return TYPES[kind] and kind or asm.refuse("'%s' has %d bytes and is not a number", field.name, field.size)
end

--- Returns the loaded value of a type.
function Compiler:loaded(kind, register)
  local limits = TYPES[kind]
  if limits.size >= 4 then return number(kind, limits.size == 4 and 'zero' or nil) end
  if limits.signed then self.a:extend(register, limits.size * 8, true) end
  return number(kind, limits.signed and 'sign' or 'both')
end

--- Returns a function that loads the number into a register without the use of another, and returns its value; nil for
--- all but constants, fields and assigned variables.
---@return nil|fun(register: integer): table
function Compiler:simple(node)
  if node.op ~= 'var' then return nil end
  local copy, field = self.copies[node.name], self.fields[node.name]
  if copy then
    return function(register)
      self.a:load(8, register, FRAME, copy.slot)
      return self:settled(copy.type)
    end
  end
  if not field or has(field, 'DYNAMIC') or has(field, 'ARRAY') or has(field, 'STRING')
    or SAMPLE[node.name] or field.offset % field.size ~= 0 then
    return nil
  end
  return function(register)
    self.source:load(self.a, field.size, register, field, 0)
    return self:loaded(type_of(field), register)
  end
end

--- Returns the value of a type that is extended to 64 bits.
function Compiler:settled(kind) -- luacheck: no self
  if is_wide(kind) then return number(kind) end
  return number(kind, is_signed(kind) and 'sign' or TYPES[kind].size == 4 and 'zero' or 'both')
end

function Compiler:variable(node)
  local name = node.name
  local load = self.copies[name] and self:simple(node)
  if load then return load(0) end
  if name == '_comm' then
    if not self.source.comm then asm.refuse("the kernel cannot tell '_comm' at the event") end
    return { kind = 'str', is_comm = true }
  elseif SAMPLE[name] then
    local kind, reason = self.source:variable(self.a, name)
    if not kind then asm.refuse('%s', reason) end
    return self:settled(kind)
  end
  local field = self.fields[name]
  if field then
    if has(field, 'DYNAMIC') or has(field, 'STRING') or has(field, 'ARRAY') then return self:array(name, field) end
    load = self:simple(node)
    if load then return load(0) end
    local kind = type_of(field)
    self:gather(0, field, 0, field.size)
    return self:loaded(kind, 0)
  end
  local stem, part = name:match '^(.*)_(%a+)$'
  if self.fields[stem] and (part == 'offset' or part == 'len') then
    return self:dynamic_part(self.fields[stem], part)
  end
  asm.refuse("no variable '%s'", name)
end

function Compiler:declare_assigned(assigned)
  for name in pairs(assigned) do
    local value = self:variable { op = 'var', name = name }
    if value.kind ~= 'num' then asm.refuse("'%s' cannot be assigned to", name) end
    local kind = value.type
    self:settle(value)
    self.copies[name] = { type = kind, slot = self.a:take(8) }
    self.a:store(8, FRAME, self.copies[name].slot, 0)
  end
end

function Compiler:assign(name, value)
  local copy = self.copies[name]
  self:settle(self:convert(self:integer(value), copy.type))
  self.a:store(8, FRAME, copy.slot, 0)
  return self:settled(copy.type)
end

-- Operators ---------------------------------------------------------------------------------------

--- Brings the operands of an operator to their common type: a into r0, b into r1 unless it is a constant that fits
--- into an instruction. a is promoted, and in r0 or a constant.
---@return string kind
---@return table b
---@return integer|nil value of a constant operand
function Compiler:operands(a, node_b)
  local load = self:simple(node_b)
  local b
  if load then
    b = load(1)
    if a.constant then self.a:value(0, a.constant) end
  else
    local saved = not a.constant and not self:is_constant(node_b) and self:save()
    b = self:integer(self:expression(node_b))
    if not b.constant then
      b = self:widen(b, types.common(a, b))
      self.a:alu_r('mov', 1, 0)
    end
    if saved then self:restore(saved) end
    if a.constant then self.a:value(0, a.constant) end
  end
  b = promote(b)
  local kind = types.common(a, b)
  self:widen({ kind = 'num', type = a.type, upper = a.constant and self:settled(a.type).upper or a.upper }, kind, 0)
  b = self:widen(b, kind, 1)
  local value = immediate(b, kind)
  if b.constant and not value then self.a:value(1, b.constant) end
  return kind, b, value
end

--- Returns whether a tree is a constant, for which no code is generated.
function Compiler:is_constant(node)
  if node.op == 'num' then return true end
  if node.op == 'cast' then return node.pointer == 0 and self:is_constant(node.a) end
  return node.op == 'unary' and node.sign ~= '!' and self:is_constant(node.a)
end

local SIMPLE = { ['+'] = 'add', ['-'] = 'sub', ['*'] = 'mul', ['&'] = 'and', ['|'] = 'or', ['^'] = 'xor' }

--- Generates r0 = r0 OP (r1 or a constant).
function Compiler:operate(op, kind, value)
  local method = is_wide(kind) and 'alu' or 'alu32'
  if value then self.a[method](self.a, op, 0, value) else self.a[method .. '_r'](self.a, op, 0, 1) end
  return number(kind, not is_wide(kind) and 'zero' or nil)
end

--- Generates a division of signed numbers, which BPF lacks: divides without signs.
function Compiler:signed_division(sign, kind, value)
  local a = self.a
  if value then
    a:value(1, value)
  end
  if not is_wide(kind) then
    a:extend(0, 32, true)
    if not value then a:extend(1, 32, true) end
  end
  local positive, divisor, done = a:new_label(), a:new_label(), a:new_label()
  a:alu_r('mov', 2, 0)
  if sign == '/' then a:alu_r('xor', 2, 1) end -- the sign of the result
  a:jump('s>=', 0, 0, positive)
  a:alu('neg', 0, 0)
  a:label(positive)
  a:jump('s>=', 1, 0, divisor)
  a:alu('neg', 1, 0)
  a:label(divisor)
  a:alu_r(sign == '/' and 'div' or 'mod', 0, 1)
  a:jump('s>=', 2, 0, done)
  a:alu('neg', 0, 0)
  a:label(done)
  return number(kind)
end

function Compiler:division(sign, left, node_b)
  local kind, b, value = self:operands(left, node_b)
  if b.constant then
    if b.constant == 0 then asm.refuse('division by zero') end
  else
    self.a[is_wide(kind) and 'jump' or 'jump32'](self.a, '==', 1, 0, self.labels.none)
  end
  if is_signed(kind) then return self:signed_division(sign, kind, value) end
  return self:operate(sign == '/' and 'div' or 'mod', kind, value)
end

function Compiler:shift(sign, left, node_b)
  local a = self.a
  -- The Lua back end knows best what it takes for a constant: it decides on the width.
  local count = codegen.constant(node_b, self.tree.assigned, self.tree.context)
  if count and count >= 32 and not is_wide(left.type) then
    left = self:widen(left, is_signed(left.type) and 'i64' or 'u64')
  end
  local kind, width = left.type, TYPES[left.type].size * 8
  local op = sign == '<<' and 'lsh' or is_signed(kind) and 'arsh' or 'rsh'
  local load = self:simple(node_b)
  if load then
    load(1)
  elseif not (count and self:is_constant(node_b)) then -- a constant may still have no value: 0 * (1 / x)
    local saved = not left.constant and self:save()
    self:settle(self:integer(self:expression(node_b)))
    a:alu_r('mov', 1, 0)
    if saved then self:restore(saved) end
  end
  if left.constant then a:value(0, left.constant) end
  if count then return self:operate(op, kind, count % width) end
  a:alu('and', 1, width - 1)
  return self:operate(op, kind)
end

local INVERSE = { ['=='] = '!=', ['!='] = '==', ['<'] = '>=', ['<='] = '>', ['>'] = '<=', ['>='] = '<' }

--- Jumps to the target if the comparison has the wanted result.
function Compiler:compare(node, left, target, when)
  local a = self.a
  if left.kind ~= 'num' then return self:compare_objects(node, left, target, when) end
  local right = node.b.op == 'str' and self:expression(node.b)
  if right then asm.refuse('a number is not a string') end
  local kind, _, value = self:operands(promote(left), node.b)
  local op = when and node.sign or INVERSE[node.sign]
  if is_signed(kind) and op ~= '==' and op ~= '!=' then op = 's' .. op end
  local method = is_wide(kind) and 'jump' or 'jump32'
  if value then a[method](a, op, 0, value, target) else a[method .. '_r'](a, op, 0, 1, target) end
end

--- Returns a truth value, 0 or 1.
---@param jump fun(target: string) jumps to the target if it is true
function Compiler:truth(jump)
  local a = self.a
  local yes, done = a:new_label(), a:new_label()
  jump(yes)
  a:alu('mov', 0, 0)
  a:go(done)
  a:label(yes)
  a:alu('mov', 0, 1)
  a:label(done)
  return number('i32', 'both')
end

--- Applies a binary operator to the value of its left operand.
function Compiler:binary(node, left)
  local sign = node.sign
  if INVERSE[sign] or sign == '~' then
    return self:truth(function(target)
      if sign == '~' then self:match(left, node.b, target, true) else self:compare(node, left, target, true) end
    end)
  end
  if left.kind == 'ptr' and (sign == '+' or sign == '-') then return self:move(left, node.b, sign) end
  left = self:integer(left)
  if SIMPLE[sign] then
    local kind, _, value = self:operands(left, node.b)
    return self:operate(SIMPLE[sign], kind, value)
  elseif sign == '<<' or sign == '>>' then
    return self:shift(sign, left, node.b)
  end
  return self:division(sign, left, node.b)
end

--- Generates chains like a + b + c, which nest to the left. They may be long, so this does not recurse.
function Compiler:chain(node)
  local spine = {}
  while node.op == 'binary' or node.op == 'comma' do
    spine[#spine + 1] = node
    node = node.a
  end
  local value = self:expression(node)
  for i = #spine, 1, -1 do
    local parent = spine[i]
    value = parent.op == 'comma' and self:expression(parent.b) or self:binary(parent, value)
  end
  return value
end

--- Jumps to the target if the truth of the expression is `when`; continues otherwise.
---@param target string label
---@param when boolean
function Compiler:branch(node, target, when)
  if node.op == 'logic' then return self:branch_logic(node, target, when) end
  if node.op == 'unary' and node.sign == '!' then return self:branch(node.a, target, not when) end
  if node.op == 'match' then return self:branch_match(node, target, when) end
  if node.op == 'binary' and (INVERSE[node.sign] or node.sign == '~') then
    local left = self:expression(node.a)
    if node.sign == '~' then return self:match(left, node.b, target, when) end
    return self:compare(node, left, target, when)
  end
  local value = self:integer(self:expression(node))
  if value.constant then
    if (value.constant ~= 0) == when then self.a:go(target) end
    return
  end
  self.a[is_wide(value.type) and 'jump' or 'jump32'](self.a, when and '!=' or '==', 0, 0, target)
end

function Compiler:branch_logic(node, target, when)
  local is_and, terms = node.sign == '&&', {}
  local one = node
  while one.op == 'logic' and one.sign == node.sign do
    terms[#terms + 1] = one.b
    one = one.a
  end
  terms[#terms + 1] = one
  if is_and ~= when then -- each term decides
    for i = #terms, 1, -1 do self:branch(terms[i], target, when) end
    return
  end
  local skip = self.a:new_label()
  for i = #terms, 2, -1 do self:branch(terms[i], skip, not when) end
  self:branch(terms[1], target, when)
  self.a:label(skip)
end

-- Expressions -------------------------------------------------------------------------------------

local FUNCTIONS = {}

function FUNCTIONS.min(self, node)
  local a = self.a
  local kind, _, value = self:operands(self:integer(self:expression(node.args[1])), node.args[2])
  if value then a:value(1, value) end
  local done = a:new_label()
  local op = (is_signed(kind) and 's' or '') .. (node.name == 'min' and '<=' or '>=')
  a[is_wide(kind) and 'jump_r' or 'jump32_r'](a, op, 0, 1, done)
  a:alu_r('mov', 0, 1)
  a:label(done)
  return number(kind)
end
FUNCTIONS.max = FUNCTIONS.min

function FUNCTIONS.ntohl(self, node)
  self:settle(self:convert(self:integer(self:expression(node.args[1])), 'u32'))
  self.a:to_big_endian(0, 32)
  return number('u32', 'zero')
end

function FUNCTIONS.ntohs(self, node)
  self:settle(self:convert(self:integer(self:expression(node.args[1])), 'u16'))
  self.a:to_big_endian(0, 16)
  return number('u16', 'both')
end

--- Generates code only to learn the value's type, and removes it.
function Compiler:type_only(node)
  local a = self.a
  local n = a.n
  local value = self:expression(node)
  for i = n + 1, a.n do a.list[i] = nil end
  a.n = n
  return value
end

local HANDLERS = {
  num = function(_, node) return constant(node.type, node.value) end,
  str = function(_, node) return { kind = 'str', literal = node.value } end,
  var = Compiler.variable,
  binary = Compiler.chain,
  comma = Compiler.chain,
  unary = function(self, node)
    if node.sign == '!' then
      return self:truth(function(target) self:branch(node.a, target, false) end)
    end
    local value = self:integer(self:expression(node.a))
    if node.sign == '+' then return value end
    if value.constant then
      return constant(value.type, node.sign == '-' and -value.constant or -1 - value.constant)
    end
    if node.sign == '~' then return self:operate('xor', value.type, -1) end
    return self:operate('neg', value.type, 0)
  end,
  logic = function(self, node)
    return self:truth(function(target) self:branch(node, target, true) end)
  end,
  match = function(self, node)
    return self:truth(function(target) self:branch(node, target, true) end)
  end,
  choose = function(self, node)
    local a = self.a
    local otherwise, done = a:new_label(), a:new_label()
    self:branch(node.cond, otherwise, false)
    local first = self:integer(self:expression(node.a))
    self:settle(first)
    a:go(done)
    a:label(otherwise)
    local second = self:integer(self:expression(node.b))
    self:settle(second)
    a:label(done)
    -- Each is extended according to its own type, and so converted to a common type of 64 bits.
    local kind = types.common(first, second)
    return first.type == second.type and self:settled(kind) or number(kind)
  end,
  assign = function(self, node)
    local name = node.target.name
    local value
    if node.sign then
      value = self:binary({ sign = node.sign, b = node.b }, self:variable(node.target))
    else
      value = self:expression(node.b)
    end
    return self:assign(name, value)
  end,
  step = function(self, node)
    local name = node.target.name
    local value = self:variable(node.target)
    local saved = not node.prefix and self:save()
    local kind = promote(value).type
    local changed = self:assign(name, self:operate('add', kind, node.delta))
    if not saved then return changed end
    self:restore(saved)
    return value
  end,
  cast = function(self, node)
    local value = self:expression(node.a)
    if node.pointer > 0 then
      if value.kind == 'num' then return self:convert(value, 'u64') end
      return self:cast_pointer(value, node.pointer == 1 and node.type or 'u64')
    end
    return self:convert(self:integer(value), node.type)
  end,
  sizeof = function(self, node)
    if node.type then return constant('u64', node.pointer > 0 and 8 or TYPES[node.type].size) end
    local operand = node.a
    local field = operand.op == 'var' and not SAMPLE[operand.name] and self.fields[operand.name]
    if field then return constant('u64', field.size) end
    local value = self:type_only(operand)
    if operand.op == 'str' then return constant('u64', #operand.value + 1) end
    return constant('u64', value.kind == 'num' and TYPES[value.type].size or 8)
  end,
  index = function(self, node) return self:read(self:move(self:expression(node.a), node.b, '+')) end,
  deref = function(self, node) return self:read(self:expression(node.a)) end,
  address = function(self, node) return self:address(node) end,
  call = function(self, node)
    local call = FUNCTIONS[node.name]
    if not call then asm.refuse('only profscript can evaluate %s()', node.name) end
    return call(self, node)
  end,
}

function Compiler:expression(node) return HANDLERS[node.op](self, node) end

local function new(a, tree, context, labels)
  local self = setmetatable({
    a = a, source = context.source, fields = tree.context.fields, labels = labels, tree = tree, copies = {},
    free = { unpack(context.registers or { 9, 8, 7 }) },
  }, Compiler)
  self:declare_assigned(tree.assigned)
  return self
end

--- Generates code that continues if the condition is true, and jumps to labels.none if it is false or has no value.
--- Refuses what BPF cannot do.
---@param a Asm
---@param tree ExprTree
---@param context KernelContext
---@param labels KernelLabels
function compile.condition(a, tree, context, labels)
  new(a, tree, context, labels):branch(tree.node, labels.none, false)
end

--- Generates code that leaves the value of an expression in r0, extended to 64 bits.
---@param a Asm
---@param tree ExprTree
---@param context KernelContext
---@param labels KernelLabels
---@return string type i32, u32, i64 or u64
function compile.value(a, tree, context, labels)
  local self = new(a, tree, context, labels)
  return self:settle(self:integer(self:expression(tree.node))).type
end

return compile
