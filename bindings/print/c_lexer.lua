-- SPDX-License-Identifier: GPL-2.0-only
--- Tokens of C expressions, as the kernel's print formats use them.
local ffi = require 'ffi'

local u64 = ffi.typeof 'uint64_t'
local i64 = ffi.typeof 'int64_t'

---@class CToken
---@field kind 'number'|'string'|'word'|'op'
---@field text string as written; of a string its value
---@field value? number|ffi.cdata*|string number: a Lua number (int, unsigned) or int64_t, uint64_t
---@field t? 'i'|'u'|'l'|'U' number: int, unsigned, long, unsigned long

local ESCAPES = { n = '\n', t = '\t', r = '\r', a = '\a', b = '\b', e = '\27', f = '\f', v = '\v' }

--- The value of a string or character literal's text between the quotes.
local function unescape(text)
  return (text:gsub('\\(.)(%x?%x?)', function(c, digits)
    if c == 'x' and digits ~= '' then return string.char(tonumber(digits, 16)) end
    if not c:find '[0-7]' then return (ESCAPES[c] or c) .. digits end
    local octal, rest = (c .. digits):match '^([0-7]+)(.*)$'
    return string.char(tonumber(octal, 8) % 256) .. rest
  end))
end

--- Value and type as C has them: the first type that holds the value.
local function number(text)
  local digits, suffix = text:match '^(.-)([uUlL]*)$'
  local base, unsigned, long = 10, suffix:find '[uU]', suffix:find '[lL]'
  if digits:find '^0[xX]' then
    base, digits = 16, digits:sub(3)
  elseif digits:find '^0' then
    base = 8
  end
  local v = u64(0)
  for digit in digits:gmatch '.' do
    local d = tonumber(digit, base)
    if not d then return nil end
    v = v * base + d
  end
  if v < 0x80000000ULL and not long then return unsigned and 'u' or 'i', tonumber(v) end
  if v <= 0xffffffffULL and not long and (unsigned or base ~= 10) then return 'u', tonumber(v) end
  if v <= 0x7fffffffffffffffULL and not unsigned then return 'l', i64(v) end
  return 'U', v
end

local OPERATORS = { '<<', '>>', '<=', '>=', '==', '!=', '&&', '||', '->' }

local function operator(text, at)
  local two = text:sub(at, at + 1)
  for _, op in ipairs(OPERATORS) do
    if two == op then return op end
  end
  return text:sub(at, at)
end

--- End of the literal that starts at `at` with a quote.
local function closing_quote(text, at)
  local quote, i = text:sub(at, at), at + 1
  while i <= #text do
    local c = text:sub(i, i)
    if c == quote then return i end
    i = i + (c == '\\' and 2 or 1)
  end
  return nil
end

local lexer = {}

---@param text string
---@return CToken[]? tokens
---@return string? reason
function lexer.tokens(text)
  local tokens, at = {}, 1
  while true do
    at = text:find('%S', at)
    if not at then return tokens end
    local c = text:sub(at, at)
    local token
    if c == '"' or c == "'" then
      local last = closing_quote(text, at)
      if not last then return nil, 'a literal without its closing quote' end
      local value = unescape(text:sub(at + 1, last - 1))
      token = c == '"' and { kind = 'string', text = value, value = value }
        or { kind = 'number', text = value, t = 'i', value = value:byte() or 0 }
      at = last + 1
    else
      local word = text:match('^[%a_][%w_]*', at)
      local digits = not word and text:match('^%d%w*', at)
      if word then
        token = { kind = 'word', text = word }
      elseif digits then
        local t, value = number(digits)
        if not t then return nil, ("'%s' is no number"):format(digits) end
        token = { kind = 'number', text = digits, t = t, value = value }
      else
        token = { kind = 'op', text = operator(text, at) }
      end
      at = at + #token.text
    end
    tokens[#tokens + 1] = token
  end
end

return lexer
