-- SPDX-License-Identifier: GPL-2.0-only
-- Code generator: turns a syntax tree of parse.lua into the source of a Lua function with C's integer semantics. Most
-- of the tree becomes one Lua expression. Statements are generated only where a Lua expression is not sufficient: for
-- checks that may fail, assignments, calls, and branches that contain these. value.lua describes the operands.

local bit = require 'bit'
local calls = require 'bindings.expr.calls'
local diagnostic = require 'bindings.base.diagnostic'
local has = require('bindings.view.views').has
local memory = require 'bindings.expr.memory'
local operators = require 'bindings.expr.operators'
local parse = require 'bindings.expr.parse'
local types = require 'bindings.expr.types'
local value_of = require 'bindings.expr.value'

local TYPES, LIMIT, OR, AND = types.INTEGERS, value_of.LIMIT, value_of.OR, value_of.AND
local COMPARE, ADD, MUL = value_of.COMPARE, value_of.ADD, value_of.MUL
local UNARY, ATOM = value_of.UNARY, value_of.ATOM
local merge, constant, wide, load = value_of.merge, value_of.constant, value_of.wide, value_of.load
local bool, str, literal, operand = value_of.bool, value_of.str, value_of.literal, value_of.operand
local norm, retyped, as_wide, promote = value_of.norm, value_of.retyped, value_of.as_wide, value_of.promote
local widen, convert, comparand = value_of.widen, value_of.convert, value_of.comparand
local arith, is_string = value_of.arith, value_of.is_string

local gen = {}

local MAX_TEMPS = 120 -- a Lua function has 200 local variables
local MAX_ASSIGNED = 40
local MAX_NESTING = 24 -- of generated code; LuaJIT's parser allows 200 levels in total
local MAX_CODE = 2000 -- characters of one Lua expression; each operator copies the code of its operands

---@class ExprGen
---@field what string name of the text in error messages
---@field text string
---@field fields table<string, Field>
---@field variables table<string, ExprVariable> variables other than the fields
---@field assigned table<string, integer>
---@field allow_system boolean|nil
---@field used table<string, boolean> fields that the code reads
---@field calls table<string, boolean> functions of env that the code calls
---@field out string[] statements
local Gen = {}
Gen.__index = Gen

for _, methods in ipairs { memory, operators, calls } do
  for name, method in pairs(methods) do Gen[name] = method end
end

function Gen:fail(column, message, hint)
  error(diagnostic.new(self.what, self.text, column, message, hint), 0)
end

