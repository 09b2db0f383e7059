-- SPDX-License-Identifier: GPL-2.0-only
--- Code generator for print formats: turns the syntax trees of bindings/expr/parse.lua into Lua source. Only
--- printfmt.lua uses it.
---
--- A value of type `bytes` is a part of the payload. `code` is its offset and `room` its size, both as Lua source, and
--- `elem` is the type of its elements. A fixed field also has `offset` and `bytes`, both as numbers. A dynamic field
--- has `word`, the code of its 32-bit word, and `base`, to which the offset in that word is relative.
local ffi = require 'ffi'
local kprintf = require 'bindings.print.kprintf'
local c = require 'bindings.print.printfmt_value'
local parse = require 'bindings.expr.parse'
local types = require 'bindings.expr.types'
local views = require 'bindings.view.views'

local INTEGERS, has = types.INTEGERS, views.has
local i64, u64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local constant, convert, give_up, number = c.constant, c.convert, c.give_up, c.number

local codegen = {}

--- The types that formats cast to, in addition to C's own. In the kernel, char is unsigned.
codegen.TYPES = setmetatable({}, { __index = types.NAMES })
for name, words in pairs {
  void = 'void struct union',
  i32 = 'enum __kernel_rwf_t',
  u8 = 'bool _Bool char uchar',
  u16 = '__le16 __be16 ushort umode_t',
  u32 = '__le32 __be32 uint uid_t gid_t dev_t gfp_t xfs_agnumber_t xfs_agblock_t',
  i64 = 'loff_t off_t time64_t ktime_t xfs_daddr_t xfs_lsn_t xfs_off_t',
  u64 = '__le64 __be64 ulong sector_t dma_addr_t phys_addr_t ino_t xfs_ino_t xfs_fsblock_t',
} do
  for word in words:gmatch '%S+' do
    codegen.TYPES[word] = name
  end
end

--- Constants that formats use without a definition.
local CONSTANTS = {
  HI_SOFTIRQ = 0, TIMER_SOFTIRQ = 1, NET_TX_SOFTIRQ = 2, NET_RX_SOFTIRQ = 3, BLOCK_SOFTIRQ = 4,
  IRQ_POLL_SOFTIRQ = 5, TASKLET_SOFTIRQ = 6, SCHED_SOFTIRQ = 7, HRTIMER_SOFTIRQ = 8, RCU_SOFTIRQ = 9,
  HRTIMER_NORESTART = 0, HRTIMER_RESTART = 1,
  TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_SYN_RECV = 3, TCP_FIN_WAIT1 = 4, TCP_FIN_WAIT2 = 5,
  TCP_TIME_WAIT = 6, TCP_CLOSE = 7, TCP_CLOSE_WAIT = 8, TCP_LAST_ACK = 9, TCP_LISTEN = 10,
  IOPRIO_CLASS_NONE = 0, IOPRIO_CLASS_RT = 1, IOPRIO_CLASS_BE = 2, IOPRIO_CLASS_IDLE = 3,
  TCP_CLOSING = 11, TCP_NEW_SYN_RECV = 12, ['false'] = 0, ['true'] = 1,
}

---@class Translator
---@field fields table<string, Field>
---@field bound table<string, function> from kprintf.bind()
---@field need integer bytes of payload that the code reads without further checks
---@field values any[] upvalues of the code
---@field names table<any, string> the names of the upvalues, by value
---@field locals table<string, PrintValue>
local Translator = {}
Translator.__index = Translator

