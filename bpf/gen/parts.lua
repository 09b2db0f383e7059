-- SPDX-License-Identifier: GPL-2.0-only
--- Parts: values of an event that a program stores in a map, such as the parts of a key: numbers, names of tasks, and
--- numbers that become text when they are read, such as the address in ksymbol(address).
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local compile = require 'bpf.gen.compile'
local expr = require 'bindings.expr.compile'
local libc = require 'bindings.base.libc'
local has = require('bindings.view.views').has

local parts = {}

local NAME = 16 -- bytes: TASK_COMM_LEN
local EXACT = 2 ^ 53 -- integers beyond are not numbers of Lua

---@class Part
---@field size integer bytes, 8 or 16
---@field type string the type of a number, or 'string'
---@field store fun(a: Asm, source: Source, at: integer, none: string) stores the value at a place on the stack; jumps
--- to `none` if there is no value
---@field read fun(bytes: ffi.cdata*): number|ffi.cdata*|string returns the value from a copy of these bytes

-- How a number is read, by its type.
local READ = {
  i32 = function(word) return tonumber(ffi.cast('int64_t', word)) end,
  u32 = function(word) return tonumber(word) end,
  i64 = function(word) return ffi.cast('int64_t', word) end,
  u64 = function(word) return word end,
}

-- Functions that are called when a number is read.
local LATE = {
  ksymbol = function(call, word) return call(word) end,
  syscall_name = function(call, word) return call(tonumber(ffi.cast('int32_t', word))) end,
}

local words = ffi.typeof 'uint64_t *'

local function number(tree, late)
  local part = { size = 8, type = late and 'string' or 'u64' }
  local read
  function part.store(a, source, at, none)
    local kind = compile.value(a, tree, { source = source }, { none = none })
    a:store(8, asm.FRAME, at, 0)
    part.type, read = late and 'string' or kind, READ[kind]
  end
  function part.read(bytes)
    local word = ffi.cast(words, bytes)[0]
    if late then return late(word) end
    return read(word)
  end
  return part
end

--- Returns the part for a number that becomes text when it is read, by a function that takes what Lua would have.
---@param fields table<string, Field>
---@param text string a valid C expression
---@param call fun(n: number|ffi.cdata*): string
---@return Part
function parts.text(fields, text, call)
  local part = parts.of(fields, text, {})
  return setmetatable({ type = 'string', read = function(bytes)
    local value = part.read(bytes)
    local n = tonumber(value)
    return call(n > -EXACT and n < EXACT and n or value)
  end }, { __index = part })
end

local function text_of(bytes) return ffi.string(bytes, libc.strnlen(bytes, NAME)) end

--- The name of the current task.
local COMM = {
  size = NAME,
  type = 'string',
  store = function(a, source, at)
    if not source.comm then asm.refuse "the kernel cannot tell '_comm' at the event" end
    source:comm(a, at)
  end,
  read = text_of,
}

local function name_field(field)
  return {
    size = NAME,
    type = 'string',
    store = function(a, source, at)
      for off = 0, NAME - 8, 8 do
        source:load(a, 8, 0, field, off)
        a:store(8, asm.FRAME, at + off, 0)
      end
    end,
    read = text_of,
  }
end

--- Returns the part for an expression, or refuses.
---@param fields table<string, Field>
---@param text string a valid C expression
---@param env table<string, function> the functions of LATE
---@return Part
function parts.of(fields, text, env)
  local compiled, err = expr.compile(text, fields)
  if not compiled then asm.refuse('%s', err.message) end
  local tree = compiled.tree
  local node = tree.node
  if compiled.type ~= 'string' then return number(tree) end
  if node.op == 'call' and LATE[node.name] then
    local late, call = LATE[node.name], env[node.name]
    return number({ node = node.args[1], context = tree.context, assigned = tree.assigned },
      function(word) return late(call, word) end)
  end
  if node.op == 'var' and node.name == '_comm' then return COMM end
  local field = node.op == 'var' and fields[node.name]
  if field and has(field, 'ARRAY') and field.size == NAME then return name_field(field) end
  asm.refuse("'%s' is text that only profscript can read", text)
end

--- Returns the part for an expression whose value is a number, or refuses.
---@param fields table<string, Field>
---@param text string a valid C expression
---@param env table<string, function> the functions of LATE
---@return Part
function parts.number(fields, text, env)
  local part = parts.of(fields, text, env)
  if part.type == 'string' then asm.refuse("'%s' is not a number", text) end
  return part
end

return parts
