-- SPDX-License-Identifier: GPL-2.0-only
--- Reads from the bytecode of a handler what it does, if that can be said as data: calls of methods and sums, each
--- possibly under conditions, with members of the event, constants and what is computed from these as arguments. For
--- other handlers, tells why not, line by line.
---
---   function(ev) if ev.ret < opt.least then errors:add(1, ev.id % 16) failed = failed + 1 end end
---
--- The code is followed once, from its beginning to its end, with what each slot holds, and the open conditions.
--- What is not known exactly is a reason to refuse; after that, the code is only followed for the reasons of the other
--- lines.
local bit = require 'bit'
local bytecode = require 'bpf.handlers.bytecode'
local countable = require 'bindings.base.countable'
local lua_source = require 'bindings.base.lua_source'
local util = require 'jit.util'

local handler_code = {}

local OPS, COMPARISONS, WITH_CONSTANTS = bytecode.OPS, bytecode.COMPARISONS, bytecode.WITH_CONSTANTS
local ARITHMETIC = bytecode.ARITHMETIC
local A, B, D = bytecode.a, bytecode.b, bytecode.d

--- Functions that only compute.
local PURE = { [math.floor] = 'floor', [bit.band] = 'band', [bit.rshift] = 'rshift', [bit.lshift] = 'lshift' }

--- A value: a member of the event, a constant, a variable that is never assigned again, a member of one, or what is
--- computed from such values.
---@class handler_code.Term
---@field field? string `ev.NAME`
---@field constant? number|string
---@field upvalue? integer index of the variable
---@field of? handler_code.Term the table whose member `name` it is
---@field name? string
---@field op? string `+`, `-`, `*`, `/`, `%`, or a name in PURE; `-` with one operand is the negative number; `text`:
--- what the function `call` returns
---@field call? fun(n: number): string
---@field terms? handler_code.Term[] operands; with `choice`: if it is true, and if not
---@field choice? handler_code.Condition
---@field finish? handler_code.Statement whose result it is: the number `result`, from 1; the first one may be nil
---@field result? integer

---@class handler_code.Statement
---@field line integer
---@field upvalue? integer index of the upvalue that is changed
---@field object? table what is changed, if it is not an upvalue
---@field name string of the upvalue or the function
---@field method? string that is called; nil: a sum, `name = name + arguments[1]`
---@field arguments handler_code.Term[]
---@field conditions handler_code.Condition[] all must be true
---@field results? integer number of results that are used
---@field join? table the join whose start() or finish() is called

--- A comparison; without one, `left` is the first result of a finish(), which must not be nil.
---@class handler_code.Condition
---@field line integer
---@field left handler_code.Term
---@field op? string
---@field right? handler_code.Term

---@class handler_code.Code
---@field file string
---@field first integer line
---@field last integer line
---@field statements handler_code.Statement[]
---@field conditions handler_code.Condition[] of all statements
---@field guards integer number of conditions before anything that is not data: without these, the handler does nothing
---@field refusal? { line: integer, text: string } why the handler is not data
---@field notes table<integer, string[]> what each line does that is not data
---@field reads table<integer, string[]> members of the event that each line reads
local Code = {}
Code.__index = Code