--- Makes a Lua value an upvalue of the code, and returns its name.
function Translator:use(value, prefix)
  local name = self.names[value]
  if not name then
    self.values[#self.values + 1] = value
    name = prefix .. '_' .. #self.values
    self.names[value] = name
  end
  return name
end

--- Returns the name of a kprintf function in the code.
function Translator:helper(name) return self:use(self.bound[name] or kprintf[name], name) end

--- Returns a load of an integer at a fixed offset. The size check at the start of the code covers it.
function Translator:load(elem, offset)
  local function code(type)
    if type == 'u8' then return ('raw[%d]'):format(offset) end
    return ('cast(%s, raw + %d)[0]'):format(self:use(kprintf.TYPES[type], type), offset)
  end
  local limits = INTEGERS[elem]
  self.need = math.max(self.need, offset + limits.size)
  local n = { type = limits.size < 4 and 'i32' or elem, code = code(elem) }
  if limits.size == 4 then
    n.flip = code(elem == 'i32' and 'u32' or 'i32')
  elseif limits.size < 4 and not limits.signed then
    n.small = limits.hi
  end
  return n
end

--- Returns the type of a field's elements.
local function elem_of(field)
  local elem = (has(field, 'SIGNED') and 'i' or 'u') .. 8 * field.elem_size
  return INTEGERS[elem] and elem or give_up('a field of %d bytes', field.elem_size)
end

function Translator:field(name)
  local field = self.fields[name]
  if not field then give_up("no field '%s'", name) end
  self.need = math.max(self.need, field.offset + field.size)
  return field
end

--- Returns the name of a field, REC->name or REC->name.member; nil for anything else.
local function record_field(node)
  if node.op ~= 'member' then return end
  if node.a.op == 'var' then return node.a.name == 'REC' and node.name or nil end
  local outer = record_field(node.a)
  return outer and outer .. '.' .. node.name
end

--- Translates REC->name.
function Translator:member(node)
  local field = self:field(record_field(node) or give_up 'a member of a struct')
  if has(field, 'DYNAMIC') then return self:load('u32', field.offset) end
  if not has(field, 'ARRAY') then return self:load(elem_of(field), field.offset) end
  return {
    type = 'bytes',
    code = tostring(field.offset),
    room = field.size > 0 and tostring(field.size) or ('(size - %d)'):format(field.offset),
    bytes = field.size,
    offset = field.offset,
    elem = elem_of(field),
  }
end

--- Returns the bytes of a dynamic field: __get_str(name), __get_dynamic_array(name) and their __rel variants.
function Translator:dynamic_field(node)
  local field = self:field(node.op == 'var' and node.name or give_up 'a field without a name')
  if not has(field, 'DYNAMIC') then give_up 'a fixed field as a dynamic one' end
  local word = self:load('u32', field.offset).flip
  local base = has(field, 'RELATIVE') and field.offset + field.size or 0
  return {
    type = 'bytes',
    code = ('(band(%s, 0xffff) + %d)'):format(word, base),
    room = ('rshift(%s, 16)'):format(word),
    elem = elem_of(field),
    word = word,
    base = base,
    reader = views.is_text(field) and not has(field, 'STRING') and 'dynamic_bytes' or 'dynamic_string',
  }
end

--- Returns an element of an array.
function Translator:element(array, index)
  if array.type ~= 'bytes' then give_up 'an index into a number' end
  local bytes = INTEGERS[array.elem].size
  if index.constant and array.offset then
    local i = tonumber(index.constant)
    if i >= 0 and (i + 1) * bytes <= array.bytes then return self:load(array.elem, array.offset + i * bytes) end
  end
  index = number(index)
  local i = INTEGERS[index.type].size == 8 and 'tonumber(' .. index.code .. ')' or index.code
  local n = self:load(array.elem, 0)
  n.code = ('%s(raw, size, %s + %s * %d)'):format(self:helper('load_' .. array.elem), array.code, i, bytes)
  n.flip = nil
  return n
end

--- Returns the code of a value's text for %s.
function Translator:text(n)
  if n.type == 'string' then return n.code end
  if n.type == 'u64' then return ('%s(%s)'):format(self:helper 'kernel_string', n.code) end
  if n.type ~= 'bytes' or INTEGERS[n.elem].size ~= 1 then give_up 'a number as a string' end
  if n.word then return ('%s(raw, size, %s, %d)'):format(self:helper(n.reader), n.word, n.base) end
  return ('%s(raw, %s, %s)'):format(self:helper 'fixed_string', n.code, n.room)
end

--- Returns a call of a helper that takes (raw, offset, ...) and reads `bytes` bytes.
function Translator:at_bytes(helper, n, bytes, ...)
  if n.type ~= 'bytes' then give_up('%s of a number', helper) end
  local call = ('%s(raw, %s)'):format(self:helper(helper), table.concat({ n.code, ... }, ', '))
  if n.bytes and n.bytes >= tonumber(bytes) then return call end
  if n.bytes and n.bytes > 0 then give_up('%s of %d bytes', helper, n.bytes) end
  return ('(%s + %s <= size and %s or %q)'):format(n.code, bytes, call, kprintf.BAD)
end

--- Returns a call of a helper that takes (raw, offset, room, ...).
function Translator:at_room(helper, n, ...)
  if n.type ~= 'bytes' then give_up('%s of a number', helper) end
  local call = ('%s(raw, %s)'):format(self:helper(helper), table.concat({ n.code, n.room, ... }, ', '))
  if not n.word then return call end
  return ('(%s + %s <= size and %s or %q)'):format(n.code, n.room, call, kprintf.BAD)
end

--- Returns the escaped text of a string literal.
function Translator:literal(node)
  return self.bound.literal(node.op == 'str' and node.value or give_up 'not a string literal')
end

--- Returns the value of an entry in a list of names; nil if it contains a name that the format does not define. Such an
--- entry never matches, so its value is printed as a number.
function Translator:entry_value(node)
  if node.op == 'num' then return u64(i64(node.value)) end
  local ok, n = pcall(function() return convert(self:expression(node), 'u64') end)
  if ok then return n.constant or give_up 'a name of a variable value' end
  if type(n) ~= 'table' or not n.unknown then error(n, 0) end
end

--- Returns the list of names { value, "name" }, ... that starts at the argument `first`. The last entry may be empty or
--- have a null pointer as its name.
function Translator:names_list(args, first)
  local list = {}
  for i = first, #args do
    local items = args[i].items or give_up 'a list of names without braces'
    if #items ~= 0 and #items ~= 2 then give_up('a list of names with %d values in an entry', #items) end
    if items[1] then
      local value = self:entry_value(items[1])
      if items[2].op ~= 'str' then
        self:expression(items[2])
      elseif value then
        list[#list + 1] = { value, self:literal(items[2]) }
      end
    end
  end
  return list
end

local function text(code) return { type = 'string', code = code } end

--- The functions of print formats: the number of arguments, whether a list of names follows, and the code generator.
local FUNCTIONS = {}

local function symbolic(self, args)
  local n = number(self:expression(args[1]))
  local map = kprintf.symbolic(self:names_list(args, 2))
  return text(('%s(%s)'):format(self:use(map, 'symbolic'), n.code))
end

local function flags(self, args)
  local n = number(self:expression(args[1]))
  local delim = args[2].name == 'NULL' and '' or self:literal(args[2])
  local map = kprintf.flags(self:names_list(args, 3), delim)
  return text(('%s(%s)'):format(self:use(map, 'flags'), n.code))
end

for _, suffix in ipairs { '', '_u64' } do
  FUNCTIONS['__print_symbolic' .. suffix] = { 1, true, symbolic }
  FUNCTIONS['__print_flags' .. suffix] = { 2, true, flags }
end

for name, delim in pairs { __print_hex = ' ', __print_hex_str = '' } do
  FUNCTIONS[name] = { 2, false, function(self, args)
    local array, count = self:expression(args[1]), convert(self:expression(args[2]), 'i32')
    return text(self:at_room('hex', array, count.code, ('%q'):format(delim)))
  end }
end

FUNCTIONS.__print_array = { 3, false, function(self, args)
  local array, count = self:expression(args[1]), convert(self:expression(args[2]), 'i32')
  local elem_size = convert(self:expression(args[3]), 'i32')
  return text(self:at_room('array', array, count.code, elem_size.code))
end }

for _, prefix in ipairs { '__get_', '__get_rel_' } do
  for _, name in ipairs { 'str', 'dynamic_array', 'sockaddr' } do
    FUNCTIONS[prefix .. name] = { 1, false, function(self, args) return self:dynamic_field(args[1]) end }
  end
  FUNCTIONS[prefix .. 'dynamic_array_len'] = { 1, false, function(self, args)
    return { type = 'i32', code = self:dynamic_field(args[1]).room, small = 65535 }
  end }
  for name, helper in pairs { bitmask = 'bitmask', cpumask = 'bitlist' } do
    FUNCTIONS[prefix .. name] = { 1, false, function(self, args)
      return text(self:at_room(helper, self:dynamic_field(args[1])))
    end }
  end
end

FUNCTIONS.__builtin_expect = { 2, false, function(self, args)
  local n = self:expression(args[1])
  self:expression(args[2])
  return n
end }

function Translator:call(node)
  local f, args = FUNCTIONS[node.name] or give_up('%s()', node.name), node.args
  if #args < f[1] or (#args > f[1] and not f[2]) then give_up('%s() with %d arguments', node.name, #args) end
  return f[3](self, args)
end

--- Translates (type) expression.
function Translator:cast(node)
  local n = self:expression(node.a)
  if node.pointer == 0 then
    if node.type == 'void' then give_up 'a cast to a struct' end
    return convert(n, node.type)
  end
  if n.type == 'string' then return n end
  -- The base of an array in the kernel. The format does not contain it, so addresses are printed relative to it.
  if n.type == 'unknown' then return constant('u64', 0) end
  if n.type ~= 'bytes' then return convert(n, 'u64') end
  local copy = {}
  for key, value in pairs(n) do
    copy[key] = value
  end
  copy.elem = node.type == 'void' and n.elem or node.type
  return copy
end

--- Translates a statement expression, to which min() and max() expand.
function Translator:block(node)
  local outer, result = self.locals, nil
  self.locals = setmetatable({}, { __index = outer })
  for _, step in ipairs(node.steps) do
    result = self:expression(step.a)
    if step.name then
      if step.pointer == 0 then
        result = convert(result, step.type ~= 'void' and step.type or give_up 'a local struct')
      end
      self.locals[step.name], result = result, nil
    end
  end
  self.locals = outer
  return result or give_up 'a block without a value'
end

function Translator:sizeof(node)
  local bytes
  if node.type then
    bytes = node.pointer > 0 and 8 or (INTEGERS[node.type] or give_up 'sizeof a struct').size
  else
    bytes = self:field(record_field(node.a) or give_up 'sizeof an expression').size
  end
  return constant('u64', bytes)
end

function Translator:variable(node)
  local name = node.name
  if self.locals[name] then return self.locals[name] end
  if CONSTANTS[name] then return constant('i32', CONSTANTS[name]) end
  if name == 'REC' then give_up 'the address of the record' end
  -- Only valid as the operand of a cast to a pointer.
  return { type = 'unknown', name = name }
end

--- Translates condition ? a : b.
function Translator:choose(node)
  local n, a, b = self:expression(node.cond), self:expression(node.a), self:expression(node.b)
  if a.type ~= 'string' and b.type ~= 'string' and a.type ~= 'bytes' and b.type ~= 'bytes' then
    return c.choose(n, a, b)
  end
  return text(c.sized(('(%s and %s or %s)'):format(c.condition(n).code, self:text(a), self:text(b))))
end

local LINKS = { binary = true, logic = true } -- of chains

function Translator:chain(node)
  local spine, first = parse.spine(node, LINKS)
  local left = self:expression(first)
  for i = #spine, 1, -1 do
    local sign = spine[i].sign
    local operator = c.BINARY[sign] or give_up("the operator '%s'", sign)
    left = operator(sign, left, self:expression(spine[i].b))
  end
  return left
end

local HANDLERS = {
  num = function(_, node) return constant(node.type, node.value) end,
  str = function(self, node) return text(('%q'):format(self:literal(node))) end,
  var = Translator.variable,
  member = Translator.member,
  call = Translator.call,
  unary = function(self, node) return c.UNARY[node.sign](self:expression(node.a)) end,
  binary = Translator.chain,
  logic = Translator.chain,
  choose = Translator.choose,
  index = function(self, node) return self:element(self:expression(node.a), self:expression(node.b)) end,
  deref = function(self, node) return self:element(self:expression(node.a), constant('i32', 0)) end,
  cast = Translator.cast,
  sizeof = Translator.sizeof,
  block = Translator.block,
}

---@return PrintValue
function Translator:expression(node)
  local handler = HANDLERS[node.op] or give_up('%s in a print format', node.op)
  return handler(self, node)
end

---@param fields table<string, Field>
---@param bound table<string, function> from kprintf.bind()
---@return Translator
function codegen.new(fields, bound)
  return setmetatable({ fields = fields, bound = bound, need = 0, values = {}, names = {}, locals = {} }, Translator)
end

return codegen
