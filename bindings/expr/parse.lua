-- SPDX-License-Identifier: GPL-2.0-only
-- Parser of C expressions: those of users, and those of tracepoints' print formats. The syntax tree consists of nodes
-- with `op` and `column`:
--   num {value: number | uint64_t, type}       str {value}             var {name}
--   unary {sign, a}   deref {a}   address {a}   binary {sign, a, b}     logic {sign: && ||, a, b}
--   comma {a, b}      choose {cond, a, b}       assign {target, b, sign|nil for op=}
--   step {target, delta, prefix}                call {name, args}       index {a, b}
--   cast {type, pointer, a}                     sizeof {type, pointer | a}
-- A type is i8 to u64, and `pointer` its number of stars. Only in users' expressions:
--   binary with the sign ~, which matches a string against a glob
--   match {a, pattern, glob, negate}            (built by the filter parser)
-- Only in print formats:
--   member {a, name}: a.name, a->name           list {items}: { a, b }
--   block {steps: {name, type, pointer, a}...}: ({ type name = a; ...; a; })
--   the type 'void', which also stands for structs
-- The code generator of print formats (print/printfmt_codegen.lua) rejects unknown nodes.

local Lexer = require 'bindings.expr.lexer'
local types = require 'bindings.expr.types'

local parse = {}

local MAX_DEPTH = 100 -- nesting of subexpressions, which limits recursion over the tree

-- Binding strengths. Binary operators are left-associative.
local COMMA, ASSIGN, CHOOSE, FIRST_BINARY = 1, 2, 3, 4
local STRENGTH = {
  [','] = COMMA, ['?'] = CHOOSE,
  ['='] = ASSIGN, ['+='] = ASSIGN, ['-='] = ASSIGN, ['*='] = ASSIGN, ['/='] = ASSIGN, ['%='] = ASSIGN,
  ['&='] = ASSIGN, ['|='] = ASSIGN, ['^='] = ASSIGN, ['<<='] = ASSIGN, ['>>='] = ASSIGN,
  ['||'] = 4, ['&&'] = 5, ['|'] = 6, ['^'] = 7, ['&'] = 8, ['=='] = 9, ['!='] = 9,
  ['<'] = 10, ['<='] = 10, ['>'] = 10, ['>='] = 10, ['~'] = 10,
  ['<<'] = 11, ['>>'] = 11, ['+'] = 12, ['-'] = 12, ['*'] = 13, ['/'] = 13, ['%'] = 13,
}

local PREFIX = {
  ['-'] = 'unary', ['+'] = 'unary', ['!'] = 'unary', ['~'] = 'unary', ['*'] = 'deref', ['&'] = 'address',
}
local STEPS = { ['++'] = 1, ['--'] = -1 }

local QUALIFIERS = { const = true, volatile = true }
local TYPE_WORDS = { char = true, short = true, int = true, long = true, unsigned = true, signed = true }
local TAGS = { struct = true, union = true, enum = true }

---@class ExprParser: Lexer
---@field types table<string, string> one-word type names, possibly including `char` and the tags
---@field print_format boolean|nil
---@field depth integer
---@field assigned table<string, integer> assigned variables: column of the first assignment
---@field only_reads boolean|nil assignments are refused
local Parser = {}
Parser.__index = Parser
for name, method in pairs(Lexer) do Parser[name] = method end

function Parser:enter(column)
  self.depth = self.depth + 1
  if self.depth > MAX_DEPTH then self:fail(column, 'nested too deeply') end
end

function Parser:expect_name()
  local name = self.value
  if self.kind ~= 'name' then self:unexpected('a name') end
  self:advance()
  return name
end

function Parser:assigned_target(node, column)
  if self.only_reads then
    local is_plain = self.text:sub(column, column) == '='
    self:fail(column, 'a filter compares, it cannot assign', is_plain and "did you mean '=='?" or nil)
  end
  if node.op == 'index' then
    self:fail(node.column, 'cannot assign to an array element', 'only fields that are numbers can')
  end
  if node.op ~= 'var' or node.name:find('.', 1, true) then self:fail(column, 'only a variable can be assigned to') end
  self.assigned[node.name] = self.assigned[node.name] or node.column
  return node
