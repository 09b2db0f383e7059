-- SPDX-License-Identifier: GPL-2.0-only
-- C expressions as a syntax tree. A node is a table with `op` and `column`:
--   num {value: number | uint64_t, type}       str {value}             var {name}
--   unary {sign, a}   deref {a}   address {a}   binary {sign, a, b}     logic {sign: && ||, a, b}
--   comma {a, b}      choose {cond, a, b}       assign {target, b, sign|nil for op=}
--   step {target, delta, prefix}                call {name, args}       index {a, b}
--   cast {type, pointer, a}                     sizeof {type, pointer | a}
--   match {a, pattern, glob, negate}            (made by the filter parser only)
--
-- Beyond C: `a ~ "glob"`, `#` comments, durations and sizes as literals (10ms, 4KiB).

local diagnostic = require 'bindings.base.diagnostic'

local parse = {}

local MAX_DEPTH = 64 -- of nested subexpressions; the code generator's nesting follows it

local BASE_TYPES = {
  char = 'i8', short = 'i16', int = 'i32', long = 'i64',
  unsigned = true, signed = true, const = true, volatile = true,
}
local TYPE_NAMES = { size_t = 'u64', ssize_t = 'i64', uintptr_t = 'u64', intptr_t = 'i64', pid_t = 'i32' }
for bits in ('8 16 32 64'):gmatch('%d+') do
  for _, sign in ipairs { 'i', 'u' } do
    local short = (sign == 'i' and 's' or 'u') .. bits
    TYPE_NAMES[short], TYPE_NAMES['__' .. short] = sign .. bits, sign .. bits
    TYPE_NAMES[(sign == 'u' and 'u' or '') .. 'int' .. bits .. '_t'] = sign .. bits
  end
end

-- Factors of literal suffixes: durations in ns, sizes in bytes.
local UNITS = {
  ns = 1, us = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9,
  KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, kB = 1e3, KB = 1e3, MB = 1e6, GB = 1e9,
}

local ESCAPES = { n = '\n', t = '\t', r = '\r', a = '\a', b = '\b', f = '\f', v = '\v', e = '\27' }

local OPERATORS = {}
for operator in ([[<<= >>= << >> <= >= == != && || ++ -- += -= *= /= %= &= |= ^=
    + - * / % & | ^ ~ ! < > = ? : , ( ) [ ] ]]):gmatch('%S+') do
  OPERATORS[operator] = true
end

-- Binary operators: binding strength, all left associative.
local BINARY = {
  ['||'] = 4, ['&&'] = 5, ['|'] = 6, ['^'] = 7, ['&'] = 8, ['=='] = 9, ['!='] = 9,
  ['<'] = 10, ['<='] = 10, ['>'] = 10, ['>='] = 10, ['~'] = 10,
  ['<<'] = 11, ['>>'] = 11, ['+'] = 12, ['-'] = 12, ['*'] = 13, ['/'] = 13, ['%'] = 13,
}
local COMMA, ASSIGN, CHOOSE, FIRST_BINARY = 1, 2, 3, 4

---@class ExprParser
---@field what string
---@field text string
---@field at integer position behind the current token
---@field kind string of the current token: num, str, name, op, eof
---@field value any
---@field column integer
---@field depth integer
---@field assigned table<string, integer> variables that are assigned to: column of the first time
local Parser = {}
Parser.__index = Parser

function Parser:fail(column, message, hint)
  error(diagnostic.new(self.what, self.text, column, message, hint), 0)
end

-- digits of the base -> exact value: a number below 2^53, else uint64_t; nil on overflow.
local function integer(digits, base)
  digits = digits:gsub('^0+(.)', '%1')
  if #digits > 22 then return nil end -- 2^64 in octal
  local number = 0
  for digit in digits:gmatch('.') do number = number * base + tonumber(digit, 16) end
  if number < 2 ^ 53 then return number end
  if number > 2 ^ 64 then return nil end
  local wide = 0ULL
  for digit in digits:gmatch('.') do
    local before = wide
    wide = wide * base + tonumber(digit, 16)
    if wide < before then return nil end
  end
  return wide
end

