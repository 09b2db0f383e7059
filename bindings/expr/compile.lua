-- SPDX-License-Identifier: GPL-2.0-only
-- Compiles C expressions and kernel filters over the fields of an event to Lua source, which LuaJIT turns into machine
-- code.
--
-- The semantics are those of C: usual arithmetic conversions, wrapping integers of 8 to 64 bits, truncating casts,
-- division toward zero, comparisons and && || ! with the values 0 and 1. Differences:
-- - char is signed on all machines.
-- - Character arrays, dynamic strings and literals are strings, which == != ~ (glob) compare by content.
-- - An address in the traced system is an unsigned long.
-- - Shifting a 32-bit value by a constant of 32 or more shifts it as a 64-bit value. Other shift counts are taken
--   modulo the width.
-- - The value of a division by zero or an access outside the record is nil.

local diagnostic = require 'bindings.base.diagnostic'
local filter = require 'bindings.expr.filter'
local gen = require 'bindings.expr.codegen'
local parse = require 'bindings.expr.parse'
local helpers = require 'bindings.expr.load'

local expr = {}

---@class ExprOptions
---@field form nil|'value'|'key'|'number'|'filter' what the function does with the result:
---  value (default): returns it: a Lua number if that is exact, otherwise int64_t or uint64_t; or a string
---  key: stores it in e.key and returns true; env.intern(address, room) converts a string to a number
---  number: returns it as a Lua number (rounded beyond 2^53)
---  filter: returns whether it is nonzero
---  Each returns nil if the expression has no value.
---@field what string|nil name of the text in error messages; default: 'expression'
---@field variables table<string, ExprVariable>|nil replace the sample's _cpu, _pid...
---@field allow_system boolean|nil allow calls of system()

---@class ExprVariable
---@field type string i8 to i64, u8 to u64, string
---@field code string Lua code that reads it: as int64_t or uint64_t for i64 and u64, otherwise as a number
---@field call string|nil the function of env that the code calls

---@class Compiled
---@field source string `function(e, p, raw, size) ... end`: e is a struct event *, p the payload as a struct with the
---  names of the fields, raw its bytes, size their number. The fixed fields must fit in size.
---@field type string type of the result: i32, u32, i64, u64, string
---@field fields_used table<string, boolean>
---@field calls table<string, boolean> the functions that load() needs in its env
---@field tree ExprTree what it was compiled from

---@class ExprTree
---@field node table see parse.lua
---@field context table as for gen.generate()
---@field assigned table<string, integer> names of assigned variables

local SAMPLE = {
  _cpu = { type = 'i32', code = 'e.cpu' },
  _pid = { type = 'i32', code = 'e.pid' },
  _tid = { type = 'i32', code = 'e.tid' },
  _time = { type = 'i64', code = 'i64(e.time)' },
  _period = { type = 'u64', code = 'e.period' },
  _node = { type = 'i32', code = 'env.node(e.cpu)', call = 'node' },
  _cgroup = { type = 'u64', code = 'env.cgroup(e)', call = 'cgroup' },
  _container = { type = 'string', code = 'env.container(e)', call = 'container' },
  _machine = { type = 'i32', code = 'rshift(e.flags, 8)' },
  _comm = { type = 'string', code = 'env.comm_get(e.tid, e.time)', call = 'comm_get' },
}

