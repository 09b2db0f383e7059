-- SPDX-License-Identifier: GPL-2.0-only
--- The starts of pairs that programs wait with: at most one for each key. A start is one word: the time of its event,
--- and the tag of the event in the lower bits, so that it can be taken atomically. 0: none waits.
---
--- Keys that are small numbers, such as threads, have a place each. Others have the place that their hash tells, while
--- no other key has it. Then they are in a hash map of the kernel, which is slower. Events with the same key must not
--- happen on several CPUs at the same time: one of them might be missed.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'

local FRAME = asm.FRAME
local starts = {}

starts.TAG_BITS = 4

local DIRECT = { size = 16, start = 0, value = 8 }
local HASHED = { owner = 0, start = 8, value = 16, size = 32 }
local PLACES_BITS = 16
local MULTIPLIER = 0x9e3779b97f4a7c15ULL
local MOST_OTHERS = 16384
local words_type = ffi.typeof 'uint64_t *'

---@class Starts
---@field map Descriptor
---@field more integer offset in a place: what Starts:store() writes in addition
local Starts = {}
Starts.__index = Starts

--- Makes the places. Refuses without BPF.
---@param direct? integer number of places if all keys are less
---@param more? integer bytes, a multiple of 8, that each place has for Starts:store()
---@return Starts
function starts.new(direct, more)
  local self = setmetatable({ direct = direct, places = direct or 2 ^ PLACES_BITS }, Starts)
  self.at = direct and DIRECT or HASHED
  self.more, self.size = self.at.size, self.at.size + (more or 0)
  self.map = program.mapped(self.places * self.size, 'starts')
  if not direct then
    self.others, self.nr_others = program.hash(8, self.size, MOST_OTHERS, 'starts_hash'),
      program.mapped(8, 'starts_others')
    self.zeros = more and program.mapped(self.size, 'starts_zeros')
  end
  return self
end

--- Generates code that puts the address of the key's place into r9. The key is in r7. Uses r1 and r2.
function Starts:place(a, outside)
  if self.direct then
    a:jump('>=', 7, self.direct, outside)
    a:alu_r('mov', 1, 7)
  else -- as hash_key() of runtime/relations/pairs.c
    a:alu_r('mov', 1, 7)
    a:alu_r('mov', 2, 7)
    a:alu('rsh', 2, 32)
    a:alu_r('xor', 1, 2)
    a:value(2, MULTIPLIER)
    a:alu_r('mul', 1, 2)
    a:alu('rsh', 1, 64 - PLACES_BITS)
  end
  a:alu('mul', 1, self.size)
  a:map_value(9, self.map, 0)
  a:alu_r('add', 9, 1)
end

--- Returns the address of the key's place, which another key may have; nil: it has none.
---@param key integer
---@return ffi.cdata*? uint8_t *
function Starts:address(key)
  if self.direct then return key >= 0 and key < self.direct and self.map.bytes + key * self.size or nil end
  local word = key + 0ULL
  word = bit.bxor(word, bit.rshift(word, 32)) * MULTIPLIER
  return self.map.bytes + bit.rshift(word, 64 - PLACES_BITS) * self.size
end

--- Generates r1 = what marks the place of the key in r7. A key of -1 is never there.
local function owner(a)
  a:address(1, 7, 1)
end

--- Generates code that finds the start of the key in r7: r9 is its address, and r1 the word. Jumps if none waits; then
--- r9 is undefined. Uses r0 to r5.
---@param a Asm
---@param none string label
function Starts:find(a, none)
  self:place(a, none)
  if not self.direct then
    local elsewhere, found = a:new_label(), a:new_label()
    owner(a)
    a:jump('==', 1, 0, elsewhere)
    a:load(8, 2, 9, HASHED.owner)
    a:jump_r('==', 1, 2, found)
    a:label(elsewhere)
    self:find_other(a, none)
    a:label(found)
  end
  a:load(8, 1, 9, self.at.start)
  a:jump('==', 1, 0, none)
