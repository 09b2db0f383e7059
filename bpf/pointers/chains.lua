-- SPDX-License-Identifier: GPL-2.0-only
--- Chains of members that a profiler reads of its events, as `ev.prev.mm.total_vm` in its code, or `prev->mm->total_vm`
--- in its options: they are known before the run, so that programs can read them when an event happens.
local access = require 'bpf.pointers.access'
local bit = require 'bit'
local bytecode = require 'bpf.handlers.bytecode'
local failure = require 'bindings.base.failure'
local mentions = require 'bpf.handlers.mentions'
local util = require 'jit.util'

local chains = {}

local OPS, A, B, D = bytecode.OPS, bytecode.a, bytecode.b, bytecode.d
local MODE_A, WRITES_A = 7, 1 -- bits of an instruction's mode: operand A is the slot that it writes

--- A chain, and where it was found.
---@class Chain
---@field words string[] names of members, the first one may be an argument
---@field text? string the option that has it
---@field columns? integer[] of the words
---@field place? string "file:line: " of the code that has it
---@field reads? 'text'|string what it points to is read: text, or a number of this type of the program's memory
---@field is_loose? boolean it may be something else, such as the name of a file

local function split(name)
  local words = {}
  for word in name:gmatch '[%a_][%w_]*' do words[#words + 1] = word end
  return words
end

--- Adds what is read behind pointers according to a text.
local function add_reads(list, text)
  local function add(column, name, reads)
    local words, columns, at = split(name), {}, column
    for i, word in ipairs(words) do
      at = text:find(word, at, true)
      columns[i], at = at, at + #word
    end
    if #words > 1 and (words[1] == 'ev' or words[1] == 'args') then
      table.remove(words, 1)
      table.remove(columns, 1)
    end
    list[#list + 1] = { words = words, text = text, columns = columns, reads = reads }
  end
  for column, name in text:gmatch '%f[%w_]str%s*%(%s*()([%a_][%w_.>-]*)' do add(column, name, 'text') end
  for column, name in text:gmatch ':%s*string%s*%(?%s*[\'"]()([%a_][%w_.]*)' do add(column, name, 'text') end
  for type, column, name in text:gmatch '%f[%w_]user%s*%(%s*[\'"]([%w_%s.]+)[\'"]%s*,%s*[\'"]?()([%a_][%w_.>-]*)' do
    add(column, name, type)
  end
end

--- Adds the chains in a text: C expressions, or the Lua code of a one-liner.
---@param list Chain[]
---@param text string
function chains.of_text(list, text)
  add_reads(list, text)
  local at, is_selector = 1, false
  for system in text:gmatch '%f[%w_]([%w_]+):' do
    is_selector = is_selector or access.is_system(system) or access.PROBES[system] ~= nil
  end
  while true do
    local from, word, after = text:match('()%f[%a_%d]([%a_][%w_]*)()', at)
    if not from then return end
    local words, columns, is_chain = { word }, { from }, is_selector
    while true do
      local column, name, stop = text:match('^%s*%->%s*()([%a_][%w_]*)()', after)
      is_chain = is_chain or name ~= nil
      if not name then column, name, stop = text:match('^%.()([%a_][%w_]*)()', after) end
      if not name then break end
      words[#words + 1], columns[#columns + 1], after = name, column, stop
    end
    if words[1] == 'ev' or words[1] == 'args' then
      table.remove(words, 1)
      table.remove(columns, 1)
      is_chain = true
    end
    if #words > 0 then list[#list + 1] = { words = words, text = text, columns = columns, is_loose = not is_chain } end
    at = after
  end
end

--- Returns the constant string that an instruction loads; nil: it is another one.
local function constant_at(fn, pc)
  local ins = util.funcbc(fn, pc)
  return ins and bytecode.op(ins) == OPS.KSTR and util.funck(fn, -D(ins) - 1) or nil
end

--- Adds what a function reads behind pointers: `ev:string 'filename'`, `ev:user('u32', 'uaddr')`.
---@param list Chain[]
---@param fn function|userdata
function chains.of_calls(list, fn)
  for pc = 1, util.funcinfo(fn).bytecodes - 1 do
    local ins = util.funcbc(fn, pc)
    local method = bytecode.op(ins) == OPS.TGETS and util.funck(fn, -bytecode.c(ins) - 1)
    local first, second = constant_at(fn, pc + 1), constant_at(fn, pc + 2)
    local name = method == 'string' and first or method == 'user' and first and second
    if name then
      local script = failure.script_of(util.funcinfo(fn).source)
      list[#list + 1] = { words = split(name), reads = method == 'string' and 'text' or first, is_loose = not script,
        place = script and ('%s:%d: '):format(script, util.funcinfo(fn, pc).currentline) }
    end
  end
end

--- Adds the chains that a function reads of its first parameter.
---@param list Chain[]
---@param fn function|userdata
function chains.of_function(list, fn)
  local info = util.funcinfo(fn)
  if info.params == 0 then return end
  local paths, found, before = { [0] = { words = {} } }, {}, nil
  for pc = 1, info.bytecodes - 1 do
    local ins, mode = util.funcbc(fn, pc)
    local op, path = bytecode.op(ins), nil
    if op == OPS.TGETS and paths[B(ins)] then
      -- A method call first copies its object to the arguments.
      local is_method = before and bytecode.op(before) == OPS.MOV and D(before) == B(ins)
        and A(before) == A(ins) + bytecode.CALL_GAP
      local of = paths[B(ins)]
      if not is_method then
        path = { words = { unpack(of.words) }, line = util.funcinfo(fn, pc).currentline }
        path.words[#path.words + 1] = util.funck(fn, -bytecode.c(ins) - 1)
        of.goes_on = true
        found[#found + 1] = path
      end
    elseif op == OPS.MOV then
      path = paths[D(ins)]
    end
    if bit.band(mode, MODE_A) == WRITES_A then paths[A(ins)] = path end
    before = ins
  end
  local script = failure.script_of(info.source)
  for _, path in ipairs(found) do
    if not path.goes_on then
      list[#list + 1] = { words = path.words, place = script and ('%s:%d: '):format(script, path.line),
        is_loose = not script or script:find 'scripts/profilers/' ~= nil }
    end
  end
end

local by_owner = setmetatable({}, { __mode = 'k' })

--- Returns the chains that a profiler reads, and those that use it as a source.
---@param owner Instance
---@return Chain[]
function chains.of(owner)
  local list = by_owner[owner]
  if list then return list end
  list = { unpack(owner.parent and chains.of(owner.parent) or {}) }
  local function note(text)
    chains.of_text(list, text)
    return false
  end
  mentions.option(owner.opt, note)
  mentions.any({ owner.script.profiler.start }, function() return false end, function(fn)
    chains.of_calls(list, fn)
    chains.of_function(list, fn)
  end, mentions.is_library())
  by_owner[owner] = list
  return list
end

return chains
