-- SPDX-License-Identifier: GPL-2.0-only
--- C expressions of print formats as Lua source: REC, its fields, casts, and the functions print
--- formats call. Used by printfmt only.
local bit = require 'bit'
local ffi = require 'ffi'
local kprintf = require 'bindings.print.kprintf'
local c = require 'bindings.print.c_node'
local lexer = require 'bindings.print.c_lexer'

local C = ffi.C

local BINARY, convert, give_up, number = c.BINARY, c.convert, c.give_up, c.number

-- Nodes of c_node; bytes of the payload are nodes m with `code`, their offset, `room`, their number,
-- both as code, and `elem`, the type of one: 'i1' to 'i8', 'u1' to 'u8'. Where the place is fixed:
-- `offset` and `bytes` as numbers, else `word` and `base` of the dynamic field.

local DEPTH_MAX = 100 -- levels of nesting

local function has(field, flag) return bit.band(field.flags, flag) ~= 0 end

-- Bytes and sign of the types formats cast to.
local TYPE = {}
for name, words in pairs {
  i1 = 's8 __s8 int8_t',
  u1 = 'u8 __u8 uint8_t bool _Bool char uchar',
  i2 = 's16 __s16 int16_t short',
  u2 = 'u16 __u16 uint16_t __le16 __be16 ushort umode_t',
  i4 = 's32 __s32 int32_t int pid_t __kernel_rwf_t',
  u4 = 'u32 __u32 uint32_t __le32 __be32 uint uid_t gid_t dev_t gfp_t xfs_agnumber_t xfs_agblock_t',
  i8 = 's64 __s64 int64_t long ssize_t loff_t off_t time64_t ktime_t xfs_daddr_t xfs_lsn_t xfs_off_t',
  u8 = 'u64 __u64 uint64_t __le64 __be64 size_t ulong uintptr_t sector_t dma_addr_t phys_addr_t ino_t '
    .. 'xfs_ino_t xfs_fsblock_t',
} do
  for word in words:gmatch '%S+' do
    TYPE[word] = name
  end
end
local BASE_WORDS = { unsigned = true, signed = true, long = true, short = true, int = true, char = true }
local QUALIFIERS = { const = true, volatile = true }
local TAGS = { struct = true, union = true, enum = true }

--- Constants that formats name without defining them.
local CONSTANTS = {
  HI_SOFTIRQ = 0, TIMER_SOFTIRQ = 1, NET_TX_SOFTIRQ = 2, NET_RX_SOFTIRQ = 3, BLOCK_SOFTIRQ = 4,
  IRQ_POLL_SOFTIRQ = 5, TASKLET_SOFTIRQ = 6, SCHED_SOFTIRQ = 7, HRTIMER_SOFTIRQ = 8, RCU_SOFTIRQ = 9,
  HRTIMER_NORESTART = 0, HRTIMER_RESTART = 1,
  TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_SYN_RECV = 3, TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5,
  TCP_TIME_WAIT = 6, TCP_CLOSE = 7, TCP_CLOSE_WAIT = 8, TCP_LAST_ACK = 9, TCP_LISTEN = 10,
  IOPRIO_CLASS_NONE = 0, IOPRIO_CLASS_RT = 1, IOPRIO_CLASS_BE = 2, IOPRIO_CLASS_IDLE = 3,
  TCP_CLOSING = 11, TCP_NEW_SYN_RECV = 12, ['false'] = 0, ['true'] = 1,
}

local Parser = {}
Parser.__index = Parser

function Parser:peek() return self.tokens[self.at] or { kind = 'end', text = 'the end' } end

function Parser:next()
  local token = self:peek()
  self.at = self.at + 1
  return token
end

function Parser:is(text)
  local token = self:peek()
  return token.text == text and token.kind ~= 'string'
end

function Parser:accept(text)
  if not self:is(text) then return false end
  self.at = self.at + 1
  return true
end

function Parser:expect(text)
  if not self:accept(text) then give_up("'%s' where '%s' belongs", self:peek().text, text) end
end

function Parser:word()
  local token = self:next()
  if token.kind ~= 'word' then give_up("'%s' where a name belongs", token.text) end
  return token.text