end

--- Generates r2 = the address of a copy of the key on the stack.
local function key_on_stack(a, slot)
  a:store(8, FRAME, slot, 7)
  a:address(2, FRAME, slot)
end

function Starts:find_other(a, none)
  local slot = a:take(8)
  a:map_value(1, self.nr_others, 0)
  a:load(8, 1, 1, 0)
  a:jump('==', 1, 0, none)
  a:map(1, self.others)
  key_on_stack(a, slot)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, none)
  a:alu_r('mov', 9, 0)
  a:give(slot, 8)
end

--- Generates code that takes the start at r9 away and leaves its word in r1; 0 if another event was faster. With
--- `value`, its value is stored there on the stack. Uses r0 to r5.
---@param a Asm
---@param value? integer place on the stack
function Starts:take(a, value)
  if value then
    a:load(8, 1, 9, self.at.value)
    a:store(8, FRAME, value, 1)
  end
  a:alu('mov', 1, 0)
  a:exchange(9, self.at.start, 1)
  if self.direct then return end
  local slot, word, other, done = a:take(8), a:take(8), a:new_label(), a:new_label()
  a:load(8, 2, 9, HASHED.owner)
  a:jump('==', 2, 0, other)
  a:store_value(8, 9, HASHED.owner, 0)
  a:go(done)
  a:label(other)
  a:store(8, FRAME, word, 1)
  a:map(1, self.others)
  key_on_stack(a, slot)
  a:call 'map_delete_elem'
  a:map_value(2, self.nr_others, 0)
  a:alu('mov', 1, -1)
  a:atomic_add(8, 2, 0, 1)
  a:load(8, 1, FRAME, word)
  a:label(done)
  a:give(slot, 8)
  a:give(word, 8)
end

--- Generates r1 = the word of a start at the time in r8.
---@param a Asm
---@param tag integer|{ word: integer } the place of the word on the stack
function starts.word(a, tag)
  if type(tag) == 'table' then return a:load(8, 1, FRAME, tag.word) end
  a:alu_r('mov', 1, 8)
  a:alu('lsh', 1, starts.TAG_BITS)
  a:alu('or', 1, tag)
end

local function write(self, a, tag, value, keep)
  if value then
    a:load(8, 1, FRAME, value)
    a:store(8, 9, self.at.value, 1)
  end
  if keep then keep() end
  starts.word(a, tag)
  a:store(8, 9, self.at.start, 1)
end

--- Generates code that stores a start for the key in r7, at the time in r8. Jumps if there is no room, or if a later
--- start waits. Uses r0 to r5 and r9.
---@param a Asm
---@param tag integer|{ word: integer } from 1; or the place on the stack of the word of a start that was taken
---@param value? integer place on the stack
---@param labels { full: string, late: string }
---@param count fun(name: string) generates code that counts, with r1 and r2
---@param keep? fun() generates code that writes more of the start to r9 + self.more, before the start can be taken; it
--- uses r0 to r5
function Starts:store(a, tag, value, labels, count, keep)
  local free, done = a:new_label(), a:new_label()
  if self.direct then
    self:place(a, labels.full)
    a:load(8, 1, 9, self.at.start)
    a:jump('==', 1, 0, free)
  else
    self:find(a, free)
  end
  local younger = a:take(8)
  a:store(8, FRAME, younger, 1)
  count 'replaced'
  a:load(8, 1, FRAME, younger)
  a:give(younger, 8)
  a:alu('rsh', 1, starts.TAG_BITS)
  a:jump_r('>', 1, 8, labels.late)
  if self.direct then a:label(free) end
  write(self, a, tag, value, keep)
  if not self.direct then
    a:go(done)
    a:label(free)
    self:claim(a, tag, value, labels.full, done, keep)
  end
  a:label(done)
end

