-- SPDX-License-Identifier: GPL-2.0-only
--- Methods of the compiler (compile.lua): comparisons of strings and globs. A string ends at its first NUL or at the
--- end of its field. One at a fixed place is compared where it is; others are copied to the stack first, with zeros
--- after their end. There are no loops: the code is generated for each byte.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local glob = require 'bpf.gen.glob_automaton'
local memory = require 'bpf.gen.arrays'
local program = require 'bpf.gen.program'
local fnmatch_pattern = require('bindings.expr.memory').fnmatch_pattern
local types = require 'bindings.expr.types'

local FRAME, TYPES = asm.FRAME, types.INTEGERS

local strings = {}

local TASK_NAME = 16 -- bytes
local MAX_LITERAL = 255 -- bytes that are compared
local MAX_SCANNED = 64 -- bytes of a dynamic string that a glob looks at

local function is_string(value)
  return value.kind == 'str' or value.kind == 'ptr' and value.elem ~= nil and TYPES[value.elem].size == 1
end

--- A string in a program.
---@class KernelText
---@field room? integer its bytes are those up to room, or a NUL; nil: up to a NUL, which it has within the bytes asked
--- for unless it is longer
---@field place integer offset that decides on the alignment
---@field load fun(size: integer, to: integer, at: integer)
---@field release? fun() gives back its place on the stack, after the code that loads it

--- Makes the first `most` bytes of a string accessible.
---@param value table 'ptr' or 'str'
---@param most integer
---@param whole? boolean jumps to labels.undecided if the string is longer
---@return KernelText
function strings:text(value, most, whole)
  local a = self.a
  if value.is_comm then
    local slot = a:take(TASK_NAME)
    self.source:comm(a, slot)
    return {
      room = TASK_NAME, place = 0,
      load = function(size, to, at) a:load(size, to, FRAME, slot + at) end,
      release = function() a:give(slot, TASK_NAME) end,
    }
  end
  if not is_string(value) then asm.refuse('a number is not a string') end
  if value.is_alone then asm.refuse("'%s' is not a string", value.name) end
  if value.field and type(value.off) == 'number' then
    if value.off < 0 or value.off > value.limit then asm.refuse("a read outside of '%s'", value.name) end
    return {
      room = value.limit - value.off, place = value.field.offset + value.off,
      load = function(size, to, at) self.source:load(a, size, to, value.field, value.off + at) end,
    }
  end
  if whole and not self.labels.undecided then
    asm.refuse("'%s' may be too long to be compared as a whole", value.name)
  end
  if most > MAX_LITERAL + 1 then asm.refuse('the string is too long') end
  if value.moved then self:check_bounds(value, 0) end
  local size = math.ceil(most / 8) * 8
  local slot, fits = a:take(size), a:new_label()
  for at = 0, size - 8, 8 do a:store_value(8, FRAME, slot + at, 0) end
  self:offset(2, value.limit)
  self:offset(1, value.off)
  a:alu_r('sub', 2, 1)
  a:jump('<=', 2, most, fits)
  if whole then a:go(self.labels.undecided) else a:alu('mov', 2, most) end
  a:label(fits)
  self:copy(slot, value)
  self:drop(value)
  return {
    place = 0,
    load = function(piece, to, at) a:load(piece, to, FRAME, slot + at) end,
    release = function() a:give(slot, size) end,
  }
end

local function release(text)
  if text.release then text.release() end
end

