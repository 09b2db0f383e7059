-- SPDX-License-Identifier: GPL-2.0-only
--- Reads from the bytecode of a handler what it does, if that can be said as data: calls of methods and sums, with
--- members of the event, constants and what is computed from these as arguments, possibly all under one condition. For
--- other handlers, tells why not, line by line.
---
---   function(ev) if ev.ret < opt.least then errors:add(1, ev.id % 16) failed = failed + 1 end end
---
--- The code is followed once, from its beginning to its end, with what each slot holds. What is not known exactly is a
--- reason to refuse; after that, the code is only followed for the reasons of the other lines.
local bit = require 'bit'
local bytecode = require 'bindings.options.bytecode'
local countable = require 'bindings.base.countable'
local util = require 'jit.util'
local wide_keys = require 'bindings.options.wide_keys'

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
---@field op? string `+`, `-`, `*`, `/`, `%`, or a name in PURE; `-` with one operand is the negative number
---@field terms? handler_code.Term[] operands

---@class handler_code.Statement
---@field line integer
---@field upvalue? integer index of the upvalue that is changed
---@field object? table what is changed, if it is not an upvalue
---@field name string of the upvalue or the function
---@field method? string that is called; nil: a sum, `name = name + arguments[1]`
---@field arguments handler_code.Term[]

---@class handler_code.Code
---@field file string
---@field first integer line
---@field last integer line
---@field statements handler_code.Statement[]
---@field conditions { line: integer, left: handler_code.Term, op: string, right: handler_code.Term }[] all must be true
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

--- Returns whether a value is known, or computed from what is known when an event arrives.
function Code:_is_term(value)
  if not value then return false end
  if value.field or value.constant or value.op then return true end
  local variable = value.of or value
  return variable.upvalue ~= nil and self.is_fixed(variable.upvalue)
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
  if value and value.of then holder = type(holder) == 'table' and rawget(holder, value.name) or nil end
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
  if not of or not of.is_event then return { of = of, name = name } end
  add_new(self.reads, line, name)
  return { field = name, name = name, of = of }
end

STEPS[OPS.MOV] = function(self, ins) return self.slots[D(ins)] end

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
    table.insert(self.statements, { line = line, upvalue = index, name = name, arguments = { value.term } })
  else
    self:_note(line, ("sets '%s'"):format(name))
  end
  self.versions[index] = (self.versions[index] or 0) + 1
  return false
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
  if callee and callee.name == wide_keys.NAME then
    self.slots[base] = arguments[1]
    return false
  end
  for slot = base, base + 255 do self.slots[slot] = nil end
  if is_data and results == 0 and is_method and object.upvalue and self.is_fixed(object.upvalue) then
    table.insert(self.statements, { line = line, upvalue = object.upvalue, name = object.name, method = callee.name,
      arguments = arguments })
  elseif is_data and results == 0 and counted then
    table.insert(self.statements, { line = line, object = counted, name = callee.name, method = 'add',
      arguments = arguments })
  elseif is_data and results ~= 0 and called and PURE[called] and count > 0 then
    self.slots[base] = { op = PURE[called], terms = arguments }
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

--- Follows a comparison, which jumps to the end of the function if it is false, or over a `return` if it is not.
---@return integer? followed instructions after this one that belong to it; nil: it is no comparison
local function compare(self, ins, pc, line)
  local op, slots = bytecode.op(ins), self.slots
  local right, test
  if COMPARISONS[op] then
    test, right = COMPARISONS[op], slots[D(ins)]
  elseif WITH_CONSTANTS[op] then
    local is_string
    test, is_string = WITH_CONSTANTS[op][1], WITH_CONSTANTS[op][2]
    right = { constant = util.funck(self.fn, is_string and -D(ins) - 1 or D(ins)) }
  else
    return
  end
  local left, jump = slots[A(ins)], util.funcbc(self.fn, pc + 1)
  local to = pc + 2 + D(jump) - 0x8000
  local returns = to == pc + 3 and to <= self.size and bytecode.op(util.funcbc(self.fn, pc + 2)) == OPS.RET0
  if (to == self.size or returns) and #self.statements == 0 and self:_is_term(left) and self:_is_term(right) then
    table.insert(self.conditions, { line = line, left = left, op = returns and OPPOSITE[test] or test, right = right })
    if not self.refusal then self.guards = #self.conditions end
  else
    returns = false
    self:_note(line, 'has a condition')
  end
  return returns and 2 or 1
end

local function follow(self)
  local pc = 1
  while pc <= self.size do
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
      elseif op == OPS.JMP then
        self:_note(line, 'has a condition')
      elseif not (op == OPS.RET0 and pc == self.size) then
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
    statements = {}, conditions = {}, guards = 0, notes = {}, reads = {},
  }, Code)
  follow(self)
  if proto.isvararg then self:_note(self.first, 'takes any number of arguments') end
  if #self.statements == 0 and not self.refusal then self:_note(self.first, 'does nothing') end
  return self
end

return handler_code