-- The first type of C's list for the literal that holds its value.
local function literal_type(value, suffix, decimal)
  local unsigned, long = suffix:find('[uU]'), suffix:find('[lL]')
  if not long then
    if not unsigned and value <= 0x7fffffff then return 'i32' end
    if (unsigned or not decimal) and value <= 0xffffffff then return 'u32' end
  end
  if not unsigned and value <= 0x7fffffffffffffffULL then return 'i64' end
  return 'u64'
end

local function number_suffix(suffix)
  local rest = suffix:lower()
  return rest == '' or rest == 'u' or rest == 'l' or rest == 'll' or rest == 'ul' or rest == 'ull'
    or rest == 'lu' or rest == 'llu'
end

function Parser:scan_number()
  local column = self.at
  local word = self.text:match('^[%w_.]+', column)
  self.at = column + #word
  self.kind = 'num'
  local value, kind

  local hex, suffix = word:match('^0[xX](%x+)([uUlL]*)$')
  local octal, octal_suffix = word:match('^0([0-7]*)([uUlL]*)$')
  local decimal, decimal_suffix = word:match('^(%d+)([uUlL]*)$')
  local whole, fraction, unit = word:match('^(%d+)%.?(%d*)(%a+)$')
  if hex and number_suffix(suffix) then
    value = integer(hex, 16)
    kind = value and literal_type(value, suffix, false)
  elseif octal and number_suffix(octal_suffix) then
    value = integer('0' .. octal, 8)
    kind = value and literal_type(value, octal_suffix, false)
  elseif decimal and word:sub(1, 1) ~= '0' and number_suffix(decimal_suffix) then
    value = integer(decimal, 10)
    kind = value and literal_type(value, decimal_suffix, true)
  elseif unit and UNITS[unit] then
    value = tonumber(whole .. '.' .. fraction .. '0') * UNITS[unit]
    if value ~= math.floor(value) or value > 2 ^ 53 then
      self:fail(column, ("'%s' is no whole number of %s"):format(word,
        unit:find('B') and 'bytes' or 'nanoseconds'))
    end
    kind = 'i64'
  else
    local float = word:find('^%d*%.%d*[fF]?$') or word:find('^%d+[eE]%d*$')
    self:fail(column, ("bad number '%s'"):format(word),
      float and 'expressions are integer, as in C without floating point' or nil)
  end
  if not value then self:fail(column, ("number '%s' does not fit into 64 bits"):format(word)) end
  self.value, self.type = value, kind
end

