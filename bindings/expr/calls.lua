-- SPDX-License-Identifier: GPL-2.0-only
-- Methods of the code generator (codegen.lua): function calls and printf formats.

local diagnostic = require 'bindings.base.diagnostic'
local types = require 'bindings.expr.types'
local value_of = require 'bindings.expr.value'
local views = require 'bindings.view.views'

local NONE, OR, UNARY, ATOM = value_of.NONE, value_of.OR, value_of.UNARY, value_of.ATOM
local merge, num, typed, wide = value_of.merge, value_of.num, value_of.typed, value_of.wide
local str, literal, norm, as_wide = value_of.str, value_of.literal, value_of.norm, value_of.as_wide
local widen, convert = value_of.widen, value_of.convert
local I32 = types.INTEGERS.i32
local is_string = value_of.is_string

local calls = {}

-- The type of a printf argument: its sign by conversion letter, its bits by length modifier.
local CONVERSIONS = { d = 'i', i = 'i', u = 'u', x = 'u', X = 'u', o = 'u', c = 'i' }
local LENGTHS = { [''] = '32', l = '64', ll = '64', z = '64', j = '64', t = '64', h = '16', hh = '8' }

-- Returns a C format for string.format, and the types of its arguments.
function calls:format(node)
  local text = node.value
  local parts, kinds, at = {}, {}, 1
  while true do
    local start = text:find('%', at, true)
    parts[#parts + 1] = text:sub(at, (start or 0) - 1)
    if not start then break end
    local flags, length, letter, stop = text:match('^%%([-+ #0]*%d*%.?%d*)([hlzjt]*)(.?)()', start)
    local spec, kind = '%' .. flags .. (letter == 'i' and 'd' or letter)
    if letter == '%' then
      spec = '%%'
    elseif letter == 's' and length == '' then
      kind = 'string'
    elseif letter == 'p' and length == '' then
      spec, kind = '%#' .. flags .. 'x', 'u64'
    elseif CONVERSIONS[letter] and LENGTHS[length] then
      kind = letter == 'c' and 'u8' or CONVERSIONS[letter] .. LENGTHS[length]
    end
    if spec ~= '%%' and not (kind and pcall(string.format, spec, kind == 'string' and '' or 0)) then
      self:fail(node.column, ("unknown conversion '%s' in the format"):format(text:sub(start, stop - 1)))
    end
    parts[#parts + 1] = spec
    kinds[#kinds + 1] = kind
    at = stop
  end
  return table.concat(parts), kinds
end

-- printf(format, ...), system(format, ...)
function calls:call_formatted(node)
  local format = node.args[1]
  if not format or format.op ~= 'str' then
    self:fail(format and format.column or node.column,
      ("the first argument of %s() must be a quoted format"):format(node.name))
  end
  local text, kinds = self:format(format)
  if #node.args - 1 ~= #kinds then
    self:fail(node.column, ('%s() has %d arguments but its format takes %d'):format(node.name, #node.args - 1, #kinds))
  end
  local args = { literal(text) }
  for i, kind in ipairs(kinds) do
    local arg = node.args[i + 1]
    local value = self:shallow(self:expression(arg), arg.column)
    if kind == 'string' then
      if not is_string(value) then self:fail(arg.column, '%s requires a string') end
      args[i + 1] = self:string(value, arg.column)
    else
      args[i + 1] = convert(self:integer(value, arg.column), kind)
    end
  end
  return args, 'i32'
end

function calls:call_minmax(node, a, b)
  local kind = types.common(a, b)
  a, b = norm(widen(a, kind)), norm(widen(b, kind))
  local pick = node.name == 'min' and math.min or math.max
  if a.kind == 'num' and b.kind == 'num' then
    local code = ('%s(%s, %s)'):format(node.name, a.code, b.code)
    local value = num(kind, code, ATOM, pick(a.lo, b.lo), pick(a.hi, b.hi), a, b)
    value.negative_zero = a.negative_zero or b.negative_zero
    return value
  end
  local function as_temp(value)
    local code, from = as_wide(value, kind)
    return self:spill(wide(kind, code, UNARY, from), node.column)
  end
  a, b = as_temp(a), as_temp(b)
  local code = ('%s %s %s and %s or %s'):format(a.code, node.name == 'min' and '<' or '>', b.code, a.code, b.code)
  return wide(kind, code, OR, a, b)
end

-- The functions: the types of their arguments, and either `result`, the type returned by the function of that name in
-- env, or `inline`, which generates the code. `time`: the function in env also takes the event's time.
calls.FUNCTIONS = {
  printf = { formatted = true },
  system = { formatted = true },
  strncmp = {}, -- takes strings, see call_strncmp()
  str = {}, -- takes a field, see call_str()
  user = {}, -- takes a type and a field, see call_user()
  ksymbol = { 'u64', result = 'string' },
  comm_get = { 'i32', result = 'string', time = true },
  syscall_name = { 'i32', result = 'string' },
  exit_reason_str = { 'i32', 'u32', result = 'string' },
  min = { 'integer', 'integer', inline = calls.call_minmax },
  max = { 'integer', 'integer', inline = calls.call_minmax },
  ntohl = { 'u32', inline = function(_, _, a)
    return num('u32', ('ntohl(%s)'):format(a.code), ATOM, I32.lo, I32.hi, a)
  end },
  ntohs = { 'u16', inline = function(_, _, a)
    return typed('u16', ('ntohs(%s)'):format(a.code), ATOM, a)
  end },
}

function calls:call_strncmp(node)
  if #node.args ~= 3 then self:fail(node.column, 'strncmp() takes 3 arguments') end
  local left, left_room, from_a = self:bytes(self:expression(node.args[1]), node.args[1].column)
  local right, right_room, from_b = self:bytes(self:expression(node.args[2]), node.args[2].column)
  local count = self:integer(self:expression(node.args[3]), node.args[3].column)
  if count.kind == 'wide' then count = num('i64', ('tonumber(%s)'):format(count.code), ATOM, 0, 2 ^ 64, count) end
  local code = ('strncmp(%s, %s, %s, %s, %s)'):format(left, left_room, right, right_room, norm(count).code)
  local from = { depth = math.max(from_a.depth, from_b.depth), temps = merge(from_a.temps, from_b.temps) }
  return num('i32', code, ATOM, -1, 1, from, count)
end

--- str(filename): the string behind a pointer, or a field that is a string itself.
function calls:call_str(node)
  local arg = node.args[1]
  if #node.args ~= 1 or arg.op ~= 'var' then self:fail(node.column, 'str() takes the name of a field') end
  for _, name in ipairs { views.text_field(arg.name), arg.name } do
    local field = self.fields[name]
    if field and views.is_text(field) then return self:field(name, field, arg.column) end
  end
  self:fail(arg.column, ("the record does not contain the string behind '%s'"):format(arg.name))
end

--- user("u32", uaddr): a number in a program's memory. Without it, the expression has no value.
function calls:call_user(node)
  local type, arg = node.args[1], node.args[2]
  if #node.args ~= 2 or type.op ~= 'str' or arg.op ~= 'var' then
    self:fail(node.column, 'user() takes a type in quotes and the name of a field')
  end
  local number, is_known = views.user_field(type.value, arg.name)
  if not self.fields[is_known] then
    self:fail(arg.column, ("the record does not contain the %s behind '%s'"):format(type.value, arg.name))
  end
  self:check(('%s == 0'):format(self:field(is_known, self.fields[is_known], arg.column).code))
  return self:field(number, self.fields[number], arg.column)
end

function calls:call(node)
  local name = node.name
  local spec = calls.FUNCTIONS[name]
  if not spec then
    local names = {}
    for known in pairs(calls.FUNCTIONS) do names[#names + 1] = known end
    error(diagnostic.unknown(self.what, self.text, node.column, 'function', name, names), 0)
  end
  if name == 'strncmp' then return self:call_strncmp(node) end
  if name == 'str' then return self:call_str(node) end
  if name == 'user' then return self:call_user(node) end
  if name == 'system' and not self.allow_system then
    self:fail(node.column, 'system() is not allowed because it runs commands', 'allow it with --allow-exec')
  end

  local args, result
  if spec.formatted then
    args, result = self:call_formatted(node)
  else
    if #node.args ~= #spec then
      self:fail(node.column, ('%s() takes %d argument%s'):format(name, #spec, #spec == 1 and '' or 's'))
    end
    args, result = {}, spec.result
    for i, kind in ipairs(spec) do
      local arg = node.args[i]
      local value = self:integer(self:shallow(self:expression(arg), arg.column), arg.column)
      args[i] = kind == 'integer' and value or convert(value, kind)
    end
    if spec.inline then return spec.inline(self, node, args[1], args[2]) end
  end

  local codes, from = {}, { depth = 0, temps = NONE }
  for i, arg in ipairs(args) do
    codes[i] = arg.code
    from.temps = merge(from.temps, arg.temps)
  end
  if spec.time then codes[#codes + 1] = 'e.time' end
  self.calls[name] = true
  local code = ('env.%s(%s)'):format(name, table.concat(codes, ', '))
  local value = result == 'string' and str(code, from) or typed(result, code, ATOM, from)
  return self:spill(value, node.column) -- a call has side effects and must not be moved
end

return calls