--- Adds a text to the list of a line, if it is not in it.
local function add_new(lists, line, text)
  local list = lists[line] or {}
  lists[line] = list
  for _, known in ipairs(list) do
    if known == text then return end
  end
  list[#list + 1] = text
end

--- Notes that a line is not data.
function Code:_note(line, text)
  self.refusal = self.refusal or { line = line, text = text }
  add_new(self.notes, line, text)
end

--- Returns whether one of the open conditions is that a finish() has found its start.
function Code:_has_found(finish)
  for _, block in ipairs(self.open) do
    if not block.condition.op and block.condition.left.finish == finish then return true end
  end
  return false
end

--- Returns whether a value is known, or computed from what is known when an event arrives.
function Code:_is_term(value)
  if not value then return false end
  if value.finish then return self:_has_found(value.finish) end
  if value.choice and not (self:_is_term(value.choice.left) and self:_is_term(value.choice.right)) then return false end
  for _, one in ipairs(value.terms or {}) do
    if not self:_is_term(one) then return false end
  end
  if value.choice then return true end
  if value.field or value.constant or value.op then return true end
  local variable = value.of or value
  return variable.upvalue ~= nil and self.is_fixed(variable.upvalue)
end

--- Returns a member of a table. Of those with a metatable, only the host's, such as modules of lib, are asked: others
--- could do anything.
local function member(object, name)
  if type(object) ~= 'table' then return end
  local value, meta = rawget(object, name), debug.getmetatable(object)
  local index = value == nil and meta and rawget(meta, '__index')
  if type(index) ~= 'function' or not lua_source.is_host(debug.getinfo(index, 'S').source) then return value end
  local is_known, found = pcall(index, object, name)
  return is_known and found or nil
end

--- Returns the function that a slot holds, if that is a global, a variable that is never assigned again, or a member
--- of one.
function Code:_function(value)
  local variable = value and (value.of or value)
  local holder
  if variable and variable.upvalue and self.is_fixed(variable.upvalue) then
    holder = select(2, debug.getupvalue(self.fn, variable.upvalue))
  elseif variable and variable.is_global then
    local env = debug.getfenv(self.fn)
    local is_known, global = pcall(function() return env[variable.name] end)
    holder = is_known and global or nil
  end
  if value and value.of then holder = member(holder, value.name) end
  return type(holder) == 'function' and holder or nil
end

--- Returns how a called function is named in the source.
local function name_of(value)
  if not value or not value.name then return 'a function' end
  local of = value.of and (value.of.name or value.of.field and 'ev.' .. value.of.field or value.of.is_event and 'ev')
  return of and ('%s%s%s()'):format(of, value.is_method and ':' or '.', value.name) or value.name .. '()'
end

local STEPS = {} -- by opcode: fun(self, ins, line), which may leave a value in slot A

STEPS[OPS.UGET] = function(self, ins)
  local index = D(ins) + 1
  local name = debug.getupvalue(self.fn, index)
  return { upvalue = index, name = name, version = self.versions[index] or 0 }
end

STEPS[OPS.GGET] = function(self, ins) return { name = util.funck(self.fn, -D(ins) - 1), is_global = true } end

STEPS[OPS.TGETS] = function(self, ins, line)
  local of, name = self.slots[B(ins)], util.funck(self.fn, -bytecode.c(ins) - 1)
  if of and of.field then return { field = of.field .. '.' .. name, name = name, of = of } end
  if not of or not of.is_event then return { of = of, name = name } end
  add_new(self.reads, line, name)
  return { field = name, name = name, of = of }
end

STEPS[OPS.MOV] = function(self, ins) return self.slots[D(ins)] end

STEPS[OPS.KPRI] = function() end -- nil or a boolean, which is no term

STEPS[OPS.KNIL] = function(self, ins)
  for slot = A(ins), D(ins) do self.slots[slot] = nil end
end

STEPS[OPS.KSHORT] = function(_, ins) return { constant = bit.arshift(bit.lshift(D(ins), 16), 16) } end

STEPS[OPS.KNUM] = function(self, ins) return { constant = util.funck(self.fn, D(ins)) } end

STEPS[OPS.KSTR] = function(self, ins) return { constant = util.funck(self.fn, -D(ins) - 1) } end

--- Returns the value of an operation, which may also be a sum for USETV.
local function compute(self, line, op, terms)
  local left, right = terms[1], terms[2]
  local value = {}
  if op == '+' and left and left.upvalue and self:_is_term(right) then value.sum, value.term = left, right end
  if op == '+' and right and right.upvalue and self:_is_term(left) then value.sum, value.term = right, left end
  if self:_is_term(left) and (not right and #terms == 1 or self:_is_term(right)) then
    value.op, value.terms = op, terms
  end
  if value.op or value.sum then return value end
  self:_note(line, 'computes')
end

STEPS[OPS.UNM] = function(self, ins, line) return compute(self, line, '-', { self.slots[D(ins)] }) end

for opcode, how in pairs(ARITHMETIC) do
  STEPS[opcode] = function(self, ins, line)
    local variable = self.slots[B(ins)]
    if how.constant == 'none' then return compute(self, line, how.sign, { variable, self.slots[bytecode.c(ins)] }) end
    local constant = { constant = util.funck(self.fn, bytecode.c(ins)) }
    local is_right = how.constant == 'right'
    return compute(self, line, how.sign, is_right and { variable, constant } or { constant, variable })
  end
end

STEPS[OPS.USETV] = function(self, ins, line)
  local value, index = self.slots[D(ins)], A(ins) + 1
  local name = debug.getupvalue(self.fn, index)
  if value and value.sum and value.sum.upvalue == index and value.sum.version == (self.versions[index] or 0) then
    self:_add { line = line, upvalue = index, name = name, arguments = { value.term } }
  else
    self:_note(line, ("sets '%s'"):format(name))
  end
  self.versions[index] = (self.versions[index] or 0) + 1
  return false
end

--- Adds a statement under the open conditions.
function Code:_add(statement)
  statement.conditions = {}
  for i, block in ipairs(self.open) do statement.conditions[i] = block.condition end
  table.insert(self.statements, statement)
  return statement
end

--- Returns the object that a variable holds, if its method is one whose results can be data: finish() of a join.
local function finisher(self, object, method, results)
  if results < 1 or not object.upvalue or not self.is_fixed(object.upvalue) then return end
  local _, value = debug.getupvalue(self.fn, object.upvalue)
  local how = countable.of(value)
  return how and how.join and method == 'finish' and value or nil
end

local function call(self, ins, line)
  local base, first = A(ins), A(ins) + 1 + bytecode.CALL_GAP - 1
  local callee, count, arguments = self.slots[base], bytecode.c(ins) - 1, {}
  local is_tail = bytecode.op(ins) == OPS.CALLT
  if bytecode.op(ins) == OPS.CALLM then count = count + 2 end -- functions that only compute have one result
  local object = self.slots[first]
  local is_method = callee and callee.of and callee.of == object
  if is_method then first, count = first + 1, count - 1 end
  local is_data = not is_tail and count >= 0
  for i = 1, is_data and count or 0 do
    arguments[i] = self.slots[first + i - 1]
    is_data = is_data and self:_is_term(arguments[i])
  end
  local results, called = B(ins) - 1, not is_method and self:_function(callee)
  local counted = called and countable.of_function(called)
  if callee and callee.name == lua_source.KEY_CHECK then
    self.slots[base] = arguments[1]
    return false
  end
  for slot = base, base + 255 do self.slots[slot] = nil end
  if is_data and results == 0 and is_method and object.upvalue and self.is_fixed(object.upvalue) then
    self:_add { line = line, upvalue = object.upvalue, name = object.name, method = callee.name, arguments = arguments }
  elseif is_data and results == 0 and counted then
    self:_add { line = line, object = counted, name = callee.name, method = 'add', arguments = arguments }
  elseif is_data and is_method and finisher(self, object, callee.name, results) then
    local finish = self:_add { line = line, upvalue = object.upvalue, name = object.name, method = callee.name,
      arguments = arguments, results = results }
    for i = 1, results do self.slots[base + i - 1] = { finish = finish, result = i } end
  elseif is_data and results ~= 0 and called and PURE[called] and count > 0 then
    self.slots[base] = { op = PURE[called], terms = arguments }
  elseif is_data and results ~= 0 and called and countable.is_text(called) and count == 1 then
    self.slots[base] = { op = 'text', call = called, terms = arguments }
  else
    if callee then callee.is_method = is_method end
    self:_note(line, 'calls ' .. name_of(callee))
  end
  return false
end

STEPS[OPS.CALL], STEPS[OPS.CALLM], STEPS[OPS.CALLT] = call, call, call

for name, text in pairs {
  FNEW = 'makes a function', TNEW = 'makes a table', TDUP = 'makes a table', CAT = 'joins strings',
  TSETS = 'writes a table', TSETV = 'writes a table', TSETB = 'writes a table', TGETV = 'reads a table',
  TGETB = 'reads a table', FORI = 'has a loop', LOOP = 'has a loop',
} do
  STEPS[OPS[name]] = function(self, _, line) self:_note(line, text) end
end

local OPPOSITE = { ['<'] = '>=', ['>='] = '<', ['<='] = '>', ['>'] = '<=', ['=='] = '~=', ['~='] = '==' }

--- Returns what a comparison, or a test, tests when it does not jump; nil: it is neither.
local function condition_at(self, ins, line)
  local op, slots = bytecode.op(ins), self.slots
  if COMPARISONS[op] then return { line = line, left = slots[A(ins)], op = COMPARISONS[op], right = slots[D(ins)] } end
  if WITH_CONSTANTS[op] then
    local test, is_string = WITH_CONSTANTS[op][1], WITH_CONSTANTS[op][2]
    local constant = util.funck(self.fn, is_string and -D(ins) - 1 or D(ins))
    return { line = line, left = slots[A(ins)], op = test, right = { constant = constant } }
  end
  if op == OPS.ISF or op == OPS.IST or op == OPS.ISTC then
    return { line = line, left = slots[D(ins)], is_false = op ~= OPS.ISF }
  end
end

--- Returns whether a condition is known, where the handler returns if it is true, or else goes on.
local function is_data(self, condition, returns)
  if condition.op then return self:_is_term(condition.left) and self:_is_term(condition.right) end
  local left = condition.left
  return left ~= nil and left.result == 1 and (condition.is_false or false) == returns
end

local function copy(from)
  local to = {}
  for key, value in pairs(from) do to[key] = value end
  return to
end

--- Opens a block: what follows, until it closes, is only done if the condition is true.
local function open(self, condition, closes, other)
  table.insert(self.open, { condition = condition, closes = closes, before = copy(self.slots), other = other })
  table.insert(self.conditions, condition)
  self.has_blocks = self.has_blocks or closes < self.size
end

--- Returns where a jump at an instruction goes.
local function target(self, pc) return pc + 1 + D(util.funcbc(self.fn, pc)) - 0x8000 end

--- Follows a jump from the end of a block over its `else`. The block must have one condition.
---@return boolean done
local function turn(self, pc)
  local block, around, to = self.open[#self.open], self.open[#self.open - 1], target(self, pc)
  if not block or block.closes ~= pc + 1 or block.other or not block.condition.op or to <= pc + 1 then return false end
  if around and (around.closes == block.closes or to > around.closes) or to > self.size then return false end
  table.remove(self.open)
  local one, after = block.condition, self.slots
  self.slots = block.before
  open(self, { line = one.line, left = one.left, op = OPPOSITE[one.op], right = one.right }, to, after)
  return true
end

--- Follows a condition, which jumps to the end of a block if it is false, or over a `return` if it is not.
---@return integer? followed instructions after this one that belong to it; nil: it is no condition
local function compare(self, ins, pc, line)
  local condition = condition_at(self, ins, line)
  if not condition then return end
  local left = condition.left
  if bytecode.op(ins) == OPS.ISTC then self.slots[A(ins)] = left end
  -- `x == 1 and a or b` goes on with b if a is false, which no term is.
  if condition.is_false and left and not left.finish and self:_is_term(left) and turn(self, pc + 1) then return 1 end
  local to, block = target(self, pc + 1), self.open[#self.open]
  local returns = to == pc + 3 and to <= self.size and bytecode.op(util.funcbc(self.fn, pc + 2)) == OPS.RET0
  local closes = returns and self.size or to
  local is_nested = closes > pc + 1 and (not block or closes <= block.closes)
  if returns then is_nested = not block or block.closes == self.size end
  if is_nested and is_data(self, condition, returns) then
    if returns and condition.op then condition.op = OPPOSITE[condition.op] end
    condition.is_false = nil
    open(self, condition, closes)
    if not self.refusal and not self.has_blocks and #self.statements == 0 then self.guards = #self.conditions end
  else
    returns = false
    self:_note(line, 'has a condition')
  end
  return returns and 2 or 1
end

--- Closes the blocks that end before an instruction. A slot that was changed in one has one of two values then.
local function close_blocks(self, pc)
  while #self.open > 0 and self.open[#self.open].closes == pc and pc < self.size do
    local block = table.remove(self.open)
    local condition, other = block.condition, block.other or block.before
    for slot = 0, 255 do
      local value = self.slots[slot]
      if value ~= other[slot] then
        local is_choice = condition.op and self:_is_term(value) and self:_is_term(other[slot])
        self.slots[slot] = is_choice and { choice = condition, terms = { value, other[slot] } } or nil
      end
    end
  end
end

local function follow(self)
  local pc = 1
  while pc <= self.size do
    close_blocks(self, pc)
    local ins, line = util.funcbc(self.fn, pc), util.funcinfo(self.fn, pc).currentline
    local op = bytecode.op(ins)
    local step = STEPS[op]
    if step then
      local value = step(self, ins, line)
      if value ~= false then self.slots[A(ins)] = value or nil end
    else
      local followed = compare(self, ins, pc, line)
      if followed then
        pc = pc + followed
      elseif op == OPS.JMP and not turn(self, pc) then
        self:_note(line, 'has a condition')
      elseif op ~= OPS.JMP and not (op == OPS.RET0 and pc == self.size) then
        self:_note(line, op == OPS.RET0 and 'returns early' or 'computes')
        self.slots[A(ins)] = nil
      end
    end
    pc = pc + 1
  end
end

--- Returns whether no function assigns to an upvalue that is a local variable of the enclosing function.
local function is_fixed(fn, index)
  local all = bytecode.upvalues(fn)
  return bit.band(all[#all][index - 1], bytecode.UV_IMMUTABLE) ~= 0
end

--- The same for one that the enclosing function has as an upvalue, too.
local function is_fixed_in(outer, fn, index)
  local id = debug.upvalueid(fn, index)
  for i = 1, debug.getinfo(outer, 'u').nups do
    if debug.upvalueid(outer, i) == id then return is_fixed(outer, i) end
  end
  return false
end

--- Reads a handler.
---@param fn function
---@param outer? function that has made it
---@return handler_code.Code? code nil: it is not a function of a script
function handler_code.read(fn, outer)
  local info = debug.getinfo(fn, 'S')
  if info.what ~= 'Lua' then return end
  local proto = util.funcinfo(fn)
  local self = setmetatable({
    file = info.source:gsub('^[@=]', ''), first = info.linedefined, last = info.lastlinedefined, fn = fn,
    size = proto.bytecodes - 1, versions = {}, slots = { [0] = proto.params > 0 and { is_event = true } or nil },
    is_fixed = function(index) return is_fixed(fn, index) or outer ~= nil and is_fixed_in(outer, fn, index) end,
    statements = {}, conditions = {}, open = {}, guards = 0, notes = {}, reads = {},
  }, Code)
  follow(self)
  if proto.isvararg then self:_note(self.first, 'takes any number of arguments') end
  if #self.statements == 0 and not self.refusal then self:_note(self.first, 'does nothing') end
  return self
end

return handler_code
