-- SPDX-License-Identifier: GPL-2.0-only
--- Bytecode: the instructions of Lua functions.
local bit = require 'bit'
local util = require 'jit.util'

local bytecode = {}

function bytecode.op(ins) return bit.band(ins, 0xff) end

function bytecode.a(ins) return bit.band(bit.rshift(ins, 8), 0xff) end

function bytecode.b(ins) return bit.rshift(ins, 24) end

function bytecode.c(ins) return bit.band(bit.rshift(ins, 16), 0xff) end

function bytecode.d(ins) return bit.rshift(ins, 16) end

--- Returns the instruction `pc` of a function from its end: 1 is the last one, which returns.
local function from_end(fn, pc) return util.funcbc(fn, util.funcinfo(fn).bytecodes - pc) end

local function op(fn, pc) return bytecode.op(util.funcbc(fn, pc)) end

local up = nil -- luacheck: ignore (an upvalue that is assigned)

--- The numbers of opcodes differ between LuaJIT versions. They are taken from functions that contain them.
bytecode.OPS = {
  TGETS = op(function(ev) return ev.name end, 1),
  UGET = op(function() return util.name end, 1),
  MOV = op(function(ev) local other = ev return other, ev end, 1),
  KSHORT = op(function() return 1 end, 1),
  KNUM = op(function() return 0.5 end, 1),
  KPRI = op(function() return nil end, 1),
  KNIL = op(function() local a, b = nil, nil return a, b end, 1),
  KSTR = op(function() return 'text' end, 1),
  GGET = op(function() return print end, 1),
  USETV = op(function(value) up = value end, 1),
  UNM = op(function(value) return -value end, 1),
  CALL = bytecode.op(from_end(function(fn) fn() end, 2)),
  CALLM = bytecode.op(from_end(function(fn) fn(fn()) end, 2)), -- its last arguments are all results of another call
  CALLT = bytecode.op(from_end(function(fn) return fn() end, 1)),
  RET0 = op(function() end, 1),
  ISF = op(function(a) if a then up = a end end, 1),
  IST = op(function(a) if not a then up = a end end, 1),
  ISTC = op(function(a, b) local c = a or b return c, a, b end, 1), -- copies what it tests
  JMP = op(function(a) if a then up = a end end, 2),
  FNEW = op(function() return function() end end, 1),
  TNEW = op(function() return {} end, 1),
  TDUP = op(function() return { 1 } end, 1),
  TSETS = bytecode.op(from_end(function(t, v) t.name = v end, 2)),
  TSETV = bytecode.op(from_end(function(t, v) t[v] = v end, 2)),
  TSETB = bytecode.op(from_end(function(t, v) t[1] = v end, 2)),
  TGETV = op(function(t, v) return t[v] end, 1),
  TGETB = op(function(t) return t[1] end, 1),
  FORI = op(function() for _ = 1, 2 do end end, 4),
  LOOP = op(function() while true do end end, 1),
  CAT = bytecode.op(from_end(function(t, v) return t .. v end, 2)),
}

--- The opcodes that return something.
bytecode.RETURNS = {
  [op(function(v) return v end, 1)] = true, [bytecode.op(from_end(function(a, b) return a, b end, 1))] = true,
  [bytecode.op(from_end(function(fn) return 1, fn() end, 1))] = true, [bytecode.OPS.CALLT] = true,
}

--- The operators on numbers, by opcode: the sign, and which operand is a constant.
bytecode.ARITHMETIC = {}
for sign, functions in pairs {
  ['+'] = { function(v, w) return v + w end, function(v) return v + 1 end, function(v) return 1 + v end },
  ['-'] = { function(v, w) return v - w end, function(v) return v - 1 end, function(v) return 1 - v end },
  ['*'] = { function(v, w) return v * w end, function(v) return v * 2 end, function(v) return 2 * v end },
  ['/'] = { function(v, w) return v / w end, function(v) return v / 2 end, function(v) return 2 / v end },
  ['%'] = { function(v, w) return v % w end, function(v) return v % 2 end, function(v) return 2 % v end },
} do
  for i, constant in ipairs { 'none', 'right', 'left' } do
    bytecode.ARITHMETIC[op(functions[i], 1)] = { sign = sign, constant = constant }
  end
end

--- What a comparison tests when it does not jump.
-- luacheck: push ignore 581 (`not (a < b)` is another instruction than `a >= b`)
bytecode.COMPARISONS = {
  [op(function(a, b) if a < b then up = a end end, 1)] = '<',
  [op(function(a, b) if not (a < b) then up = a end end, 1)] = '>=',
  [op(function(a, b) if a <= b then up = a end end, 1)] = '<=',
  [op(function(a, b) if not (a <= b) then up = a end end, 1)] = '>',
  [op(function(a, b) if a == b then up = a end end, 1)] = '==',
  [op(function(a, b) if a ~= b then up = a end end, 1)] = '~=',
}

-- luacheck: pop

--- The same for comparisons with constants: op, and whether it is a string.
bytecode.WITH_CONSTANTS = {
  [op(function(a) if a == 'text' then up = a end end, 1)] = { '==', true },
  [op(function(a) if a ~= 'text' then up = a end end, 1)] = { '~=', true },
  [op(function(a) if a == 1 then up = a end end, 1)] = { '==', false },
  [op(function(a) if a ~= 1 then up = a end end, 1)] = { '~=', false },
}

--- The number of slots between a called function and its first argument.
bytecode.CALL_GAP = (function()
  local function call(fn, value) fn(value) end
  return bytecode.a(util.funcbc(call, 2)) - bytecode.a(util.funcbc(call, 1))
end)()

-- Bits of an upvalue description.
bytecode.UV_LOCAL, bytecode.UV_IMMUTABLE, bytecode.UV_INDEX = 0x8000, 0x4000, 0xff

--- Returns the upvalue descriptions of a function and its inner functions, children before their parent.
---@param fn function
---@return integer[][]
function bytecode.upvalues(fn)
  local dump, at = string.dump(fn), 5 -- after the magic and the version
  local function uleb()
    local value, shift = 0, 1
    repeat
      local byte = dump:byte(at)
      at = at + 1
      value = value + bit.band(byte, 0x7f) * shift
      shift = shift * 128
    until byte < 0x80
    return value
  end
  uleb() -- flags; the dump is not stripped, so the chunk's name follows
  local name_size = uleb()
  at = at + name_size
  local all = {}
  while true do
    local size = uleb()
    if size == 0 then return all end
    local next_at = at + size
    local count = dump:byte(at + 3)
    at = at + 4
    uleb() -- collectable constants
    uleb() -- numeric constants
    local instructions = uleb()
    if uleb() > 0 then -- debug information: first line, lines
      uleb()
      uleb()
    end
    at = at + instructions * 4
    local list = {}
    for i = 0, count - 1 do
      list[i] = dump:byte(at + 2 * i) + 256 * dump:byte(at + 2 * i + 1)
    end
    all[#all + 1] = list
    at = next_at
  end
end

return bytecode