end

--- A Lua value the code may use as an upvalue.
function Parser:use(value, prefix)
  local name = self.names[value]
  if not name then
    self.values[#self.values + 1] = value
    name = prefix .. '_' .. #self.values
    self.names[value] = name
  end
  return name
end

--- Use of a function of kprintf.
function Parser:helper(name) return self:use(self.bound[name] or kprintf[name], name) end

local function bytes_of(elem) return tonumber(elem:sub(2)) end
local function is_signed(elem) return elem:sub(1, 1) == 'i' end

-- The arithmetic types of elements of four and eight bytes.
local WIDE = { i4 = 'i', u4 = 'u', i8 = 'l', u8 = 'U' }

--- Load of an integer at an offset that the size check at the start covers.
function Parser:load(elem, offset)
  local function code(name)
    if name == 'u1' then return ('raw[%d]'):format(offset) end
    return ('cast(%s, raw + %d)[0]'):format(self:use(kprintf.TYPES[name], name), offset)
  end
  local bytes = bytes_of(elem)
  self.need = math.max(self.need, offset + bytes)
  local n = { t = WIDE[elem] or 'i', code = code(elem) }
  if bytes == 4 then
    n.flip = code(elem == 'i4' and 'u4' or 'i4')
  elseif bytes < 4 and not is_signed(elem) then
    n.small = 256 ^ bytes - 1
  end
  return n
end

local SIZES = { [1] = true, [2] = true, [4] = true, [8] = true }

--- Type of one element of a field.
local function elem_of(field)
  if not SIZES[field.elem_size] then give_up('a field of %d bytes', field.elem_size) end
  return (has(field, C.FIELD_SIGNED) and 'i' or 'u') .. field.elem_size
end

function Parser:field(name)
  local field = self.fields[name]
  if not field then give_up("no field '%s'", name) end
  self.need = math.max(self.need, field.offset + field.size)
  return field
end

--- REC->name.
function Parser:record_field()
  local name = self:word()
  local field = self:field(name)
  if has(field, C.FIELD_DYNAMIC) then return self:load('u4', field.offset) end
  if not has(field, C.FIELD_ARRAY) then return self:load(elem_of(field), field.offset) end
  return {
    t = 'm',
    code = tostring(field.offset),
    room = field.size > 0 and tostring(field.size) or ('(size - %d)'):format(field.offset),
    bytes = field.size,
    offset = field.offset,
    elem = elem_of(field),
  }
end

--- __get_str(name), __get_dynamic_array(name) and their __rel forms: the bytes of a dynamic field.
function Parser:dynamic_field()
  local field = self:field(self:word())
  self:expect ')'
  if not has(field, C.FIELD_DYNAMIC) then give_up('a fixed field as a dynamic one') end
  local word = self:load('u4', field.offset).flip
  local base = has(field, C.FIELD_RELATIVE) and field.offset + field.size or 0
  return {
    t = 'm',
    code = ('(band(%s, 0xffff) + %d)'):format(word, base),
    room = ('rshift(%s, 16)'):format(word),
    elem = elem_of(field),
    word = word,
    base = base,
  }
end

--- One element of an array.
function Parser:element(array, index)
  if array.t ~= 'm' then give_up('an index into a number') end
  local bytes = bytes_of(array.elem)
  if index.k and array.offset then
    local i = tonumber(c.value_of(index))
    if i >= 0 and (i + 1) * bytes <= array.bytes then return self:load(array.elem, array.offset + i * bytes) end
  end
  index = number(index)
  local i = c.RANK[index.t] > c.RANK.u and 'tonumber(' .. index.code .. ')' or index.code
  local n = self:load(array.elem, 0)
  n.code = ('%s(raw, size, %s + %s * %d)'):format(self:helper('load_' .. array.elem), array.code, i, bytes)
  n.flip = nil
  return n
end

--- A node as text of %s.
function Parser:text(n)
  if n.t == 's' then return n.code end
  if n.t == 'U' then return ('%s(%s)'):format(self:helper 'kernel_string', n.code) end
  if n.t ~= 'm' or not n.elem:match '1$' then give_up('a number as a string') end
  if n.word then return ('%s(raw, size, %s, %d)'):format(self:helper 'dynamic_string', n.word, n.base) end
  return ('%s(raw, %s, %s)'):format(self:helper 'fixed_string', n.code, n.room)
end

--- A call of a helper that wants (raw, offset, ...) with `bytes` there.
function Parser:at_bytes(helper, n, bytes, ...)
  if n.t ~= 'm' then give_up('%s of a number', helper) end
  local call = ('%s(raw, %s)'):format(self:helper(helper), table.concat({ n.code, ... }, ', '))
  if n.bytes and n.bytes >= tonumber(bytes) then return call end
  if n.bytes and n.bytes > 0 then give_up('%s of %d bytes', helper, n.bytes) end
  return ('(%s + %s <= size and %s or %q)'):format(n.code, bytes, call, kprintf.BAD)
end

--- A call of a helper that wants (raw, offset, room, ...).
function Parser:at_room(helper, n, ...)
  if n.t ~= 'm' then give_up('%s of a number', helper) end
  local call = ('%s(raw, %s)'):format(self:helper(helper), table.concat({ n.code, n.room, ... }, ', '))
  if not n.word then return call end
  return ('(%s + %s <= size and %s or %q)'):format(n.code, n.room, call, kprintf.BAD)
end

--- Adjacent string literals, fit for output.
function Parser:strings()
  local parts = {}
  while self:peek().kind == 'string' do
    parts[#parts + 1] = self:next().value
  end
  if #parts == 0 then give_up("'%s' where a string belongs", self:peek().text) end
  return self.bound.literal(table.concat(parts))
end

--- Value of an entry of a names list; nil where it is made of names the format does not define.
--- Such an entry never matches, so its values show as numbers.
function Parser:entry_value()
  local start, depth = self.at, self.depth
  local ok, value = pcall(function() return convert(self:expression(), 'U') end)
  if ok then return value.k and c.value_of(value) or give_up 'a name of a variable value' end
  if type(value) ~= 'table' or not value.unknown then error(value, 0) end
  self.at, self.depth = start, depth
  local open = 0
  while open > 0 or not self:is ',' do
    local token = self:next()
    if token.kind == 'end' then error(value, 0) end
    open = open + (token.text == '(' and 1 or token.text == ')' and -1 or 0)
  end
  return nil
end

--- ", { value, "name" }, ..." up to the closing parenthesis. A null pointer instead of a name ends
--- the list.
function Parser:names_list()
  local list = {}
  while self:accept ',' do
    self:expect '{'
    if not self:is '}' then
      local value = self:entry_value()
      self:expect ','
      if self:peek().kind == 'string' then
        local name = self:strings()
        if value then list[#list + 1] = { value, name } end
      elseif not self:accept 'NULL' then
        self:expression()
      end
    end
    self:expect '}'
  end
  self:expect ')'
  return list
end

--- The functions of print formats, called behind "name(".
local FUNCTIONS = {}

function FUNCTIONS.__print_symbolic(p)
  local n = number(p:expression())
  local map = kprintf.symbolic(p:names_list())
  return { t = 's', code = ('%s(%s)'):format(p:use(map, 'symbolic'), n.code) }
end

function FUNCTIONS.__print_flags(p)
  local n = number(p:expression())
  p:expect ','
  local delim = p:accept 'NULL' and '' or p:strings()
  local map = kprintf.flags(p:names_list(), delim)
  return { t = 's', code = ('%s(%s)'):format(p:use(map, 'flags'), n.code) }
end

FUNCTIONS.__print_symbolic_u64 = FUNCTIONS.__print_symbolic
FUNCTIONS.__print_flags_u64 = FUNCTIONS.__print_flags

local function print_hex(p, delim)
  local array = p:expression()
  p:expect ','
  local count = convert(p:expression(), 'i')
  p:expect ')'
  return { t = 's', code = p:at_room('hex', array, count.code, ('%q'):format(delim)) }
end
function FUNCTIONS.__print_hex(p) return print_hex(p, ' ') end
function FUNCTIONS.__print_hex_str(p) return print_hex(p, '') end

function FUNCTIONS.__print_array(p)
  local array = p:expression()
  p:expect ','
  local count = convert(p:expression(), 'i')
  p:expect ','
  local elem_size = convert(p:expression(), 'i')
  p:expect ')'
  return { t = 's', code = p:at_room('array', array, count.code, elem_size.code) }
end

for _, name in ipairs { 'str', 'dynamic_array', 'sockaddr' } do
  FUNCTIONS['__get_' .. name] = Parser.dynamic_field
  FUNCTIONS['__get_rel_' .. name] = Parser.dynamic_field
end

local function dynamic_length(p) return { t = 'i', code = p:dynamic_field().room, small = 65535 } end
FUNCTIONS.__get_dynamic_array_len = dynamic_length
FUNCTIONS.__get_rel_dynamic_array_len = dynamic_length

for name, helper in pairs { bitmask = 'bitmask', cpumask = 'bitlist' } do
  local function mask(p) return { t = 's', code = p:at_room(helper, p:dynamic_field()) } end
  FUNCTIONS['__get_' .. name] = mask
  FUNCTIONS['__get_rel_' .. name] = mask
end

function FUNCTIONS.__builtin_expect(p)
  local n = p:expression()
  p:expect ','
  p:expression()
  p:expect ')'
  return n
end

--- A type name, if one is here: its element type ('void' where unknown) and the number of stars.
function Parser:type_name()
  local start, base, long, unsigned = self.at, nil, 0, false
  while self:peek().kind == 'word' do
    local word = self:peek().text
    if TAGS[word] then
      self.at = self.at + 2
      base = word == 'enum' and 'i4' or 'void'
    elseif QUALIFIERS[word] then
      self.at = self.at + 1
    elseif BASE_WORDS[word] and (not base or base == 'word') or word == 'void' or TYPE[word] and not base then
      self.at = self.at + 1
      if word == 'void' then
        base = 'void'
      elseif not BASE_WORDS[word] then
        base = TYPE[word]
      else
        base = 'word'
        long = long + (word == 'long' and 1 or word == 'short' and -1 or word == 'char' and -2 or 0)
        unsigned = unsigned or word == 'unsigned'
      end
    else
      break
    end
  end
  if not base then
    self.at = start
    return nil
  end
  if base == 'word' then
    local bytes = long > 0 and 8 or long == -1 and 2 or long == -2 and 1 or 4
    base = ((unsigned or long == -2) and 'u' or 'i') .. bytes
  end
  local stars = 0
  while self:accept '*' or self:accept 'const' do
    stars = stars + 1
  end
  return base, stars
end

--- The node converted to an integer type.
local function to_elem(n, elem)
  return WIDE[elem] and convert(n, WIDE[elem]) or c.narrow(n, bytes_of(elem), is_signed(elem))
end

--- (type) expression.
function Parser:cast(base, stars)
  local n = self:unary()
  if stars > 0 then
    if n.t == 's' then return n end
    -- The base of an array in the kernel: formats do not tell it, addresses show relative to it.
    if n.unknown then return { t = 'U', code = '0ULL', k = true } end
    if n.t ~= 'm' then return convert(n, 'U') end
    local copy = {}
    for key, value in pairs(n) do
      copy[key] = value
    end
    copy.elem = base == 'void' and n.elem or base
    return copy
  end
  if base == 'void' then give_up('a cast to a struct') end
  return to_elem(n, base)
end

--- ({ type name = value; ...; value; }) as min() and max() expand to.
function Parser:block()
  local outer = self.locals
  self.locals = setmetatable({}, { __index = outer })
  local result
  repeat
    local base, stars = self:type_name()
    if base and self:peek().kind == 'word' then
      local name = self:word()
      self:expect '='
      local n = self:expression()
      if stars == 0 and base == 'void' then give_up 'a local struct' end
      self.locals[name] = stars > 0 and n or to_elem(n, base)
      result = nil
    else
      result = self:expression()
    end
    self:expect ';'
  until self:accept '}'
  self:expect ')'
  self.locals = outer
  return result or give_up('a block without a value')
end

function Parser:size_of()
  self:expect '('
  local base, stars = self:type_name()
  local bytes
  if base then
    bytes = stars > 0 and 8 or base ~= 'void' and bytes_of(base) or give_up 'sizeof a struct'
  elseif self:accept 'REC' then
    self:expect '->'
    bytes = self:field(self:word()).size
  else
    give_up('sizeof an expression')
  end
  self:expect ')'
  return { t = 'U', code = bytes .. 'ULL', k = true }
end

function Parser:parenthesized()
  if self:accept '{' then return self:block() end
  local base, stars = self:type_name()
  if base then
    self:expect ')'
    return self:cast(base, stars)
  end
  local n = self:expression()
  self:expect ')'
  local after = self:peek()
  if n.unknown and (after.kind == 'word' or after.kind == 'number' or after.text == '(') then
    give_up("a cast to '%s'", n.unknown)
  end
  return n
end

function Parser:named(word)
  if word == 'REC' then
    self:expect '->'
    return self:record_field()
  end
  if word == 'sizeof' then return self:size_of() end
  if self.locals[word] then return self.locals[word] end
  if CONSTANTS[word] then return { t = 'i', code = tostring(CONSTANTS[word]), k = true } end
  if self:is '(' then
    local f = FUNCTIONS[word] or give_up('%s()', word)
    self:expect '('
    return f(self)
  end
  -- May turn out to be a type; whatever else it is used for gives up.
  return { t = 'unknown', unknown = word, code = '' }
end

function Parser:primary()
  local token = self:next()
  if token.kind == 'number' then return { t = token.t, code = c.literal(token.value), k = true } end
  if token.kind == 'string' then
    self.at = self.at - 1
    return { t = 's', code = ('%q'):format(self:strings()) }
  end
  if token.kind == 'word' then return self:named(token.text) end
  if token.text == '(' then return self:parenthesized() end
  give_up("'%s' in an expression", token.text)
end

function Parser:postfix()
  local n = self:primary()
  while self:accept '[' do
    n = self:element(n, self:expression())
    self:expect ']'
  end
  if self:is '->' or self:is '.' then give_up('a member of a struct') end
  return n
end

function Parser:prefix()
  if self:accept '!' then return c.invert(self:unary()) end
  if self:accept '~' then return c.complement(self:unary()) end
  if self:accept '-' then return c.negate(self:unary()) end
  if self:accept '+' then return number(self:unary()) end
  if self:accept '*' then return self:element(self:unary(), { t = 'i', code = '0', k = true }) end
  return self:postfix()
end

function Parser:unary() return self:nested(self.prefix) end

--- Calls a method of the grammar that can call itself, but not without end.
function Parser:nested(method)
  self.depth = self.depth + 1
  if self.depth > DEPTH_MAX then give_up 'nested too deep' end
  local n = method(self)
  self.depth = self.depth - 1
  return n
end

function Parser:binary(level)
  local left = self:unary()
  while true do
    local token = self:peek()
    local op = token.kind == 'op' and BINARY[token.text]
    if not op or op.level < level then break end
    self.at = self.at + 1
    left = op.build(token.text, left, self:binary(op.level + 1))
  end
  return left
end

--- condition ? a : b
function Parser:conditional()
  local n = self:binary(1)
  if not self:accept '?' then return n end
  local a = self:expression()
  self:expect ':'
  local b = self:expression()
  if a.t ~= 's' and b.t ~= 's' and a.t ~= 'm' and b.t ~= 'm' then return c.choose(n, a, b) end
  local code = ('(%s and %s or %s)'):format(c.condition(n).code, self:text(a), self:text(b))
  return { t = 's', code = c.sized(code) }
end

function Parser:expression() return self:nested(self.conditional) end

local expr = {}

--- A parser of a print format's text, in front of its first token.
---@param text string
---@param fields table<string, Field>
---@param bound table functions of kprintf.bind
function expr.parser(text, fields, bound)
  local tokens, reason = lexer.tokens(text)
  if not tokens then give_up('%s', reason) end
  return setmetatable({
    tokens = tokens,
    at = 1,
    depth = 0,
    need = 0, -- bytes of payload the code reads unchecked
    fields = fields,
    bound = bound,
    locals = {},
    values = {}, -- upvalues of the code, and by value their names
    names = {},
  }, Parser)
end

return expr
