-- SPDX-License-Identifier: GPL-2.0-only
--- Compiles C expressions (the syntax trees of bindings/expr/parse.lua) to BPF instructions. The results are those of
--- the Lua code that bindings/expr/codegen.lua generates; tests/unit/bpf/gen/compile_spec.lua compares them.
--- What BPF cannot do is refused with a reason.
---
--- The value of a subexpression is a table:
---   kind 'num'  an integer, see value.lua: a constant, or in r0
---   kind 'ptr'  an array or string of the event, see arrays.lua
---   kind 'str'  another string: `literal`, or the name of the task
--- r1 to r5 hold nothing beyond one operation. Values that must survive are kept in r7 to r9, then on the stack.
local asm = require 'bpf.gen.asm'
local memory = require 'bpf.gen.arrays'
local operators = require 'bpf.gen.operators'
local parse = require 'bindings.expr.parse'
local strings = require 'bpf.gen.strings'
local types = require 'bindings.expr.types'
local value_of = require 'bpf.gen.value'
local has = require('bindings.view.views').has

local TYPES, FRAME, COMPARISONS = types.INTEGERS, asm.FRAME, operators.COMPARISONS
local number, constant, promote = value_of.number, value_of.constant, value_of.promote
local is_wide, is_signed = value_of.is_wide, value_of.is_signed

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
for _, methods in ipairs { memory, operators, strings } do
  for name, method in pairs(methods) do Compiler[name] = method end
end

--- Refuses what is not a number, and promotes it.
function Compiler:integer(value) -- luacheck: no self
  if value.kind ~= 'num' then asm.refuse('an array or a string is not a number') end
  return promote(value)
end

--- Extends a number in a register to 64 bits, according to its type.
function Compiler:extend(value, register)
  if is_wide(value.type) then return end
  local wanted = is_signed(value.type) and 'sign' or 'zero'
  if value.upper ~= wanted and value.upper ~= 'both' then self.a:extend(register, 32, wanted == 'sign') end
end

--- Converts a promoted value in a register, or a constant, to a type of at least 32 bits.
---@param register? integer default: r0
function Compiler:widen(value, kind, register)
  if value.constant then return constant(kind, value.constant) end
  if is_wide(kind) then self:extend(value, register or 0) end
  return number(kind, not is_wide(kind) and not is_wide(value.type) and value.upper or nil)
end

--- Puts a value into r0, extended to 64 bits according to its type.
function Compiler:settle(value)
  if value.constant then
    self.a:value(0, value.constant)
  else
    self:extend(value, 0)
  end
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

local SAMPLE = { _cpu = true, _node = true, _cgroup = true, _pid = true, _tid = true, _time = true, _period = true,
  _comm = true }

--- Returns whether a name is a variable of the sample.
function Compiler:is_sample(name)
  return SAMPLE[name] or name == 'common_pid' and self.source.has_no_record
end

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
    or self:is_sample(node.name) or field.offset % field.size ~= 0 then
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
  elseif self:is_sample(name) then
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

-- Chains and conditions ---------------------------------------------------------------------------

local LINKS = { binary = true, comma = true } -- of chains

function Compiler:chain(node)
  local spine, first = parse.spine(node, LINKS)
  local value = self:expression(first)
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
  if node.op == 'binary' and (COMPARISONS[node.sign] or node.sign == '~') then
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
  local value = self:integer(self:expression(tree.node))
  self:settle(value)
  return value.type
end

return compile
