-- SPDX-License-Identifier: GPL-2.0-only
--- Outliers: pairs that took too long or too short. Programs (pairs.lua) send them with both events, and only count
--- the others. A start keeps its event in its place (starts.lua). The event that ends an outlier is captured like any
--- other (capture.lua): a sample in the ring of the CPU, whose fields are followed by a struct outlier.
---
--- Another start with the same key may overwrite the kept event while it is copied. So the event is kept with the
--- start's word, which is inverted while the event is written. The copy is valid only if the word is that of the start.
---
--- The exit of a task is no event that programs write: perf tells it anyway. The program that ends a pair there leaves
--- the kept event in its place for the reader, and notes the word and the time beside it.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local capture = require 'bpf.gen.capture'
local starts = require 'bpf.gen.starts'

local FRAME = asm.FRAME
local outliers = {}

-- From pid on, it is what a sample of the first event has there.
ffi.cdef [[
struct outlier {
  uint64_t ns;
  int64_t key;
  uint32_t kind, tag; // tag: of the first event; 0: the event was overwritten
  int32_t pid, tid;
  uint64_t time, cpu;
  uint32_t raw_size;
  uint8_t raw[4];
};
]]
local AT = {}
for _, name in ipairs { 'ns', 'key', 'kind', 'tag', 'pid' } do AT[name] = ffi.offsetof('struct outlier', name) end

-- A kept event: a word, then what a sample has after its id, which is as long.
local ID, RAW, WORD = 8, 44, 8 -- offsets in a sample; size
local MOST_TAGS = 2 ^ starts.TAG_BITS - 1
local words_type = ffi.typeof 'uint64_t *'
local LEFT = { word = 0, ns = 8, size = 16 } -- after a kept event, if exits end pairs

--- An event as programs keep or send it.
---@class OutlierEvent
---@field event string "sys:name"
---@field list Field[]
---@field type integer common_type
---@field class? integer of the event
---@field number? integer in the rings, if it ends pairs
---@field id? integer64 in its samples

--- Which pairs are outliers.
---@class OutlierPlan
---@field than? number ns: those that took longer
---@field lower? number ns: those that took less
---@field rings Rings
---@field size? integer bytes of a kept event, see outliers.size(); nil: only the second events are sent, as captured
--- events
---@field number integer in the rings: of one of the events that end pairs
---@field leaves? boolean the exit of a task may end a pair
---@field is_early? boolean the reader is woken for them

--- What finish() needs of a pair: places on the stack.
---@class OutlierPlaces
---@field start integer address of the start
---@field word integer of the start
---@field ns integer
---@field kind integer

--- Returns the bytes that starts need to keep an event.
---@param list Field[]
---@return integer
function outliers.size(list) return RAW - ID + capture.raw_size(list) end

--- Returns the bytes that starts need.
---@param plan OutlierPlan
---@return integer?
function outliers.more(plan) return plan.size and plan.size + (plan.leaves and LEFT.size or 0) end

--- Returns a function for Starts:store() that generates code to keep the event.
---@param a Asm
---@param source Source
---@param places ProbePlaces
---@param event OutlierEvent
---@param more integer Starts.more
---@param load_word fun() generates r1 = the word of the start, at the time in r8
---@return fun()
function outliers.keeper(a, source, places, event, more, load_word)
  return function()
    local time, word, done = a:take(8), a:take(8), a:new_label()
    a:store(8, FRAME, time, 8)
    load_word()
    a:store(8, FRAME, word, 1)
    a:alu('xor', 1, -1)
    a:store(8, 9, more, 1)
    a:call 'get_current_task_btf'
    a:alu_r('mov', 8, 0)
    capture.write_head(a, event.event, { time = time, cpu = places.cpu }, more - ID)
    capture.write_raw(a, source, event, more - ID)
    a:load(8, 8, FRAME, time)
    a:load(8, 1, FRAME, word)
    a:alu_r('mov', 0, 1)
    a:alu('xor', 0, -1)
    a:alu_r('mov', 2, 0)
    a:compare_exchange(9, more, 1)
    a:jump_r('==', 0, 2, done)
    a:store_value(8, 9, more, 0) -- two events have been written at the same time
    a:label(done)
    a:give(time, 8)
    a:give(word, 8)
  end
end

--- Generates code that moves a kept event to the place at r9. Uses r1 and r2.
---@param a Asm
---@param plan OutlierPlan
---@param from integer place on the stack of the address of the place where it is
---@param more integer Starts.more
function outliers.move_kept(a, plan, from, more)
  a:load(8, 2, FRAME, from)
  for off = more, more + plan.size - 8, 8 do
    a:load(8, 1, 2, off)
    a:store(8, 9, off, 1)
  end
end

--- Generates code that ends the program unless outliers can be sent: when the session has ended, pairs that are not
--- sent must not count. Returns the place on the stack of the ring's address. Uses r0 to r3.
---@param a Asm
---@param plan OutlierPlan
---@param event? OutlierEvent that ends pairs; nil: it is the exit of a task
---@return integer
function outliers.begin(a, plan, event)
  local ring = a:take(8)
  plan.rings:check(a, 'done', event and event.number or plan.number)
  a:store(8, FRAME, ring, 1)
  return ring
end

