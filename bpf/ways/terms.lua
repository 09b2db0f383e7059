-- SPDX-License-Identifier: GPL-2.0-only
--- Handler terms: turns what a handler computes (bpf/handlers/code.lua) into C expressions for events of a
--- class, which BPF programs evaluate. Lua computes with floating-point numbers, and with 64-bit integers beyond 2^53.
--- The C expressions compute with 64-bit integers. What could have another result is refused.
local asm = require 'bpf.gen.asm'
local cgroups = require 'bpf.groups.cgroups'
local expr = require 'bindings.expr.compile'
local types = require 'bindings.expr.types'
local values = require 'bindings.options.values'
local has = require('bindings.view.views').has

local handler_terms = {}

local MEMBERS = { _cpu = true, _node = true, _cgroup = true, _tid = true, _pid = true, _comm = true }
local EXACT, MOST = 2 ^ 53, 2 ^ 63

--- A term for events of a class.
---@class handler_terms.Term: countable.Term
---@field low? number the least value of a number: of a 64-bit one, as long as Lua has it exactly
---@field high? number
---@field wide? string[] the 64-bit fields in it: beyond 2^53, Lua has 64-bit integers of them
---@field is_unsigned? boolean one of these is unsigned
---@field is_choice? boolean only some of these may count
---@field is_fraction? boolean the value is truncated: `dividend / by`
---@field dividend? handler_terms.Term
---@field by? string

local BOUNDS = {
  i32 = { -2 ^ 31, 2 ^ 31 - 1 }, u32 = { 0, 2 ^ 32 - 1 }, i64 = { -EXACT, EXACT }, u64 = { 0, EXACT },
}

-- Leaves ------------------------------------------------------------------------------------------

local function constant_term(constant)
  if type(constant) == 'string' then return { key = { constant = constant } } end
  if type(constant) ~= 'number' then asm.refuse('a %s is not a number or a string', type(constant)) end
  if constant % 1 ~= 0 or math.abs(constant) > EXACT then asm.refuse('%s is not an integer', tostring(constant)) end
  local text = ('%.0f'):format(constant)
  return { key = { constant = constant }, value = constant < 0 and ('(%s)'):format(text) or text, constant = constant,
    type = 'i32', low = constant, high = constant }
end

local function field_term(event, name)
  local field = event.fields[name]
  if name == '_container' then return { key = { of = '_cgroup', text = cgroups.container }, type = 'string' } end
  if not field and not MEMBERS[name] then asm.refuse('only Lua can read ev.%s', name) end
  if field and has(field, 'ARRAY') and not has(field, 'STRING') then asm.refuse('ev.%s is an array', name) end
  local compiled, err = expr.compile(name, event.fields)
  if not compiled then asm.refuse('%s', err.message) end
  if compiled.type == 'string' then return { key = name, type = 'string' } end
  local bounds = BOUNDS[compiled.type]
  if field and field.size < 4 then
    local kind = types.INTEGERS[(has(field, 'SIGNED') and 'i' or 'u') .. field.size * 8]
    bounds = { kind.lo, kind.hi }
  end
  local is_unsigned = compiled.type == 'u64'
  return { key = name, value = name, type = compiled.type, low = bounds[1], high = bounds[2],
    wide = (is_unsigned or compiled.type == 'i64') and { name } or nil, is_unsigned = is_unsigned }
end

--- Returns the value of a variable of the handler, or of an option.
local function variable(handler, term)
  local _, value = debug.getupvalue(handler, (term.of or term).upvalue)
  if not term.of then return value end
  if not values.is_options(value) then asm.refuse("it reads '%s' of a table", term.name) end
  value = value[term.name]
  if value == nil then asm.refuse("the option '%s' has no value", term.name) end
  return value
end

-- Operations --------------------------------------------------------------------------------------