--- Generates jumps to a label unless the text has these bytes at its start.
---@param bytes string at most as many as the text has room for
function strings:expect(text, bytes, different)
  local a, at = self.a, 0
  while at < #bytes do
    local size = memory.piece(text.place + at, text.place + #bytes)
    local buffer = ffi.new 'uint64_t[1]'
    ffi.copy(buffer, bytes:sub(at + 1, at + size), size)
    if ffi.abi 'be' then buffer[0] = bit.rshift(buffer[0], 64 - 8 * size) end
    text.load(size, 0, at)
    if size == 8 then
      a:value(1, buffer[0])
      a:jump_r('!=', 0, 1, different)
    else
      a:jump32('!=', 0, bit.tobit(tonumber(buffer[0])), different)
    end
    at = at + size
  end
end

--- Generates jumps to a label unless the string equals the literal, or begins with it.
function strings:expect_literal(value, literal, is_prefix, different)
  if value.literal then
    local start = is_prefix and value.literal:sub(1, #literal) or value.literal
    if start ~= literal then self.a:go(different) end
    return
  end
  if #literal > MAX_LITERAL then asm.refuse('the string is too long') end
  local ended = is_prefix and literal or literal .. '\0'
  local text = self:text(value, math.max(#ended, 1))
  if text.room and #literal > text.room then
    self.a:go(different)
  else
    self:expect(text, text.room and ended:sub(1, text.room) or ended, different)
  end
  release(text)
end

--- Generates jumps to a label unless two strings are equal.
function strings:expect_equal(left, right, different)
  local a = self.a
  local function room_of(value)
    if value.is_comm then return TASK_NAME end
    return value.kind == 'ptr' and value.field and type(value.off) == 'number' and value.limit - value.off or nil
  end
  local room = math.min(room_of(left) or math.huge, room_of(right) or math.huge)
  if room > MAX_SCANNED then asm.refuse('neither string has a fixed size') end
  local one, other = self:text(left, room + 1), self:text(right, room + 1)
  local equal = a:new_label()
  for at = 0, room do
    local function load(text, to)
      if text.room and at >= text.room then a:alu('mov', to, 0) else text.load(1, to, at) end
    end
    load(one, 0)
    load(other, 1)
    a:jump_r('!=', 0, 1, different)
    a:jump('==', 0, 0, equal)
  end
  a:label(equal)
  release(one)
  release(other)
end

--- Generates jumps to a label unless the string matches a glob, by the states of its automaton: r0 has the
--- set of states, r2 the table, r4 the states that stay at any byte.
function strings:expect_automaton(value, pattern, different)
  local a = self.a
  local automaton, why = glob.automaton(pattern)
  if not automaton then asm.refuse('%s', why) end
  local text = self:text(value, MAX_SCANNED, true)
  if (text.room or 0) > MAX_SCANNED then asm.refuse("'%s' is too long to be matched", value.name) end
  local ended = a:new_label()
  local function follow_stars() -- a star may match nothing
    a:alu_r('mov', 3, 0)
    a:alu_r('and', 3, 4)
    a:alu('lsh', 3, 1)
    a:alu_r('or', 0, 3)
  end
  a:map_value(2, program.array(ffi.sizeof(automaton.table), 1, automaton.table, 'glob'), 0)
  a:value(4, automaton.stars)
  a:value(0, 1)
  follow_stars()
  for at = 0, (text.room or MAX_SCANNED) - 1 do
    text.load(1, 1, at)
    a:jump('==', 1, 0, ended)
    a:alu('lsh', 1, 3)
    a:alu_r('mov', 3, 2)
    a:alu_r('add', 3, 1)
    a:load(8, 3, 3, 0)
    a:alu_r('and', 3, 0)
    a:alu('lsh', 3, 1)
    a:alu_r('and', 0, 4)
    a:alu_r('or', 0, 3)
    a:jump('==', 0, 0, different)
    follow_stars()
  end
  a:label(ended)
  a:alu('rsh', 0, automaton.last)
  a:alu('and', 0, 1)
  a:jump('==', 0, 0, different)
  release(text)
end

local function is_special(text) return text:find '[*?%[\\]' ~= nil end

--- Generates jumps to a label unless the string matches a glob.
---@param kernel boolean in the syntax of the kernel's filters
function strings:expect_glob(value, pattern, kernel, different)
  if not is_string(value) then asm.refuse('a number is not a string') end
  if not is_special(pattern) then return self:expect_literal(value, pattern, false, different) end
  local start = pattern:match '^(.-)%*+$'
  if start and not is_special(start) then return self:expect_literal(value, start, true, different) end
  self:expect_automaton(value, fnmatch_pattern(pattern, kernel), different)
end

--- Jumps to the target if a test has the wanted result.
---@param test fun(different: string) jumps to the label if it fails
function strings:decide(target, when, test)
  if not when then return test(target) end
  local different = self.a:new_label()
  test(different)
  self.a:go(target)
  self.a:label(different)
end

--- Compares strings, or other values that are not numbers.
function strings:compare_objects(node, left, target, when)
  local right = self:expression(node.b)
  if right.kind == 'num' then asm.refuse('a string is not a number') end
  if node.sign ~= '==' and node.sign ~= '!=' or not (is_string(left) and is_string(right)) then
    asm.refuse('the kernel does not compare addresses')
  end
  if left.literal then left, right = right, left end
  self:decide(target, (node.sign == '==') == when, function(different)
    if right.literal then return self:expect_literal(left, right.literal, false, different) end
    self:expect_equal(left, right, different)
  end)
end

--- Matches a string against a glob: left ~ "glob".
function strings:match(left, node_b, target, when)
  if node_b.op ~= 'str' then asm.refuse('a glob that is not a literal') end
  self:decide(target, when, function(different) self:expect_glob(left, node_b.value, false, different) end)
end

--- Compares a string as the filters of the kernel do.
function strings:branch_match(node, target, when)
  local value = self:expression(node.a)
  self:decide(target, when ~= (node.negate or false), function(different)
    if node.glob then return self:expect_glob(value, node.pattern, true, different) end
    self:expect_literal(value, node.pattern, false, different)
  end)
end

return strings