end

-- Returns the type specified by C keywords; words contains their counts.
local function integer_type(words, char)
  local size = words.char and char or words.short and 'i16' or words.long and 'i64' or 'i32'
  local sizes = (words.char or 0) + (words.short or 0) + (words.long and 1 or 0)
  if sizes > 1 or (words.signed and words.unsigned) or (words.long or 0) > 2 or (words.int or 0) > 1
    or (words.char and words.int) then
    return nil
  end
  return words.unsigned and 'u' .. size:sub(2) or words.signed and 'i' .. size:sub(2) or size
end

-- Parses a type and its stars. Returns nil, without consuming anything, if there is none.
function Parser:parse_type()
  local column, words, named = self.column, {}, nil
  while self.kind == 'name' do
    local word = self.value
    if TYPE_WORDS[word] and not named then
      words[word] = (words[word] or 0) + 1
    elseif self.types[word] and not named and not next(words) then
      named = self.types[word]
      if TAGS[word] then self:advance() end
    elseif not QUALIFIERS[word] then
      break
    end
    self:advance()
  end
  if self.column == column then return nil end
  local kind = named or integer_type(words, self.types.char or 'i8') or self:fail(column, 'no such type')
  local pointer = 0
  while self:is('*') or (self.kind == 'name' and QUALIFIERS[self.value]) do
    if self.kind == 'op' then pointer = pointer + 1 end
    self:advance()
  end
  return kind, pointer
end