local HELPERS, VALUES = {}, {}
for name in pairs(helpers) do HELPERS[#HELPERS + 1] = name end
table.sort(HELPERS)
for i, name in ipairs(HELPERS) do VALUES[i] = helpers[name] end
local PRELUDE = ('local env, %s = ...\n'):format(table.concat(HELPERS, ', '))

-- Catches errors in the user's text, which are thrown as tables to unwind the recursion.
local function guarded(body)
  local ok, result = pcall(body)
  if ok then return result end
  if type(result) ~= 'table' then error(result, 0) end
  return nil, result
end

local MAX_TEXT = 65536 -- bytes

local function check_size(what, text)
  if #text > MAX_TEXT then error(diagnostic.new(what, text, 1, ('longer than %d bytes'):format(MAX_TEXT)), 0) end
end

local function generate(what, text, node, assigned, fields, options, form)
  local context = {
    what = what, text = text, fields = fields, variables = options.variables or SAMPLE,
    allow_system = options.allow_system,
  }
  local source, kind, used, calls = gen.generate(node, assigned, form, context)
  -- LuaJIT limits jumps, registers and constants.
  if not loadstring('return ' .. source) then
    error(diagnostic.new(what, text, 1, 'too large to compile'), 0)
  end
  return {
    source = source, type = kind, fields_used = used, calls = calls,
    tree = { node = node, context = context, assigned = assigned },
  }
end

--- Compiles a C expression.
---@param text string
---@param fields table<string, Field>
---@param options ExprOptions|nil
---@return Compiled|nil
---@return Diagnostic|nil error
function expr.compile(text, fields, options)
  options = options or {}
  local what = options.what or 'expression'
  return guarded(function()
    check_size(what, text)
    local node, assigned = parse.expression(what, text, nil, nil, options.form == 'filter')
    return generate(what, text, node, assigned, fields, options, options.form or 'value')
  end)
end

--- Compiles a filter in the kernel's tracepoint filter language. The form is always 'filter'.
---@param text string
---@param fields table<string, Field>
---@param options ExprOptions|nil
---@return Compiled|nil
---@return Diagnostic|nil error kernel_only: the kernel may still accept it
function expr.compile_filter(text, fields, options)
  return guarded(function()
    check_size('filter', text)
    local node = filter.parse(text, fields)
    return generate('filter', text, node, {}, fields, options or {}, 'filter')
  end)
end

local MAX_KERNEL_FILTER = 4095 -- bytes, without the NUL

-- Returns the terms of a top-level && chain as {from, to}; a single term for any other text.
local function conjuncts(text)
  local terms, start, depth, at = {}, 1, 0, 1
  while true do
    at = text:find('["\'()&|?,=]', at)
    if not at then break end
    local char = text:sub(at, at)
    if char == '"' or char == "'" then
      local stop = at + 1
      while text:sub(stop, stop) ~= char do
        if stop > #text then return { { 1, #text } } end
        stop = stop + (text:sub(stop, stop) == '\\' and 2 or 1)
      end
      at = stop + 1
    elseif char == '(' or char == ')' then
      depth = depth + (char == '(' and 1 or -1)
      at = at + 1
    elseif depth > 0 then
      at = at + 1
    elseif text:find('^&&', at) then
      terms[#terms + 1] = { start, at - 1 }
      at = at + 2
      start = at
    elseif text:find('^==', at) or (char == '&') or (char == '|' and not text:find('^||', at))
      or (char == '=' and text:find('^[!<>]', at - 1)) then
      at = at + (text:find('^==', at) and 2 or 1)
    else
      return { { 1, #text } } -- binds weaker than &&
    end
  end
  terms[#terms + 1] = { start, #text }
  return terms
end

--- Splits a filter into terms that the kernel evaluates (as text, the shortest first, up to the kernel's limit) and the
--- rest (compiled). Either may be nil. A term that is not a kernel filter is compiled as a C expression.
---@param text string
---@param fields table<string, Field>
---@param options ExprOptions|nil
---@return { kernel: string|nil, user: Compiled|nil, user_text: string|nil }|nil
---@return Diagnostic|nil error
function expr.split_filter(text, fields, options)
  options = options or {}
  return guarded(function()
    check_size('filter', text)
    local terms = {}
    for i, range in ipairs(conjuncts(text)) do
      local from, to = range[1], range[2]
      local term = { order = i, text = text:sub(from, to):match('^%s*(.-)%s*$') }
      local ok, node, user_only = pcall(filter.parse, text, fields, from, to)
      if ok then
        term.node, term.kernel = node, not user_only
      elseif type(node) ~= 'table' then
        error(node, 0)
      elseif node.kernel_only then
        term.kernel = true
      else
        term.node = parse.expression('filter', text, from, to, true)
      end
      terms[i] = term
    end

    local sorted = {}
    for i, term in ipairs(terms) do sorted[i] = term end
    table.sort(sorted, function(a, b)
      if #a.text ~= #b.text then return #a.text < #b.text end
      return a.order < b.order
    end)
    local room = MAX_KERNEL_FILTER
    local kernel, user, node = {}, {}, nil
    for _, term in ipairs(sorted) do
      -- A term that contains || is the only term, so it needs no parentheses.
      local cost = #term.text + (#kernel > 0 and 4 or 0)
      if term.kernel and (cost <= room or not term.node) then
        kernel[#kernel + 1] = term.text
        room = room - cost
        term.node = nil
      end
    end
    for _, term in ipairs(terms) do
      if term.node then
        user[#user + 1] = term.text
        node = node and { op = 'logic', sign = '&&', a = node, b = term.node, column = term.node.column }
          or term.node
      end
    end
    return {
      kernel = #kernel > 0 and table.concat(kernel, ' && ') or nil,
      user = node and generate('filter', text, node, {}, fields, options, 'filter') or nil,
      user_text = node and table.concat(user, ' && ') or nil,
    }
  end)
end

--- Loads the function of a compiled expression. env contains the functions that need the session:
---   printf(format, ...) and system(format, ...) take the arguments of string.format() and return an integer;
---   ksymbol(address), syscall_name(number), exit_reason_str(isa, reason) and comm_get(tid, time) return a string;
---   intern(address, room) returns an integer for the string, which ends at its first NUL or after room bytes
---@param compiled Compiled
---@param env table<string, function>|nil
---@return fun(e, p, raw, size): any
function expr.load(compiled, env)
  env = env or {}
  for name in pairs(compiled.calls) do
    if not env[name] then error(("the expression calls '%s', which is not in env"):format(name), 2) end
  end
  local chunk = assert(loadstring(PRELUDE .. 'return ' .. compiled.source, '=expression'))
  return chunk(env, unpack(VALUES))
end

expr.caret = diagnostic.caret

return expr
