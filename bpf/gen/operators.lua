-- SPDX-License-Identifier: GPL-2.0-only
--- Methods of the compiler (compile.lua): binary operators on numbers. The left operand is in r0 or a constant.
local asm = require 'bpf.gen.asm'
local codegen = require 'bindings.expr.codegen'
local types = require 'bindings.expr.types'
local value_of = require 'bpf.gen.value'

local TYPES = types.INTEGERS
local number, immediate, promote = value_of.number, value_of.immediate, value_of.promote
local is_wide, is_signed = value_of.is_wide, value_of.is_signed

local operators = {}

--- Brings the operands of an operator to their common type: a into r0, b into r1 unless it is a constant that fits
--- into an instruction. a is promoted, and in r0 or a constant.
---@return string kind
---@return table b
---@return integer|nil value of a constant operand
function operators:operands(a, node_b)
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
function operators:is_constant(node)
  if node.op == 'num' then return true end
  if node.op == 'cast' then return node.pointer == 0 and self:is_constant(node.a) end
  return node.op == 'unary' and node.sign ~= '!' and self:is_constant(node.a)
end

local SIMPLE = { ['+'] = 'add', ['-'] = 'sub', ['*'] = 'mul', ['&'] = 'and', ['|'] = 'or', ['^'] = 'xor' }

--- Generates r0 = r0 OP (r1 or a constant).
function operators:operate(op, kind, value)
  local method = is_wide(kind) and 'alu' or 'alu32'
  if value then self.a[method](self.a, op, 0, value) else self.a[method .. '_r'](self.a, op, 0, 1) end
  return number(kind, not is_wide(kind) and 'zero' or nil)
end

--- Generates a division of signed numbers, which BPF lacks: divides without signs.
function operators:signed_division(sign, kind, value)
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

function operators:division(sign, left, node_b)
  local kind, b, value = self:operands(left, node_b)
  if b.constant then
    if b.constant == 0 then asm.refuse('division by zero') end
  else
    self.a[is_wide(kind) and 'jump' or 'jump32'](self.a, '==', 1, 0, self.labels.none)
  end
  if is_signed(kind) then return self:signed_division(sign, kind, value) end
  return self:operate(sign == '/' and 'div' or 'mod', kind, value)
end

function operators:shift(sign, left, node_b)
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

-- The comparisons, and their opposites.
local INVERSE = { ['=='] = '!=', ['!='] = '==', ['<'] = '>=', ['<='] = '>', ['>'] = '<=', ['>='] = '<' }

--- Jumps to the target if the comparison has the wanted result.
function operators:compare(node, left, target, when)
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
function operators:truth(jump)
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
function operators:binary(node, left)
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

operators.COMPARISONS = INVERSE

return operators
