-- SPDX-License-Identifier: GPL-2.0-only
-- Parser of the kernel's tracepoint filter language. It builds the syntax tree of parse.lua such that a filter has the
-- same meaning in user space as in the kernel: a value is truncated to the width of its field, `&` tests bits, and `!`
-- negates the following term.
--
-- It does not reproduce two bugs of the kernel: `~ "*x"` on a fixed array or COMM matches at the end of the array
-- instead of the end of the string, and `~ "1*"` (with a leading digit) is not a glob. Filters with one of these are
-- marked and evaluated in user space. So are filters with an unquoted string, which perf-prof accepts
-- (`filename ~ *touch`).

local ffi = require 'ffi'
local cpu_list = require 'bindings.base.cpu_list'
local diagnostic = require 'bindings.base.diagnostic'
local Lexer = require 'bindings.expr.lexer'
local has = require('bindings.view.views').has

local C = ffi.C
local filter = {}

local MAX_DEPTH = 64
local MAX_STRING = 256 -- the kernel's MAX_FILTER_STR_VAL

local COMPARISONS = {
  ['~'] = true, ['!='] = true, ['=='] = true, ['<='] = true, ['<'] = true, ['>='] = true, ['>'] = true, ['&'] = true,
}
local DIGITS = { [8] = '^[0-7]+$', [10] = '^%d+$', [16] = '^%x+$' }

local Parser = {}
Parser.__index = Parser

function Parser:fail(column, message, hint, kernel_only)
  local err = diagnostic.new('filter', self.text, column, message, hint)
  err.kernel_only = kernel_only
  error(err, 0)
end

function Parser:skip_blanks()
  self.at = self.text:find('%S', self.at) or #self.text + 1
end