--- Returns places on the stack, where the start at r9 and its word in r1 are noted.
---@param a Asm
---@return OutlierPlaces
function outliers.note(a)
  local found = { start = a:take(8), word = a:take(8), ns = a:take(8), kind = a:take(8) }
  a:store(8, FRAME, found.start, 9)
  a:store(8, FRAME, found.word, 1)
  return found
end

--- Generates code that copies the kept event to the struct outlier at r9 + at. Uses r1, r2 and r8.
local function copy(a, plan, found, more, at)
  local is_valid = a:new_label()
  a:load(8, 8, FRAME, found.start)
  for off = WORD, plan.size - 8, 8 do
    a:load(8, 1, 8, more + off)
    a:store(8, 9, at + AT.pid + off - WORD, 1)
  end
  a:load(8, 2, 8, more)
  a:load(8, 1, FRAME, found.word)
  a:jump_r('==', 1, 2, is_valid)
  a:alu('mov', 1, 0)
  a:label(is_valid)
  a:alu('and', 1, MOST_TAGS)
  a:store(4, 9, at + AT.tag, 1)
end

--- Generates code that jumps unless the time of a pair makes it an outlier. Uses r1 and leaves the time in r3.
local function unless_one(a, plan, found, none)
  local is_one = a:new_label()
  a:load(8, 3, FRAME, found.ns)
  for op, limit in pairs { ['>'] = plan.than, ['<'] = plan.lower } do
    a:value(1, limit)
    a:jump_r(op, 3, 1, is_one)
  end
  a:go(none)
  a:label(is_one)
end

--- Generates code that leaves a pair with the key in r7 to the reader, if it is an outlier. Jumps if it cannot. Uses
--- r1 to r3 and r9.
---@param a Asm
---@param plan OutlierPlan
---@param found OutlierPlaces
---@param from Starts
---@param unkept string label
---@param count fun() generates code that counts the outlier, with r1 and r2
function outliers.leave(a, plan, found, from, unkept, count)
  local done, at = a:new_label(), from.more + plan.size
  unless_one(a, plan, found, done)
  count()
  from:place(a, unkept)
  a:load(8, 1, FRAME, found.start)
  a:jump_r('!=', 1, 9, unkept) -- the key was in the hash map, where it is no more
  a:store(8, 9, at + LEFT.ns, 3)
  a:load(8, 1, FRAME, found.word)
  a:store(8, 9, at + LEFT.word, 1)
  a:label(done)
end

--- Takes what a program has left for a key: copies the kept event to `out`, without its data that programs send.
---@param plan OutlierPlan
---@param from Starts
---@param key integer
---@param out ffi.cdata* struct outlier *, with room for plan.size
---@return boolean found with out.tag = 0 if the event was overwritten
function outliers.take_left(plan, from, key, out)
  local place = from:address(key)
  if not place then return false end
  local kept = place + from.more
  local left = ffi.cast(words_type, kept + plan.size)
  local word = left[LEFT.word / 8]
  if word == 0 then return false end
  out.ns, out.key, left[LEFT.word / 8] = left[LEFT.ns / 8], key, 0
  outliers.copy_kept(plan, kept, word, out)
  return true
end

--- Copies a kept event. Returns whether it is still that of a start.
---@param plan OutlierPlan
---@param kept ffi.cdata* uint8_t *
---@param word integer64 of the start
---@param out ffi.cdata* struct outlier *, with room for plan.size; its tag becomes 0 if the event was overwritten
---@return boolean
function outliers.copy_kept(plan, kept, word, out)
  ffi.copy(ffi.cast('uint8_t *', out) + AT.pid, kept + WORD, plan.size - WORD)
  local is_valid = ffi.cast(words_type, kept)[0] == word
  out.tag = is_valid and tonumber(word % (MOST_TAGS + 1)) or 0
  return is_valid
end

--- Generates code that sends a pair with the key in r7, at the time in r8, if it is an outlier. Keeps r7 and r8.
---@param a Asm
---@param source Source
---@param places ProbePlaces
---@param plan OutlierPlan
---@param event OutlierEvent that ends the pair
---@param found OutlierPlaces
---@param ring integer see outliers.begin()
---@param more integer Starts.more
---@param count fun() generates code that counts the outlier, with r1 and r2
function outliers.send(a, source, places, plan, event, found, ring, more, count)
  local sent, done = a:new_label(), a:new_label()
  local key, time = a:take(8), a:take(8)
  unless_one(a, plan, found, done)
  count()
  a:store(8, FRAME, key, 7)
  a:store(8, FRAME, time, 8)
  capture.write(a, source, { cpu = places.cpu, side = ring, time = time }, {
    event = event.event, list = event.list, type = event.type, id = event.id, rings = plan.rings, done = sent,
    is_early = plan.is_early,
    more = plan.size and { size = AT.pid + plan.size - WORD, write = function(at)
      for name, place in pairs { ns = found.ns, key = key } do
        a:load(8, 1, FRAME, place)
        a:store(8, 9, at + AT[name], 1)
      end
      a:load(8, 1, FRAME, found.kind)
      a:store(4, 9, at + AT.kind, 1)
      copy(a, plan, found, more, at)
    end },
  })
  a:label(sent)
  a:load(8, 7, FRAME, key)
  a:load(8, 8, FRAME, time)
  a:label(done)
end

return outliers
