-- SPDX-License-Identifier: GPL-2.0-only
-- Random expressions that gcc cannot check: shifts beyond the width, divisions by zero, indexes out of bounds, strings
-- and globs.
local event = require 'tests.unit.bindings.expr.expr_event'
local cases = require 'tests.unit.bindings.expr.expr_cases'

local random = {}

local function pick(list) return list[math.random(#list)] end

local function field() return pick(cases.INTS) end

local function leaf()
  local r = math.random(9)
  if r <= 4 then return field() end
  if r == 5 then return ('args[%s]'):format(random.number(1)) end
  if r == 6 then return ('ints[%s & 7]'):format(field()) end
  if r == 7 then return pick { '_cpu', '_tid', '_pid', '_time', '_period' } end
  if r == 8 then return ('nums[%s]'):format(pick { '0', '1', '2', '-1', 'f_i8', 'f_u8 & 3', 'f_u64', 'f_i64' }) end
  return pick { '0', '1', '31', '32', '63', '64', '-1', '0xff', '0x80000000', '1ul << 63', '0xffffffffffffffff',
    'name_len', 'rel_offset' }
end

--- Returns a random expression whose value is a number.
function random.number(depth)
  depth = depth or math.random(1, 4)
  if depth <= 0 then return leaf() end
  local function sub() return random.number(depth - 1) end
  local r = math.random(12)
  if r <= 3 then return ('(%s) %s (%s)'):format(sub(), pick { '<<', '>>' }, sub()) end
  if r <= 5 then return ('(%s) %s (%s)'):format(sub(), pick { '/', '%' }, sub()) end
  if r <= 7 then return ('(%s) %s (%s)'):format(sub(), pick { '+', '-', '*', '&', '|', '^', '<', '==' }, sub()) end
  if r == 8 then return ('%s((%s), (%s))'):format(pick { 'min', 'max' }, sub(), sub()) end
  if r == 9 then return ('%s(%s)'):format(pick { 'ntohl', 'ntohs' }, sub()) end
  if r == 10 then return ('((%s)ints)[%s]'):format(pick { 'short *', 'char *', 'unsigned char *' }, sub()) end
  if r == 11 then return ('(%s) ? (%s) : (%s)'):format(sub(), sub(), sub()) end
  return ('(%s) %s %s'):format(sub(), pick { '<<', '>>' }, pick { '0', '31', '32', '33', '63', '64', '65', '-1' })
end

local LETTERS = { 'a', 'b', 'c', 'x', '/', '0', ']', '-', '\\\\', '\200' }

local function word(most)
  local letters = {}
  for i = 1, math.random(0, most) do letters[i] = pick(LETTERS) end
  return table.concat(letters)
end

local function pattern()
  local parts = {}
  for i = 1, math.random(1, 6) do
    parts[i] = pick { '*', '*', '?', '[a-c]', '[!a]', '[^bx]', '[]x]', '[', word(2), word(3), '\\\\*', '[x\\\\]]' }
  end
  return table.concat(parts)
end

--- Returns a random condition on strings.
function random.filter(depth)
  depth = depth or math.random(0, 2)
  if depth > 0 then
    local a, b = random.filter(depth - 1), random.filter(depth - 1)
    return pick { ('(%s) && (%s)'):format(a, b), ('(%s) || (%s)'):format(a, b), ('!(%s)'):format(a),
      ('(%s) ? (%s) : (%s)'):format(a, b, a), ('(%s) && f_i32 / zero'):format(a) }
  end
  local text = pick { 'comm', 'next_comm', 'name', 'rel', '_comm', 'comm', '(comm + 3)', '(name + f_u8 / 32)' }
  local r = math.random(5)
  if r == 1 then return ('%s %s "%s"'):format(text, pick { '==', '!=' }, word(4)) end
  if r == 2 then return ('%s %s %s'):format(text, pick { '==', '!=' }, pick { 'comm', 'next_comm' }) end
  if r == 3 then return ('%s ~ "%s"'):format(text, pick { '*', '' } .. word(2) .. '*') end
  if r == 4 then return ('%s[%d] == \'a\''):format(text, math.random(0, 3)):gsub('_comm%[', 'comm[') end
  return ('%s ~ "%s"'):format(text, pattern())
end

--- Returns a record of a few letters, and random numbers.
function random.record()
  local function letters(most) return (word(most):gsub('\\\\', '\\')) end
  return event.new {
    comm = letters(16):sub(1, 16), next_comm = letters(8):sub(1, 16), name = letters(20) .. '\0',
    rel = letters(3) .. pick { '\0', '' }, f_i32 = math.random(-3, 3), f_u8 = math.random(0, 255),
  }
end

return random