-- Parses a field of the event, or the kernel's generic field of that name.
function Parser:find_field()
  local column = self.at
  local name = self.text:match('^[%w_]+', column)
  if not name then
    local found = self.text:sub(column, column)
    self:fail(column, found == '' and 'missing comparison'
      or ("expected a field name, found '%s'"):format(found))
  end
  self.at = column + #name
  local field = self.fields[name]
  if field then return { op = 'var', name = name, column = column }, field end
  if name == 'cpu' or name == 'CPU' or name == 'common_cpu' then
    return { op = 'var', name = '_cpu', column = column }, { name = name, size = 4, flags = C.FIELD_SIGNED }
  elseif name == 'comm' or name == 'COMM' then
    return { op = 'var', name = '_comm', column = column },
      { name = name, size = 16, flags = C.FIELD_ARRAY + C.FIELD_STRING }
  end
  local names = {}
  for known in pairs(self.fields) do names[#names + 1] = known end
  error(diagnostic.unknown('filter', self.text, column, 'field', name, names), 0)
end

function Parser:parse_operator()
  local operator = Lexer.operator(self.text, self.at)
  if not COMPARISONS[operator] then self:fail(self.at, 'expected an operator: == != < <= > >= & ~') end
  self.at = self.at + #operator
  return operator
end

-- Parses a number as the kernel's kstrtoll() and kstrtoull() do, and returns a node of the field's type.
function Parser:parse_number(field)
  local column = self.at
  local word = self.text:match('^%-?%w*', column)
  local minus, digits = word:match('^(%-?)(.*)$')
  local signed = has(field, 'SIGNED')
  if minus == '-' and not signed then
    self:fail(column, ("field '%s' is unsigned"):format(field.name))
  end
  local base, body = 10, digits
  if digits:find('^0[xX]') then
    base, body = 16, digits:sub(3)
  elseif digits:find('^0.') then
    base, body = 8, digits:sub(2)
  end
  if not body:find(DIGITS[base]) then self:fail(column, ("invalid number '%s'"):format(word)) end
  local value = Lexer.integer(body, base)
  local limit = minus == '-' and 0x8000000000000000ULL or signed and 0x7fffffffffffffffULL or 0xffffffffffffffffULL
  if not value or value > limit then self:fail(column, ("number '%s' does not fit in 64 bits"):format(word)) end
  self.at = column + #word
  local node = { op = 'num', value = value, type = signed and 'i64' or 'u64', column = column }
  if minus == '-' then node = { op = 'unary', sign = '-', a = node, column = column } end
  return { op = 'cast', type = (signed and 'i' or 'u') .. field.size * 8, pointer = 0, a = node, column = column }
end

function Parser:parse_string()
  local column = self.at
  local quote = self.text:match('^["\']', column)
  local value
  if quote then
    value = self.text:match('^([^' .. quote .. ']*)' .. quote, column + 1)
    if not value then self:fail(column, 'unclosed quote ' .. quote) end
    self.at = column + #value + 2
  else
    value = self.text:match('^[^%s()&|"\']+', column)
    self.at = column + #value
    self.user_only = true
  end
  if #value >= MAX_STRING then self:fail(column, ('longer than %d characters'):format(MAX_STRING - 1)) end
  return value
end

function Parser:match_string(variable, field, operator, column)
  if operator ~= '==' and operator ~= '!=' and operator ~= '~' then
    self:fail(column, ("strings can be compared with == != ~, not with '%s'"):format(operator))
  end
  if has(field, 'POINTER') then
    self:fail(variable.column, ("field '%s' points to the traced system's memory, which only the kernel can read")
      :format(field.name), nil, true)
  end
  local pattern = self:parse_string()
  local node = { op = 'match', a = variable, pattern = pattern, glob = operator == '~',
    negate = operator == '!=', column = variable.column }
  if node.glob then
    if pattern:find('^!') then node.pattern, node.negate = pattern:sub(2), true end
    local plain = node.pattern
    local suffix = plain:find('^%*[^*?%[\\]+$') and not has(field, 'DYNAMIC')
    if suffix or plain:find('^%d.*[*?%[\\]') then self.user_only = true end
  end
  return node
end

-- Parses field OP CPUS{list}, which compares a CPU number with a set. As in the kernel, a set of one CPU is a number.
function Parser:match_cpus(variable, field, operator, column)
  local list = self.text:match('^CPUS(%b{})', self.at)
  if not list then self:fail(self.at, 'expected CPUS{LIST}') end
  if has(field, 'DYNAMIC') or has(field, 'ARRAY') then
    self:fail(variable.column, ("only the kernel can filter the CPU mask '%s'"):format(field.name), nil, true)
  end
  if operator ~= '==' and operator ~= '!=' and operator ~= '&' then
    self:fail(column, ("CPUS{} takes == != &, not '%s'"):format(operator))
  end
  local function compare(sign, value)
    local number = { op = 'num', value = value, type = 'i32', column = self.at }
    return { op = 'binary', sign = sign, a = variable, b = number, column = column }
  end
  local ranges, wrong = cpu_list.parse(list:sub(2, -2))
  if not ranges then
    self:fail(self.at + 4 + wrong, ("invalid CPU list '%s'"):format(list:sub(2, -2)), 'expected e.g. 0-3,7')
  end
  local node, count = nil, 0
  for _, range in ipairs(ranges) do
    local term = range.first == range.last and compare('==', range.first)
      or { op = 'logic', sign = '&&', a = compare('>=', range.first), b = compare('<=', range.last), column = column }
    node = node and { op = 'logic', sign = '||', a = node, b = term, column = column } or term
    count = count + range.last - range.first + 1
  end
  self.at = self.at + 4 + #list
  if count > 1 and operator ~= '&' then
    -- A CPU never equals a set of several CPUs.
    return { op = 'num', value = operator == '!=' and 1 or 0, type = 'i32', column = column }
  end
  return operator == '!=' and { op = 'unary', sign = '!', a = node, column = column } or node
end

function Parser:parse_comparison()
  local variable, field = self:find_field()
  local suffix = self.text:match('^%.%w+', self.at)
  if suffix == '.ustring' or suffix == '.function' then
    self:fail(self.at, ("only the kernel can evaluate '%s'"):format(suffix), nil, true)
  end
  self:skip_blanks()
  local column = self.at
  local operator = self:parse_operator()
  self:skip_blanks()
  local text, at = self.text, self.at
  local is_string = has(field, 'STRING')
    or (has(field, 'POINTER') and (field.type or ''):find('^c?o?n?s?t?%s*char %*$') ~= nil)

  if text:find('^CPUS{', at) then return self:match_cpus(variable, field, operator, column) end
  if at > #text then self:fail(at, 'missing value') end
  if is_string then
    if has(field, 'POINTER') and not text:find('^["\']', at) then
      self:fail(at, 'expected a quoted string')
    end
    if text:find('^[()&|]', at) then self:fail(at, 'expected a string') end
    if text:find('^%-?%d', at) and operator ~= '~' then self:fail(at, 'expected a quoted string') end
    return self:match_string(variable, field, operator, column)
  end
  if text:find('^["\']', at) then self:fail(at, ("field '%s' is not a string"):format(field.name)) end
  if has(field, 'ARRAY') or has(field, 'DYNAMIC') or not (' 1 2 4 8 '):find(' ' .. field.size .. ' ') then
    self:fail(variable.column, ("field '%s' is not a single number"):format(field.name))
  end
  if operator == '~' then self:fail(column, "'~' compares strings") end
  if not text:find('^%-?%d', at) then self:fail(at, 'expected a number') end
  local value = self:parse_number(field)
  local node = { op = 'binary', sign = operator, a = variable, b = value, column = column }
  if operator ~= '&' then return node end
  local zero = { op = 'num', value = 0, type = 'i32', column = column }
  return { op = 'binary', sign = '!=', a = node, b = zero, column = column }
end

function Parser:parse_term()
  self.depth = self.depth + 1
  if self.depth > MAX_DEPTH then self:fail(self.at, 'nested too deeply') end
  self:skip_blanks()
  local column = self.at
  local node
  if self.text:find('^!', column) then
    self.at = column + 1
    node = { op = 'unary', sign = '!', a = self:parse_term(), column = column }
  elseif self.text:find('^%(', column) then
    self.at = column + 1
    node = self:parse_chain('||')
    if not self.text:find('^%)', self.at) then self:fail(column, "unclosed parenthesis '('") end
    self.at = self.at + 1
    self:skip_blanks()
  else
    node = self:parse_comparison()
    self:skip_blanks()
  end
  self.depth = self.depth - 1
  return node
end

function Parser:parse_chain(sign)
  local node
  repeat
    local column = self.at
    if node then self.at = self.at + 2 end
    local term
    if sign == '||' then term = self:parse_chain('&&') else term = self:parse_term() end
    node = node and { op = 'logic', sign = sign, a = node, b = term, column = column } or term
  until self.text:sub(self.at, self.at + 1) ~= sign
  return node
end

--- Parses the filter in text[first..last]. Errors are thrown as a Diagnostic, with kernel_only set if the filter cannot
--- be evaluated here but may be valid for the kernel.
---@param text string
---@param fields table<string, Field>
---@param first integer|nil
---@param last integer|nil
---@return table node
---@return boolean user_only the kernel rejects it or evaluates it incorrectly
function filter.parse(text, fields, first, last)
  local parser = setmetatable({
    text = text:sub(1, last), at = first or 1, depth = 0, fields = fields, user_only = false,
  }, Parser)
  parser:skip_blanks()
  if parser.at > #parser.text then parser:fail(parser.at, 'the filter is empty') end
  local node = parser:parse_chain('||')
  if parser.at <= #parser.text then
    local found = parser.text:match('^[%w_]+', parser.at) or parser.text:sub(parser.at, parser.at)
    parser:fail(parser.at, ("unexpected '%s'"):format(found))
  end
  return node, parser.user_only
end

return filter
