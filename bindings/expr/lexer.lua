-- SPDX-License-Identifier: GPL-2.0-only
-- Lexer of C expressions. Its state is the current token:
--   kind    value
--   num     a Lua number below 2^53, otherwise a uint64_t; `type` is its C type
--   str     the characters, with escapes resolved
--   name    the identifier, keywords included
--   op      the operator
--   eof     'the end'
-- and its `column`. In addition to C, it accepts `#` comments, and durations and sizes as numbers (10ms, 4KiB).

local diagnostic = require 'bindings.base.diagnostic'
local types = require 'bindings.expr.types'

-- Durations in ns, sizes in bytes.
local UNITS = {
  ns = 1, us = 1e3, ms = 1e6, s = 1e9, min = 60e9, h = 3600e9,
  KiB = 2 ^ 10, MiB = 2 ^ 20, GiB = 2 ^ 30, kB = 1e3, KB = 1e3, MB = 1e6, GB = 1e9,
}

local SUFFIXES = { [''] = true, u = true, l = true, ll = true, ul = true, ull = true, lu = true, llu = true }

local ESCAPES = { n = '\n', t = '\t', r = '\r', a = '\a', b = '\b', f = '\f', v = '\v', e = '\27' }

local OPERATORS, LONGEST = {}, {} -- LONGEST: by first character, the length of the longest operator
for operator in ([[<<= >>= << >> <= >= == != && || ++ -- += -= *= /= %= &= |= ^= ->
    + - * / % & | ^ ~ ! < > = ? : , . ; ( ) [ ] { } ]]):gmatch('%S+') do
  local first = operator:sub(1, 1)
  OPERATORS[operator] = true
  LONGEST[first] = math.max(LONGEST[first] or 0, #operator)
end

---@class Lexer
---@field what string name of the text in error messages
---@field text string
---@field at integer position after the current token
---@field column integer position of the current token
---@field kind 'num'|'str'|'name'|'op'|'eof'
---@field value any
---@field type string|nil
local Lexer = {}

function Lexer:fail(column, message, hint)
  error(diagnostic.new(self.what, self.text, column, message, hint), 0)
end

local MAX = 0xffffffffffffffffULL

--- Returns the value of digits: a Lua number below 2^53, otherwise a uint64_t; nil if it does not fit in 64 bits.
---@param digits string
---@param base integer 8, 10 or 16
---@return number|ffi.cdata*|nil
function Lexer.integer(digits, base)
  local number = tonumber(digits, base)
  if number < 2 ^ 53 then return number end
  local wide = 0ULL
  for digit in digits:gmatch('.') do
    digit = tonumber(digit, 16)
    if wide > (MAX - digit) / base then return nil end
    wide = wide * base + digit
  end
  return wide
end

--- Returns the longest operator at a position, nil if there is none.
---@param text string
---@param at integer
---@return string|nil
function Lexer.operator(text, at)
  for length = LONGEST[text:sub(at, at)] or 0, 1, -1 do
    local operator = text:sub(at, at + length - 1)
    if OPERATORS[operator] then return operator end
  end
end

function Lexer:scan_integer(word, digits, base, suffix)
  self.value = Lexer.integer(digits, base)
  if not self.value then self:fail(self.column, ("number '%s' does not fit in 64 bits"):format(word)) end
  self.type = types.of_literal(self.value, suffix, base == 10)
end

function Lexer:scan_number(at)
  local word = self.text:match('^[%w_.]+', at)
  self.kind, self.at = 'num', at + #word
  local digits, suffix = word:match('^(%d+)([uUlL]*)$')
  local base = digits and digits:find('^0.') and 8 or 10
  if not digits then
    digits, suffix = word:match('^0[xX](%x+)([uUlL]*)$')
    base = 16
  end
  if digits and SUFFIXES[suffix:lower()] and (base ~= 8 or not digits:find('[89]')) then
    return self:scan_integer(word, digits, base, suffix)
  end
  local whole, fraction, unit = word:match('^(%d+)%.?(%d*)(%a+)$')
  if not UNITS[unit] then
    local float = word:find('^%d*%.%d*[fF]?$') or word:find('^%d+[eE]%d*$')
    self:fail(at, ("invalid number '%s'"):format(word), float and 'floating point is not supported' or nil)
  end
  local value = tonumber(whole .. '.' .. fraction .. '0') * UNITS[unit]
  if value ~= math.floor(value) or value > 2 ^ 53 then
    self:fail(at, ("'%s' is not a whole number of %s"):format(word, unit:find('B') and 'bytes' or 'nanoseconds'))
  end
  self.value, self.type = value, 'i64'
end

-- Returns the characters up to the closing quote.
function Lexer:scan_quoted(quote, at)
  local text, parts = self.text, {}
  at = at + 1
  while true do
    local plain, stop = text:match('^([^\\' .. quote .. ']*)()', at)
    parts[#parts + 1] = plain
    at = stop
    local char = text:sub(at, at)
    if char == quote then break end
    if char == '' or at == #text then self:fail(self.column, 'unclosed quote ' .. quote) end
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

function Lexer:scan_string(at)
  self.kind, self.value = 'str', self:scan_quoted('"', at):match('^%Z*') -- a C string ends at its first NUL
end

function Lexer:scan_character(at)
  local value = self:scan_quoted("'", at)
  if #value ~= 1 then
    self:fail(at, 'a character constant must have exactly one character', 'quote strings with "')
  end
  local byte = value:byte()
  self.kind, self.value, self.type = 'num', byte > 127 and byte - 256 or byte, 'i32'
end

function Lexer:scan_name(at)
  self.kind, self.value = 'name', self.text:match('^[%w_]+', at)
  self.at = at + #self.value
end

function Lexer:scan_operator(at)
  if self.text:find('^%.%d', at) then return self:scan_number(at) end
  local operator = Lexer.operator(self.text, at)
  if not operator then self:fail(at, ("unexpected character '%s'"):format(self.text:sub(at, at))) end
  self.kind, self.value, self.at = 'op', operator, at + #operator
end

local SCANNERS = { -- by what a token begins with
  { '^"', Lexer.scan_string }, { "^'", Lexer.scan_character }, { '^[%a_]', Lexer.scan_name },
  { '^%d', Lexer.scan_number }, { '', Lexer.scan_operator },
}

--- Advances to the next token.
function Lexer:advance()
  local text = self.text
  local at, char = text:match('^%s*()(.?)', self.at)
  while char == '#' or (char == '/' and text:find('^/', at + 1)) do
    at, char = text:match('^[^\n]*%s*()(.?)', at)
  end
  self.column = at
  if char == '' then
    self.kind, self.value, self.at = 'eof', 'the end', at
    return
  end
  for _, one in ipairs(SCANNERS) do
    if char:find(one[1]) then return one[2](self, at) end
  end
end

function Lexer:is(operator)
  return self.kind == 'op' and self.value == operator
end

function Lexer:accept(operator)
  if not self:is(operator) then return false end
  self:advance()
  return true
end

function Lexer:unexpected(wanted)
  local found = self.kind == 'eof' and 'the end' or ("'%s'"):format(self.text:sub(self.column, self.at - 1))
  self:fail(self.column, wanted and ('expected %s, found %s'):format(wanted, found) or 'unexpected ' .. found)
end

function Lexer:expect(operator)
  if not self:accept(operator) then self:unexpected(("'%s'"):format(operator)) end
end

return Lexer