--- Generates code for a thread that gets the id in r8 instead of the one in r7: its start goes on with the new key, and
--- the start of the thread that had it before is removed. Ends the program. Uses all registers but r6.
---@param a Asm
---@param value? integer place on the stack for the value of the start
---@param count fun(name: string) generates code that counts, with r1 and r2: ended, replaced, evicted
---@param keep? fun(place: integer) generates code that moves what else was kept to r9, from the address at a place on
--- the stack
function Starts:move(a, value, count, keep)
  local before, word, place = a:take(8), a:take(8), a:take(8)
  local none, full = a:new_label(), a:new_label()
  a:store(8, FRAME, before, 7)
  a:alu_r('mov', 7, 8)
  self:find(a, none)
  self:take(a)
  a:jump('==', 1, 0, none)
  count 'ended'
  a:label(none)
  a:load(8, 7, FRAME, before)
  self:find(a, 'done')
  a:store(8, FRAME, place, 9)
  self:take(a, value)
  a:jump('==', 1, 0, 'done')
  a:store(8, FRAME, word, 1)
  a:alu_r('mov', 7, 8)
  a:alu_r('mov', 8, 1)
  a:alu('rsh', 8, starts.TAG_BITS)
  self:store(a, { word = word }, value, { full = full, late = 'done' }, count, keep and function() keep(place) end)
  a:go 'done'
  a:label(full)
  count 'evicted'
end

--- Generates code that stores a start for a key that has none.
function Starts:claim(a, tag, value, full, done, keep)
  local other, ours = a:new_label(), a:new_label()
  self:place(a, full)
  owner(a)
  a:jump('==', 1, 0, other)
  a:alu('mov', 0, 0)
  a:compare_exchange(9, HASHED.owner, 1)
  a:jump('==', 0, 0, ours)
  a:jump_r('!=', 0, 1, other)
  a:label(ours)
  write(self, a, tag, value, keep)
  a:go(done)
  a:label(other)
  if keep then return self:add_other(a, tag, value, full, keep) end
  local slot, room = a:take(8), a:take(HASHED.size)
  for at = 0, HASHED.size - 8, 8 do a:store_value(8, FRAME, room + at, 0) end
  if value then
    a:load(8, 1, FRAME, value)
    a:store(8, FRAME, room + HASHED.value, 1)
  end
  starts.word(a, tag)
  a:store(8, FRAME, room + HASHED.start, 1)
  a:map(1, self.others)
  key_on_stack(a, slot)
  a:address(3, FRAME, room)
  a:alu('mov', 4, 0)
  a:call 'map_update_elem'
  a:jump('!=', 0, 0, full)
  a:map_value(2, self.nr_others, 0)
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
  a:give(slot, 8)
  a:give(room, HASHED.size)
end

--- Generates code that stores a start, with more, for a key that has no place.
function Starts:add_other(a, tag, value, full, keep)
  local slot = a:take(8)
  a:map(1, self.others)
  key_on_stack(a, slot)
  a:map_value(3, self.zeros, 0)
  a:alu('mov', 4, 0)
  a:call 'map_update_elem'
  a:jump('!=', 0, 0, full)
  a:map_value(2, self.nr_others, 0)
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
  a:map(1, self.others)
  key_on_stack(a, slot)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, full)
  a:alu_r('mov', 9, 0)
  write(self, a, tag, value, keep)
  a:give(slot, 8)
end

--- Calls each(tag, time) for the starts that wait.
---@param each fun(tag: integer, time: number)
function Starts:each(each)
  local function call(word)
    if word ~= 0 then each(tonumber(word % 2 ^ starts.TAG_BITS), tonumber(bit.rshift(word, starts.TAG_BITS))) end
  end
  local words, step = ffi.cast(words_type, self.map.bytes), self.size / 8
  for i = self.at.start / 8, self.places * step - 1, step do call(words[i]) end
  if self.others then
    program.each(self.others, function(value) call(ffi.cast(words_type, value)[HASHED.start / 8]) end)
  end
end

return starts