-- Parses expressions separated by commas, up to the closing bracket.
function Parser:parse_list(close)
  local items = {}
  if not self:accept(close) then
    repeat
      items[#items + 1] = self:parse_expression(ASSIGN)
    until not self:accept(',')
    self:expect(close)
  end
  return items
end

-- Parses the steps of a block, after its '({'.
function Parser:parse_block(column)
  local steps = {}
  repeat
    local kind, pointer = self:parse_type()
    local name = kind and self:expect_name()
    if kind then self:expect('=') end
    steps[#steps + 1] = { name = name, type = kind, pointer = pointer, a = self:parse_expression(ASSIGN) }
    self:expect(';')
  until self:accept('}')
  self:expect(')')
  return { op = 'block', steps = steps, column = column }
end

-- Parses the rest of a parenthesis: a cast with its operand, an expression, or a block.
function Parser:parse_parenthesized(column)
  if self.print_format and self:accept('{') then return self:parse_block(column) end
  local kind, pointer = self:parse_type()
  local node = not kind and self:parse_expression(COMMA)
  self:expect(')')
  return node or { op = 'cast', type = kind, pointer = pointer, a = self:parse_unary(), column = column }
end

function Parser:parse_primary()
  local column, kind, value = self.column, self.kind, self.value
  if kind == 'num' then
    local node = { op = 'num', value = value, type = self.type, column = column }
    self:advance()
    return node
  elseif kind == 'str' then
    local parts = {}
    while self.kind == 'str' do
      parts[#parts + 1] = self.value
      self:advance()
    end
    return { op = 'str', value = table.concat(parts), column = column }
  elseif kind == 'name' then
    self:advance()
    if self:accept('(') then return { op = 'call', name = value, args = self:parse_list(')'), column = column } end
    return { op = 'var', name = value, column = column }
  elseif self:accept('(') then
    return self:parse_parenthesized(column)
  elseif self.print_format and self:accept('{') then
    return { op = 'list', items = self:parse_list('}'), column = column }
  end
  self:unexpected('a value')
end

function Parser:parse_postfix()
  local node, depth = self:parse_primary(), self.depth
  while self.kind == 'op' do
    local column, sign = self.column, self.value
    if sign == '[' then
      self:advance()
      node = { op = 'index', a = node, b = self:parse_expression(COMMA), column = column }
      self:expect(']')
    elseif STEPS[sign] then
      self:advance()
      node = { op = 'step', target = self:assigned_target(node, column), delta = STEPS[sign], column = column }
    elseif self.print_format and (sign == '.' or sign == '->') then
      self:advance()
      node = { op = 'member', a = node, name = self:expect_name(), column = column }
    elseif node.op == 'var' and (sign == '.' or sign == '->') then -- a chain of members is one field
      self:advance()
      node = { op = 'var', name = node.name .. '.' .. self:expect_name(), column = node.column }
    else
      break
    end
    self:enter(column)
  end
  self.depth = depth
  return node
end

-- Parses the operand of sizeof.
function Parser:parse_sizeof(column)
  if not self:accept('(') then return { op = 'sizeof', a = self:parse_unary(), column = column } end
  local kind, pointer = self:parse_type()
  local node = { op = 'sizeof', type = kind, pointer = pointer, column = column }
  if not kind then node.a = self:parse_expression(COMMA) end
  self:expect(')')
  return node
end

function Parser:parse_unary()
  local column, sign = self.column, self.value
  self:enter(column)
  local node
  if self.kind == 'op' and PREFIX[sign] then
    self:advance()
    node = { op = PREFIX[sign], sign = sign, a = self:parse_unary(), column = column }
  elseif self.kind == 'op' and STEPS[sign] then
    self:advance()
    local target = self:assigned_target(self:parse_unary(), column)
    node = { op = 'step', target = target, delta = STEPS[sign], prefix = true, column = column }
  elseif self.kind == 'name' and sign == 'sizeof' then
    self:advance()
    node = self:parse_sizeof(column)
  else
    node = self:parse_postfix()
  end
  self.depth = self.depth - 1
  return node
end

-- Parses an expression of operators that bind at least as tightly as min.
function Parser:parse_expression(min)
  self:enter(self.column)
  local node = self:parse_unary()
  while self.kind == 'op' do
    local sign, column = self.value, self.column
    local strength = STRENGTH[sign]
    if not strength or strength < min then break end
    self:advance()
    if strength >= FIRST_BINARY then
      local op = (sign == '&&' or sign == '||') and 'logic' or 'binary'
      node = { op = op, sign = sign, a = node, b = self:parse_expression(strength + 1), column = column }
    elseif strength == CHOOSE then
      local a = self:parse_expression(COMMA)
      self:expect(':')
      node = { op = 'choose', cond = node, a = a, b = self:parse_expression(CHOOSE), column = column }
    elseif strength == ASSIGN then
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

-- Returns a parser at the first token of the text, which must not be empty.
local function start(what, text, at, names)
  local parser = setmetatable({ what = what, text = text, at = at, types = names, depth = 0, assigned = {} }, Parser)
  parser:advance()
  if parser.kind == 'eof' then parser:fail(parser.column, 'the expression is empty') end
  return parser
end

--- Parses a user's expression in text[first..last]. Errors are thrown as a Diagnostic.
---@param what string name of the text in error messages
---@param text string
---@param first integer|nil
---@param last integer|nil
---@param only_reads boolean|nil it is a filter: an assignment would be a misspelled comparison
---@return table node
---@return table<string, integer> assigned see ExprParser
function parse.expression(what, text, first, last, only_reads)
  local parser = start(what, text:sub(1, last), first or 1, types.NAMES)
  parser.only_reads = only_reads
  local node = parser:parse_expression(COMMA)
  if parser.kind ~= 'eof' then parser:unexpected() end
  return node, parser.assigned
end

--- Parses a print format: "format", argument, ... Errors are thrown as a Diagnostic.
---@param text string
---@param names table<string, string> one-word type names, `char`, and the tags
---@return table[] nodes
function parse.print_format(text, names)
  local parser, nodes = start('print format', text, 1, names), {}
  parser.print_format = true
  repeat
    nodes[#nodes + 1] = parser:parse_expression(ASSIGN)
  until not parser:accept(',')
  if parser.kind ~= 'eof' then parser:unexpected() end
  return nodes
end

--- Takes a chain like a + b + c apart, which nests to the left. It may be long, so users of a tree do not recurse over
--- it.
---@param node table
---@param links table<string, boolean> which nodes continue the chain, by op
---@return table[] spine the links, outermost first
---@return table first the operand at the left end
function parse.spine(node, links)
  local spine = {}
  while links[node.op] do
    spine[#spine + 1] = node
    node = node.a
  end
  return spine, node
end

return parse