--- Returns a term of the expression, or refuses what integers of 64 bits cannot hold.
local function made(operands, low, high, format, ...)
  if low < -MOST or high >= MOST then asm.refuse 'it may compute more than 64 bits' end
  local wide, is_unsigned, is_choice = nil, false, false
  for _, one in ipairs(operands) do
    for _, field in ipairs(one.wide or {}) do
      wide = wide or {}
      wide[#wide + 1] = field
    end
    is_unsigned, is_choice = is_unsigned or one.is_unsigned or false, is_choice or one.is_choice or false
  end
  if not wide and (low < -EXACT or high > EXACT) then asm.refuse 'it may compute more than Lua has exactly' end
  if is_unsigned and low < 0 then asm.refuse 'it computes with an unsigned 64-bit number' end
  local text = ('(%s)'):format(format:format(...))
  return { key = text, value = text, type = wide and 'i64' or 'i32', low = low, high = high, wide = wide,
    is_unsigned = is_unsigned, is_choice = is_choice }
end

--- Returns the text of an operand as a signed integer of 64 bits.
local function signed(term)
  if term.type == 'u64' then asm.refuse 'it computes with an unsigned 64-bit number' end
  return '(s64)' .. term.value
end

local function divisor(term)
  if not term.constant or term.constant <= 0 then asm.refuse 'it divides by what is not a positive constant' end
  return term.constant
end

local OPERATIONS = {}

OPERATIONS['+'] = function(a, b)
  return made({ a, b }, a.low + b.low, a.high + b.high, '%s + %s', signed(a), signed(b))
end

OPERATIONS['-'] = function(a, b)
  if not b then return made({ a }, -a.high, -a.low, '-%s', signed(a)) end
  return made({ a, b }, a.low - b.high, a.high - b.low, '%s - %s', signed(a), signed(b))
end

OPERATIONS['*'] = function(a, b)
  local corners = { a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high }
  return made({ a, b }, math.min(unpack(corners)), math.max(unpack(corners)), '%s * %s', signed(a), signed(b))
end

OPERATIONS['/'] = function(a, b)
  local by = divisor(b)
  if by == 1 then return a end
  local quotient = made({ a }, a.low / by, a.high / by, '%s / %s', a.type == 'u64' and a.value or signed(a), b.value)
  quotient.is_fraction, quotient.dividend, quotient.by = true, a, b.value
  return quotient
end

OPERATIONS['%'] = function(a, b)
  local by = divisor(b)
  if a.type == 'u64' then return made({ a }, 0, by - 1, '%s %% %s', a.value, b.value) end
  if a.low >= 0 then return made({ a }, 0, by - 1, '%s %% %s', signed(a), b.value) end
  if not a.wide then return made({ a }, 0, by - 1, '(%s %% %s + %s) %% %s', signed(a), b.value, b.value, b.value) end
  if a.is_choice then asm.refuse 'it divides one of several 64-bit numbers' end
  local exact = {} -- the remainder of a 64-bit integer may be negative
  for i, field in ipairs(a.wide) do exact[i] = ('%s >= -%.0f && %s <= %.0f'):format(field, EXACT, field, EXACT) end
  return made({ a }, 1 - by, by - 1, '(%s %% %s + %s * (%s)) %% %s', signed(a), b.value, b.value,
    table.concat(exact, ' && '), b.value)
end

--- Lua has no result for 64-bit integers beyond 2^53: the handler would end the run.
function OPERATIONS.floor(a)
  if not a.is_fraction then return a end
  local low, high = math.floor(a.low), math.floor(a.high)
  if a.dividend.low >= 0 then return made({ a }, low, high, '%s', a.value) end
  return made({ a }, low, high, '%s - (%s %% %s < 0)', a.value, signed(a.dividend), a.by)
end

function OPERATIONS.band(a, b)
  if a.constant then a, b = b, a end
  if not b.constant or b.constant < 0 or b.constant >= 2 ^ 31 then asm.refuse 'the bits are not a positive constant' end
  return made({ a }, 0, b.constant, '%s & %s', a.value, b.value)
end

--- Checks the operands of a shift, which Lua does with 32 bits of numbers.
local function shift_count(a, b)
  if a.wide or a.low < -2 ^ 31 or a.high >= 2 ^ 32 then asm.refuse 'it shifts more than 32 bits' end
  if not b.constant or b.constant < 1 or b.constant > 31 then asm.refuse 'it does not shift by 1 to 31 bits' end
  return b.constant
end

function OPERATIONS.rshift(a, b)
  local count = shift_count(a, b)
  return made({ a }, 0, 2 ^ (32 - count) - 1, '(u32)%s >> %d', a.value, count)
end

function OPERATIONS.lshift(a, b)
  local count = shift_count(a, b)
  return made({ a }, -2 ^ 31, 2 ^ 31 - 1, '(s32)((u32)%s << %d)', a.value, count)
end

function OPERATIONS.text(a, call)
  return { key = { of = a.value, text = call }, type = 'string' }
end

local OPERANDS = { ['-'] = { 1, 2 }, floor = { 1, 1 }, text = { 1, 1 } } -- least and most; default: 2

local COMPARE = {
  ['=='] = function(a, b) return a == b end,
  ['~='] = function(a, b) return a ~= b end,
  ['<'] = function(a, b) return a < b end,
  ['<='] = function(a, b) return a <= b end,
  ['>'] = function(a, b) return a > b end,
  ['>='] = function(a, b) return a >= b end,
}

local function constant_of(term) return type(term.key) == 'table' and term.key.constant or nil end

--- Returns one of two terms if that is known, or an expression that chooses.
local function choose(handler, event, term)
  local condition, yes, no = term.choice, term.terms[1], term.terms[2]
  local left = constant_of(handler_terms.resolve(handler, event, condition.left))
  local right = constant_of(handler_terms.resolve(handler, event, condition.right))
  local is_equality = condition.op == '==' or condition.op == '~='
  if left and right and (is_equality or type(left) == 'number' and type(right) == 'number') then
    return handler_terms.resolve(handler, event, COMPARE[condition.op](left, right) and yes or no)
  end
  local text = handler_terms.filter(handler, event, { condition })
  yes, no = handler_terms.resolve(handler, event, yes), handler_terms.resolve(handler, event, no)
  if yes.value and no.value then
    if yes.is_fraction or no.is_fraction then asm.refuse 'it chooses a fraction' end
    local result = made({ yes, no }, math.min(yes.low, no.low), math.max(yes.high, no.high), '%s ? %s : %s', text,
      signed(yes), signed(no))
    result.is_choice = true
    return result
  end
  local one, other = constant_of(yes), constant_of(no)
  if not one or not other then asm.refuse 'it chooses between texts of the event' end
  return OPERATIONS.text({ value = ('(%s)'):format(text) }, function(n) return n ~= 0 and one or other end)
end

--- Returns a term of a handler for events of a class, or refuses.
---@param handler function
---@param event Event|HandlerView
---@param term handler_code.Term
---@return handler_terms.Term
function handler_terms.resolve(handler, event, term)
  if term.finish then return event:result(term.finish, term.result) end
  if term.choice then return choose(handler, event, term) end
  if term.field == '_event' then return constant_term(event.name) end
  if term.field then return field_term(event, term.field) end
  if term.constant then return constant_term(term.constant) end
  if not term.op then return constant_term(variable(handler, term)) end
  local operands, wanted = {}, OPERANDS[term.op] or { 2, 2 }
  for i, one in ipairs(term.terms) do
    operands[i] = handler_terms.resolve(handler, event, one)
    if not operands[i].value then asm.refuse 'it computes with text' end
    if operands[i].is_fraction and term.op ~= 'floor' then asm.refuse 'it computes with a fraction' end
  end
  if #operands < wanted[1] or #operands > wanted[2] then asm.refuse 'a function has the wrong number of arguments' end
  local result = OPERATIONS[term.op](operands[1], term.call or operands[2])
  if result.is_fraction then result.key = nil end
  return result
end

-- Conditions --------------------------------------------------------------------------------------

local C_OP = { ['~='] = '!=' }

--- Returns the C expression of an operand. Lua compares the numbers, whatever their types are.
local function operand(term, other)
  if term.value then
    local is_wide = not term.constant and (not other.constant or other.constant < 0)
    return (is_wide and '(s64)' or '') .. term.value
  end
  if type(term.key) == 'string' then return term.key end
  local text = term.key.constant or asm.refuse 'it compares a string'
  if text:find '[%c"\\]' then asm.refuse 'a string has characters that a filter cannot have' end
  return ('"%s"'):format(text)
end

--- Returns conditions of a handler as a filter; nil if there are none.
---@param handler function
---@param event Event|HandlerView
---@param conditions handler_code.Condition[] comparisons
---@param n? integer only the first conditions; default: all
---@return string?
function handler_terms.filter(handler, event, conditions, n)
  local parts = {}
  for i = 1, n or #conditions do
    local condition = conditions[i]
    local left = handler_terms.resolve(handler, event, condition.left)
    local right = handler_terms.resolve(handler, event, condition.right)
    local is_equality = condition.op == '==' or condition.op == '~='
    if (left.value == nil) ~= (right.value == nil) or not is_equality and not left.value then
      asm.refuse 'it compares a string'
    end
    for _, pair in ipairs { { left, right }, { right, left } } do
      local one, other = unpack(pair)
      if one.is_fraction then asm.refuse 'it compares a fraction' end
      if one.type == 'u64' and not (other.constant and other.constant >= 0) then
        asm.refuse 'it compares an unsigned 64-bit number'
      end
    end
    parts[i] = ('%s %s %s'):format(operand(left, right), C_OP[condition.op] or condition.op, operand(right, left))
  end
  return #parts > 0 and table.concat(parts, ' && ') or nil
end

return handler_terms