-- The characters up to the closing quote, escapes resolved.
function Parser:scan_quoted(quote)
  local text, column = self.text, self.at
  local parts, at = {}, column + 1
  while true do
    local plain, stop = text:match('^([^\\' .. quote .. ']*)()', at)
    parts[#parts + 1] = plain
    at = stop
    local char = text:sub(at, at)
    if char == quote then break end
    if char == '' or at == #text then self:fail(column, 'unclosed quote ' .. quote) end
    local hex, octal = text:match('^x(%x%x?)', at + 1), text:match('^[0-7][0-7]?[0-7]?', at + 1)
    if hex then
      parts[#parts + 1] = string.char(tonumber(hex, 16))
      at = at + 2 + #hex
    elseif octal then
      parts[#parts + 1] = string.char(tonumber(octal, 8) % 256)
      at = at + 1 + #octal
    else
      local escaped = text:sub(at + 1, at + 1)
      parts[#parts + 1] = ESCAPES[escaped] or escaped
      at = at + 2
    end
  end
  self.at = at + 1
  return table.concat(parts)
end

function Parser:advance()
  local text = self.text
  local at = self.at
  while true do
    at = text:find('%S', at) or #text + 1
    if not (text:find('^#', at) or text:find('^//', at)) then break end
    at = text:find('\n', at, true) or #text + 1
  end
  self.at, self.column = at, at
  local char = text:sub(at, at)
  if char == '' then
    self.kind, self.value = 'eof', 'the end'
  elseif char:find('%d') or text:find('^%.%d', at) then
    self:scan_number()
  elseif char:find('[%a_]') then
    self.kind, self.value = 'name', text:match('^[%w_]+', at)
    self.at = at + #self.value
  elseif char == '"' then
    -- a C string ends at its first NUL
    self.kind, self.value = 'str', self:scan_quoted('"'):match('^%Z*')
  elseif char == "'" then
    local value = self:scan_quoted("'")
    if #value ~= 1 then
      self:fail(at, 'a character constant holds one character', 'strings take double quotes')
    end
    local byte = value:byte()
    self.kind, self.value, self.type = 'num', byte > 127 and byte - 256 or byte, 'i32'
  else
    local operator = text:sub(at, at + 2)
    while #operator > 0 and not OPERATORS[operator] do operator = operator:sub(1, -2) end
    if operator == '' then self:fail(at, ("unexpected character '%s'"):format(char)) end
    self.kind, self.value = 'op', operator
    self.at = at + #operator
  end
end

function Parser:is(operator)
  return self.kind == 'op' and self.value == operator
end

function Parser:accept(operator)
  if not self:is(operator) then return false end
  self:advance()
  return true
end

function Parser:unexpected(wanted)
  local found = self.kind == 'eof' and 'the end' or
    ("'%s'"):format(self.text:sub(self.column, self.at - 1))
  self:fail(self.column, ('expected %s, found %s'):format(wanted, found))
end

function Parser:expect(operator)
  if not self:accept(operator) then self:unexpected(("'%s'"):format(operator)) end
end

function Parser:assigned_target(node, column)
  if node.op ~= 'var' then self:fail(column, 'only a variable can be assigned to') end
  self.assigned[node.name] = self.assigned[node.name] or node.column
  return node
end

-- A type name and its stars, nil where there is none (nothing is consumed then).
function Parser:parse_type()
  if self.kind ~= 'name' then return nil end
  local kind = TYPE_NAMES[self.value]
  if kind then
    self:advance()
  elseif BASE_TYPES[self.value] then
    local column, words = self.column, {}
    while self.kind == 'name' and BASE_TYPES[self.value] do
      words[self.value] = (words[self.value] or 0) + 1
      self:advance()
    end
    kind = words.char and 'i8' or words.short and 'i16' or words.long and 'i64' or 'i32'
    if words.unsigned then kind = kind:gsub('i', 'u') end
    local sizes = (words.char and 1 or 0) + (words.short and 1 or 0) + (words.long and 1 or 0)
    if sizes > 1 or (words.signed and words.unsigned) or (words.long or 0) > 2
      or (words.char and words.int) or (words.char or 0) > 1 or (words.int or 0) > 1 then
      self:fail(column, 'no such type')
    end
  else
    return nil
  end
  local pointer = 0
  while self:accept('*') do pointer = pointer + 1 end
  return kind, pointer
end

function Parser:parse_call(name, column)
  local args = {}
  if not self:accept(')') then
    repeat
      args[#args + 1] = self:parse_expression(ASSIGN)
    until not self:accept(',')
    self:expect(')')
  end
  return { op = 'call', name = name, args = args, column = column }
end

function Parser:parse_primary()
  local column, value = self.column, self.value
  if self.kind == 'num' then
    local node = { op = 'num', value = value, type = self.type, column = column }
    self:advance()
    return node
  elseif self.kind == 'str' then
    local parts = {}
    while self.kind == 'str' do
      parts[#parts + 1] = self.value
      self:advance()
    end
    return { op = 'str', value = table.concat(parts), column = column }
  elseif self.kind == 'name' then
    self:advance()
    if self:accept('(') then return self:parse_call(value, column) end
    return { op = 'var', name = value, column = column }
  elseif self:accept('(') then
    local node = self:parse_expression(COMMA)
    self:expect(')')
    return node
  end
  self:unexpected('a value')
end

function Parser:parse_postfix()
  local node = self:parse_primary()
  while true do
    local column = self.column
    if self:accept('[') then
      local index = self:parse_expression(COMMA)
      self:expect(']')
      node = { op = 'index', a = node, b = index, column = column }
    elseif self:is('++') or self:is('--') then
      local delta = self.value == '++' and 1 or -1
      self:advance()
      node = { op = 'step', target = self:assigned_target(node, column), delta = delta, column = column }
    else
      return node
    end
  end
end

-- `(type)value` at a '('; nil (and the parenthesis not consumed) where no type follows.
function Parser:parse_cast(column)
  local saved_at, saved_column = self.at, self.column
  self:advance()
  local kind, pointer = self:parse_type()
  if not kind then
    self.at, self.column, self.kind, self.value = saved_at, saved_column, 'op', '('
    return nil
  end
  self:expect(')')
  return { op = 'cast', type = kind, pointer = pointer, a = self:parse_unary(), column = column }
end

function Parser:parse_sizeof(column)
  self:advance()
  if self:accept('(') then
    local kind, pointer = self:parse_type()
    local node = { op = 'sizeof', type = kind, pointer = pointer, column = column }
    if not kind then node.a = self:parse_expression(COMMA) end
    self:expect(')')
    return node
  end
  return { op = 'sizeof', a = self:parse_unary(), column = column }
end

function Parser:parse_unary()
  local column = self.column
  self.depth = self.depth + 1
  if self.depth > MAX_DEPTH then self:fail(column, 'nested too deeply') end
  local node
  if self.kind == 'op' then
    local sign = self.value
    if sign == '(' then
      node = self:parse_cast(column)
    elseif sign == '-' or sign == '+' or sign == '!' or sign == '~' then
      self:advance()
      node = { op = 'unary', sign = sign, a = self:parse_unary(), column = column }
    elseif sign == '*' or sign == '&' then
      self:advance()
      node = { op = sign == '*' and 'deref' or 'address', a = self:parse_unary(), column = column }
    elseif sign == '++' or sign == '--' then
      self:advance()
      local target = self:assigned_target(self:parse_unary(), column)
      node = { op = 'step', target = target, delta = sign == '++' and 1 or -1, prefix = true, column = column }
    end
  elseif self.kind == 'name' and self.value == 'sizeof' then
    node = self:parse_sizeof(column)
  end
  node = node or self:parse_postfix()
  self.depth = self.depth - 1
  return node
end

local function strength(sign)
  if sign == ',' then return COMMA end
  if sign == '?' then return CHOOSE end
  return BINARY[sign] or (sign:find('=$') and ASSIGN)
end

-- An expression of operators that bind at least as strongly as min.
function Parser:parse_expression(min)
  self.depth = self.depth + 1
  if self.depth > MAX_DEPTH then self:fail(self.column, 'nested too deeply') end
  local node = self:parse_unary()
  while self.kind == 'op' do
    local sign, column = self.value, self.column
    local level = strength(sign)
    if not level or level < min then break end
    self:advance()
    if level >= FIRST_BINARY then
      local b = self:parse_expression(level + 1)
      local op = (sign == '&&' or sign == '||') and 'logic' or 'binary'
      node = { op = op, sign = sign, a = node, b = b, column = column }
    elseif level == CHOOSE then
      local a = self:parse_expression(COMMA)
      self:expect(':')
      node = { op = 'choose', cond = node, a = a, b = self:parse_expression(CHOOSE), column = column }
    elseif level == ASSIGN then
      local target = self:assigned_target(node, column)
      local b = self:parse_expression(ASSIGN)
      node = { op = 'assign', target = target, sign = sign:match('^(.+)=$'), b = b, column = column }
    else
      node = { op = 'comma', a = node, b = self:parse_expression(ASSIGN), column = column }
    end
  end
  self.depth = self.depth - 1
  return node
end

--- Parses text[first..last]. Errors are thrown as a Diagnostic.
---@param what string for error messages: what the text is
---@param text string
---@param first integer|nil
---@param last integer|nil
---@return table node
---@return table<string, integer> assigned variables that are assigned to
function parse.expression(what, text, first, last)
  local parser = setmetatable({
    what = what, text = text:sub(1, last), at = first or 1, depth = 0, assigned = {},
  }, Parser)
  parser:advance()
  if parser.kind == 'eof' then parser:fail(parser.column, 'the expression is empty') end
  local node = parser:parse_expression(COMMA)
  if parser.kind ~= 'eof' then
    parser:fail(parser.column, ("unexpected '%s'"):format(text:sub(parser.column, parser.at - 1)))
  end
  return node, parser.assigned
end

return parse