function Gen:emit(format, ...)
  self.out[#self.out + 1] = select('#', ...) > 0 and format:format(...) or format
end

-- Runs body and collects its statements separately. Returns the statements and body's result.
function Gen:collect(body)
  local outer = self.out
  self.out = {}
  local result = body()
  local statements = self.out
  self.out = outer
  return statements, result
end

function Gen:append(statements)
  for _, statement in ipairs(statements) do self.out[#self.out + 1] = statement end
end

function Gen:new_temp(column)
  local free = self.free
  local temp = table.remove(free)
  if not temp then
    temp = self.temps + 1
    self.temps = temp
    if temp > MAX_TEMPS then self:fail(column, 'the expression is too large') end
  end
  return temp
end

function Gen:release(value)
  for _, temp in ipairs(value.temps) do self.free[#self.free + 1] = temp end
end

-- Assigns the value to a temporary variable, so that its code can be used more than once.
function Gen:spill(value, column)
  if value.is_temp or (value.kind == 'num' and value.lo == value.hi) then return value end
  local code = value.code
  self:release(value)
  local temp = self:new_temp(column)
  self:emit('t%d = %s', temp, code)
  local copy = {}
  for key, field in pairs(value) do copy[key] = field end
  copy.code, copy.prec, copy.depth, copy.temps, copy.is_temp = 't' .. temp, ATOM, 0, { temp }, true
  return copy
end

function Gen:shallow(value, column)
  if value.kind == 'ptr' or (value.depth <= MAX_NESTING and #value.code <= MAX_CODE) then return value end
  return self:spill(value, column)
end

function Gen:check(condition)
  self:emit('if %s then return nil end', condition)
end

function Gen:integer(value, column)
  if is_string(value) then
    self:fail(column, 'a string is not a number', 'strings can be compared with == != ~')
  elseif value.kind == 'ptr' then
    self:fail(column, 'an array is not a number', 'select an element: [0]')
  end
  return promote(value)
end

-- Converts the value to a Lua condition.
function Gen:condition(value, column)
  if value.kind == 'bool' then return value end
  value = norm(self:integer(value, column))
  if value.kind == 'num' and value.lo == value.hi then
    return bool(value.lo ~= 0 and 'true' or 'false', ATOM, value)
  end
  return bool(comparand(value) .. ' ~= 0', COMPARE, value)
end

function Gen:names()
  local names = {}
  for name in pairs(self.variables) do names[#names + 1] = name end
  for name, field in pairs(self.fields) do
    names[#names + 1] = name
    if has(field, 'DYNAMIC') then
      names[#names + 1] = name .. '_offset'
      names[#names + 1] = name .. '_len'
    end
  end
  return names
end

function Gen:variable(node)
  local name = node.name
  local variable = self.variables[name]
  if variable then
    if variable.call then self.calls[variable.call] = true end
    if variable.type == 'string' then return self:spill(str(variable.code), node.column) end
    return load(variable.type, variable.code, ATOM)
  end
  local field = self.fields[name]
  if field then return self:field(name, field, node.column) end
  local stem, part = name:match('^(.*)_(%a+)$')
  field = (part == 'offset' or part == 'len') and self.fields[stem]
  if field and has(field, 'DYNAMIC') then
    self.used[stem] = true
    local off, length = self:dynamic(stem, field)
    return retyped(part == 'len' and length or off, 'i32')
  end
  error(diagnostic.unknown(self.what, self.text, node.column, 'variable', name, self:names()), 0)
end

-- Declares a Lua variable for each variable that the expression assigns to.
function Gen:declare_assigned()
  local names = {}
  for name in pairs(self.assigned) do names[#names + 1] = name end
  table.sort(names)
  if #names > MAX_ASSIGNED then self:fail(self.assigned[names[1]], 'too many variables are assigned') end
  self.copies = {}
  for _, name in ipairs(names) do
    local column = self.assigned[name]
    local value = self:variable { name = name, column = column }
    if value.kind ~= 'num' and value.kind ~= 'wide' then
      self:fail(column, ("cannot assign to '%s'"):format(name))
    end
    self:emit('local v_%s = %s', name, value.code)
    value.code, value.prec, value.narrow, value.product = 'v_' .. name, ATOM, true, value.kind == 'wide'
    self.copies[name] = value
  end
end

function Gen:assign(name, value)
  local copy = self.copies[name]
  value = convert(value, copy.type)
  self:emit('%s = %s', copy.code, copy.kind == 'wide' and as_wide(value, copy.type) or value.code)
  self:release(value)
  return copy
end

-- Generates a && b, a || b: one Lua condition if b needs no statements.
function Gen:logic_values(node, a)
  local is_and = node.sign == '&&'
  a = self:condition(a, node.a.column)
  local statements, b = self:collect(function()
    return self:condition(self:expression(node.b), node.b.column)
  end)
  if #statements == 0 then
    local prec = is_and and AND or OR
    local code = ('%s %s %s'):format(operand(a, prec), is_and and 'and' or 'or', operand(b, prec + 1))
    local value = bool(code, prec, a, b)
    if a.prec == prec then value.depth = math.max(a.depth, b.depth + 1) end
    return value
  end
  a = self:spill(a, node.column)
  self:emit(is_and and 'if %s then' or 'if not %s then', a.code)
  self:append(statements)
  self:emit('%s = %s', a.code, b.code)
  self:emit('end')
  self:release(b)
  return a
end

local LINKS = { binary = true, logic = true, comma = true } -- of chains

function Gen:chain(node)
  local spine, first = parse.spine(node, LINKS)
  local value = self:expression(first)
  for i = #spine, 1, -1 do
    local parent = spine[i]
    value = self:shallow(value, parent.column)
    if parent.op == 'comma' then
      self:release(value)
      value = self:expression(parent.b)
    elseif parent.op == 'logic' then
      value = self:logic_values(parent, value)
    else
      value = self:binary_values(parent, value, self:shallow(self:expression(parent.b), parent.column))
    end
  end
  return value
end

-- Returns a function that converts either operand of ?: to the common kind and type.
function Gen:unify(a, b, node)
  if is_string(a) and is_string(b) then
    return function(value) return self:string(value, node.column) end
  end
  local kind = types.common(self:integer(a, node.a.column), self:integer(b, node.b.column))
  local function converted(value) return norm(widen(promote(value), kind)) end
  a, b = converted(a), converted(b)
  if a.kind == b.kind then return converted end
  return function(value)
    local code, from = as_wide(converted(value), kind)
    return wide(kind, code, UNARY, from)
  end
end

function Gen:choose(node)
  local cond = self:condition(self:expression(node.cond), node.cond.column)
  local a_statements, a = self:collect(function() return self:expression(node.a) end)
  local b_statements, b = self:collect(function() return self:expression(node.b) end)
  local converted = self:unify(a, b, node)
  local more
  more, a = self:collect(function() return converted(a) end)
  for _, statement in ipairs(more) do a_statements[#a_statements + 1] = statement end
  more, b = self:collect(function() return converted(b) end)
  for _, statement in ipairs(more) do b_statements[#b_statements + 1] = statement end

  local value
  if #a_statements == 0 and #b_statements == 0 then
    local code = ('%s and %s or %s'):format(operand(cond, AND), operand(a, COMPARE), operand(b, AND))
    value = { code = code, prec = OR, temps = merge(merge(cond.temps, a.temps), b.temps),
      depth = math.max(cond.depth, a.depth, b.depth) + 1 }
  else
    self:release(cond)
    local temp = self:new_temp(node.column)
    self:emit('if %s then', cond.code)
    self:append(a_statements)
    self:emit('t%d = %s', temp, a.code)
    self:emit('else')
    self:append(b_statements)
    self:emit('t%d = %s', temp, b.code)
    self:emit('end')
    self:release(a)
    self:release(b)
    value = { code = 't' .. temp, prec = ATOM, depth = 0, temps = { temp } }
  end
  value.kind, value.type, value.product = a.kind, a.type, a.product or b.product
  if a.kind == 'num' then
    value.lo, value.hi = math.min(a.lo, b.lo), math.max(a.hi, b.hi)
    value.negative_zero = a.negative_zero or b.negative_zero
    value.narrow = a.narrow or b.narrow
  end
  return value
end

function Gen:step(node)
  local copy = self.copies[node.target.name]
  local value = copy
  if not node.prefix then value = self:spill(copy, node.column) end
  local changed = self:assign(node.target.name, arith('+', promote(copy), constant('i32', node.delta)))
  return node.prefix and changed or value
end

function Gen:sizeof(node)
  if node.type then return constant('u64', node.pointer > 0 and 8 or TYPES[node.type].size) end
  local a = node.a
  local field = a.op == 'var' and not self.variables[a.name] and self.fields[a.name]
  if field then return constant('u64', field.size) end
  local size
  -- sizeof does not evaluate its operand, so the statements are dropped
  self:collect(function()
    local value = self:expression(a)
    size = a.op == 'str' and #a.value + 1 or (value.kind == 'ptr' or value.kind == 'str') and 8
      or TYPES[value.type].size
    self:release(value)
  end)
  return constant('u64', size)
end

function Gen:cast(node)
  local value = self:expression(node.a)
  if node.pointer > 0 then
    if value.kind == 'ptr' then
      local pointer = retyped(value, value.type)
      pointer.elem = node.pointer == 1 and node.type or 'u64'
      pointer.elem_size = TYPES[pointer.elem].size
      return pointer
    elseif value.kind == 'str' then
      return value
    end
    return convert(self:integer(value, node.column), 'u64')
  end
  return convert(self:integer(value, node.a.column), node.type)
end

local HANDLERS = {
  num = function(_, node)
    if type(node.value) == 'number' and node.value < LIMIT then return constant(node.type, node.value) end
    local value = bit.tohex(node.value + 0ULL, 16)
    return wide(node.type, ('0x%s%s'):format(value, node.type == 'i64' and 'LL' or 'ULL'), ATOM)
  end,
  str = function(_, node) return literal(node.value) end,
  var = function(self, node) return self.copies[node.name] or self:variable(node) end,
  unary = Gen.unary,
  binary = Gen.chain,
  logic = Gen.chain,
  comma = Gen.chain,
  choose = Gen.choose,
  step = Gen.step,
  assign = function(self, node)
    local name = node.target.name
    local value = self:expression(node.b)
    if node.sign then
      value = self:binary_values({ sign = node.sign, a = node.target, b = node.b, column = node.column },
        self.copies[name], value)
    end
    return self:assign(name, self:integer(value, node.b.column))
  end,
  call = Gen.call,
  index = function(self, node)
    local pointer, index = self:expression(node.a), self:expression(node.b)
    return self:deref(self:offset(pointer, index, '+', node.b.column), node.b.column)
  end,
  deref = function(self, node) return self:deref(self:expression(node.a), node.column) end,
  address = Gen.address,
  cast = Gen.cast,
  sizeof = Gen.sizeof,
  match = function(self, node)
    local value = self:variable(node.a)
    if not node.glob then
      value = self:compare_strings('==', value, literal(node.pattern), node)
    else
      value = self:glob(value, node.pattern, true, node.column)
    end
    return node.negate and bool('not ' .. operand(value, UNARY), UNARY, value) or value
  end,
}

function Gen:expression(node)
  return self:shallow(HANDLERS[node.op](self, node), node.column)
end

function Gen:finish_key(value, column)
  if is_string(value) then
    local address, room = self:bytes(value, column)
    self.calls.intern = true
    self:emit('e.key = env.intern(%s, %s)', address, room)
    return 'string'
  end
  value = norm(self:integer(value, column))
  self:emit('e.key = %s', value.code)
  return value.type
end

-- Generates the end of the function and returns the type of the result.
function Gen:finish(value, form, node)
  local column, is_address = node.column, node.op == 'address' or node.op == 'cast'
  if form == 'filter' then
    self:emit('return %s', self:condition(value, column).code)
    return 'i32'
  elseif form == 'key' then
    local kind = self:finish_key(value, column)
    self:emit('return true')
    return kind
  elseif form == 'value' and is_string(value) then
    self:emit('return %s', self:string(value, column).code)
    return 'string'
  elseif form == 'value' and value.kind == 'ptr' and is_address then
    self:emit('return cast(u64, raw + %s)', operand(value.off, MUL)) -- where the record is now
    return 'u64'
  end
  value = norm(self:integer(value, column))
  local code = value.negative_zero and operand(value, ADD) .. ' + 0' or value.code
  if value.kind == 'wide' and form == 'number' then code = ('tonumber(%s)'):format(code) end
  self:emit('return %s', code)
  return value.type
end

local function new(context, assigned)
  return setmetatable({
    what = context.what, text = context.text, fields = context.fields, variables = context.variables,
    allow_system = context.allow_system, assigned = assigned,
    out = {}, free = {}, temps = 0, used = {}, calls = {}, copies = {},
  }, Gen)
end

--- Returns the value of an expression that a shift takes for a constant; nil for any other.
---@param node table
---@param assigned table<string, integer>
---@param context table as for generate()
---@return number?
function gen.constant(node, assigned, context)
  local self = new(context, assigned)
  self:declare_assigned()
  local value = self:integer(self:expression(node), node.column)
  return value.kind == 'num' and value.lo == value.hi and value.lo or nil
end

--- Generates the source of the function. Errors are thrown as a Diagnostic.
---@param node table
---@param assigned table<string, integer>
---@param form 'value'|'key'|'number'|'filter'
---@param context table initial fields of ExprGen: what, text, fields, variables, allow_system
---@return string source
---@return string type of the result: i32, u32, i64, u64 or string
---@return table<string, boolean> fields_used
---@return table<string, boolean> calls
function gen.generate(node, assigned, form, context)
  local self = new(context, assigned)
  self:declare_assigned()
  local kind = self:finish(self:expression(node), form, node)
  local head = 'function(e, p, raw, size)\n'
  if self.temps > 0 then
    local names = {}
    for i = 1, self.temps do names[i] = 't' .. i end
    head = ('%slocal %s\n'):format(head, table.concat(names, ', '))
  end
  return head .. table.concat(self.out, '\n') .. '\nend', kind, self.used, self.calls
end

return gen
