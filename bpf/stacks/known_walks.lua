-- SPDX-License-Identifier: GPL-2.0-only
--- Walks that a CPU has made lately, each with the words of the program's stack that it has read. If the registers and
--- these words are the same again, so are the frames, and what was made of them. For programs that nothing interrupts.
local asm = require 'bpf.gen.asm'
local frame = require 'bpf.stacks.frame'
local program = require 'bpf.gen.program'
local tables = require 'bpf.stacks.tables'

local FRAME, STATE, AT, WORDS = asm.FRAME, frame.STATE, frame.AT, frame.WORDS
local COPY, COPIED = frame.COPY, frame.COPIED
local ENTRY = { hash = 0, n = 8, generation = 16, mm = 24, ip = 32, top = 40, bp = 48, words = 56,
  size = 56 + WORDS.size * WORDS.most, bits = 7 }
local SAME = { mm = 'mm', ip = 'first_ip', bp = 'first_bp', top = 'top' } -- of an entry, and of the frame

local known_walks = {}

---@class KnownWalks
---@field tables StackTables
---@field map Descriptor
local KnownWalks = {}
KnownWalks.__index = KnownWalks

---@param all StackTables
---@return KnownWalks
function known_walks.new(all)
  return setmetatable({ tables = all, map = program.memory(ENTRY.size, 2 ^ ENTRY.bits, 'known_walks') }, KnownWalks)
end

--- Generates r1 = what the tables are now: it changes with them.
local function load_generation(a, all)
  a:map_value(1, all.counters, tables.COUNTERS.generation)
  a:load(8, 1, 1, 0)
end

--- Generates r0 = the entry for the stack, and notes it at a place on the stack. Jumps if there is none.
local function find_entry(a, map, entry, other)
  local key = a:take(8)
  a:value(2, frame.MULTIPLIER)
  a:load(8, 1, STATE, AT.top)
  a:load(8, 3, STATE, AT.mm)
  a:alu_r('xor', 1, 3)
  a:alu_r('mul', 1, 2)
  a:load(8, 3, STATE, AT.ip)
  a:alu_r('xor', 1, 3)
  a:alu_r('mul', 1, 2)
  a:alu('rsh', 1, 64 - ENTRY.bits)
  a:store(8, FRAME, key, 1)
  a:map(1, map)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:give(key, 8)
  a:jump('==', 0, 0, other)
  a:store(8, FRAME, entry, 0)
end

--- Generates code that looks whether the stack of the current task's program has the words that a walk has read lately:
--- r0 is what note() has kept of it then. Jumps if not. The address of the frame is in r9. Uses all registers but
--- CONTEXT and r7.
---@param a Asm
---@param other string label
---@return integer place on the stack, for note()
function KnownWalks:find(a, other)
  local entry, mm, found = a:take(8), a:take(8), a:new_label()
  a:store_value(8, FRAME, entry, 0)
  frame.load_registers(a, mm, other)
  frame.copy_stack(a)
  find_entry(a, self.map, entry, other)
  load_generation(a, self.tables)
  a:load(8, 2, 0, ENTRY.generation)
  a:jump_r('!=', 1, 2, other)
  for known, at in pairs(SAME) do
    a:load(8, 1, 0, ENTRY[known])
    a:load(8, 2, STATE, AT[at])
    a:jump_r('!=', 1, 2, other)
  end
  a:load(8, 8, 0, ENTRY.n)
  a:jump('==', 8, 0, other)
  for k = 0, WORDS.most - 1 do
    local at = ENTRY.words + WORDS.size * k
    local far, loaded = a:new_label(), a:new_label()
    a:jump('<=', 8, k, found)
    a:load(8, 3, 0, at + WORDS.place)
    a:jump('>', 3, COPIED - 8, far)
    a:alu_r('add', 3, STATE)
    a:load(8, 2, 3, COPY)
    a:go(loaded)
    a:label(far)
    a:load(8, 1, STATE, AT.top)
    a:alu_r('add', 3, 1)
    frame.read(a, AT.words, 8, other)
    a:load(8, 2, STATE, AT.words)
    a:load(8, 0, FRAME, entry)
    a:label(loaded)
    a:load(8, 3, 0, at + WORDS.word)
    a:jump_r('!=', 2, 3, other)
  end
  a:label(found)
  a:load(8, 0, 0, ENTRY.hash)
  a:give(mm, 8)
  return entry
end

--- Generates code that keeps a number for the walk that was just made, if its words are noted. Uses r0 to r5.
---@param a Asm
---@param entry integer place on the stack, of find()
---@param hash integer place on the stack
function KnownWalks:note(a, entry, hash)
  local done, complete = a:new_label(), a:new_label()
  a:load(8, 5, FRAME, entry)
  a:jump('==', 5, 0, done)
  a:store_value(8, 5, ENTRY.n, 0)
  a:load(8, 1, STATE, AT.noted)
  a:jump('>=', 1, WORDS.most, done)
  load_generation(a, self.tables)
  a:store(8, 5, ENTRY.generation, 1)
  for known, at in pairs(SAME) do
    a:load(8, 1, STATE, AT[at])
    a:store(8, 5, ENTRY[known], 1)
  end
  a:load(8, 1, FRAME, hash)
  a:store(8, 5, ENTRY.hash, 1)
  a:load(8, 2, STATE, AT.noted)
  for k = 0, WORDS.most - 1 do
    a:jump('<=', 2, k, complete)
    for off = 0, WORDS.size - 8, 8 do
      a:load(8, 1, STATE, WORDS.at + WORDS.size * k + off)
      a:store(8, 5, ENTRY.words + WORDS.size * k + off, 1)
    end
  end
  a:label(complete)
  a:load(8, 2, STATE, AT.noted)
  a:store(8, 5, ENTRY.n, 2)
  a:label(done)
end

return known_walks
