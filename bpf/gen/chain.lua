-- SPDX-License-Identifier: GPL-2.0-only
--- Callchains as perf puts them into samples: a number of words, and the addresses of the stack in the kernel and in
--- the user's program, each after a mark. They are collected in memory of the BPF program, because it must know the
--- size before it takes room for a record.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'

local C = ffi.C
local FRAME = asm.FRAME
local chain = {}

local WORD = 8
local KERNEL_MARK, USER_MARK = -128, -512 -- PERF_CONTEXT_KERNEL, PERF_CONTEXT_USER
local USER_STACK = 256 -- BPF_F_USER_STACK
chain.LEVELS = 4 -- programs on a CPU that interrupt each other
local MAX_FRAMES = 127
local MARKS = 2

-- The first frames are those of the program and of bpf_trace_runN(), which has called it. Then may come the function
-- that has called that one. It does so last, so some compilers make it a jump, and there is no such frame. They count
-- where the kernel limits the frames, which only a stack of more than 124 frames in the kernel would show.
local OWN_FRAMES = 3
local RUN_SIZE = 512 -- more than the bytes of bpf_trace_runN()
local CALL_OPERAND = 4 -- bytes of a call instruction before its return address: the distance to the function

--- The callchains of a run's events.
---@class Chains
---@field memory Descriptor
---@field walker? Walker finds the part of the user's program; nil: frame pointers
local Chains = {}
Chains.__index = Chains

chain.MAX_SIZE = WORD * (1 + MARKS + MAX_FRAMES)

local STATE = 2 * chain.MAX_SIZE + OWN_FRAMES * WORD -- where the memory has what a walk keeps

--- Returns the greatest number of frames that the kernel records.
local function most_frames()
  local most = tonumber((sys.read '/proc/sys/kernel/perf_event_max_stack'))
  if not most or most > MAX_FRAMES then asm.refuse('stacks have more than %d frames', MAX_FRAMES) end
  return most
end

--- Creates the memory. Refuses without BPF.
---@param walker? Walker finds the part of the user's program; nil: frame pointers
---@return Chains
function chain.new(walker)
  if sys.read '/proc/sys/net/core/bpf_jit_enable':match '^0' then asm.refuse 'the kernel interprets BPF programs' end
  local size = STATE + (walker and walker.size or 0)
  return setmetatable({ walker = walker, memory = program.memory(size, chain.LEVELS, 'stacks') }, Chains)
end

--- Generates code that makes r9 + 0 the first word of the chain, and leaves its bytes so far in r0. Uses r1 to r5.
local function kernel_frames(a, max)
  local none, own, done, slot = a:new_label(), a:new_label(), a:new_label(), a:take(WORD)
  a:alu_r('mov', 1, asm.CONTEXT)
  a:alu_r('mov', 2, 9)
  a:alu('mov', 3, WORD * (max + OWN_FRAMES))
  a:alu('mov', 4, 0)
  a:call 'get_stack'
  a:jump('s<', 0, WORD * OWN_FRAMES, none)
  local bytes = a:take(WORD)
  a:store(8, FRAME, bytes, 0)
  -- Does the third frame call the function of the second one?
  a:address(1, FRAME, slot)
  a:alu('mov', 2, CALL_OPERAND)
  a:load(8, 3, 9, 2 * WORD)
  a:alu('sub', 3, CALL_OPERAND)
  a:call 'probe_read_kernel'
  a:load(4, 1, FRAME, slot)
  a:extend(1, 32, true)
  a:load(8, 2, 9, 2 * WORD)
  a:alu_r('add', 1, 2)
  a:load(8, 2, 9, WORD)
  a:alu_r('sub', 2, 1)
  a:load(8, 0, FRAME, bytes)
  a:give(bytes, WORD)
  a:give(slot, WORD)
  a:jump('<', 2, RUN_SIZE, own)
  a:jump('<=', 0, WORD * (max + MARKS), done)
  a:alu('mov', 0, WORD * (max + MARKS))
  a:go(done)
  a:label(own)
  a:alu('add', 9, WORD)
  a:alu('sub', 0, WORD)
  a:go(done)
  a:label(none)
  a:alu('mov', 0, 0)
  a:label(done)
end

--- The same by unwind tables. A place on the stack has the address of the memory. Jumps with the chain as it was
--- if the process has no tables.
local function table_frames(a, walker, max, memory, level, none)
  local kept, bytes = { a:take(WORD), a:take(WORD), a:take(WORD) }, a:take(WORD)
  local back, fits, begins, done = a:new_label(), a:new_label(), a:new_label(), a:new_label()
  a:store(8, FRAME, bytes, 0)
  for i = 1, 3 do a:store(8, FRAME, kept[i], 6 + i) end
  a:alu('mov', 1, WORD * (max + MARKS))
  a:alu_r('sub', 1, 0)
  a:jump('s<=', 1, 0, back)
  a:alu('rsh', 1, 3)
  a:alu_r('mov', 7, 9)
  a:load(8, 9, FRAME, memory)
  a:alu('add', 9, STATE)
  a:store(8, 9, walker.room, 1)
  a:alu_r('add', 7, 0) -- through memory, so that the verifier does not follow each place of a chain
  a:alu_r('sub', 7, 9)
  a:store(8, 9, walker.frames, 7)
  a:load(8, 7, 9, walker.frames)
  a:alu('add', 7, STATE)
  a:jump('<', 7, WORD * (OWN_FRAMES + MARKS + MAX_FRAMES), begins)
  a:go(back)
  a:label(begins)
  a:alu_r('add', 7, 9)
  a:alu('sub', 7, STATE)
  a:store_value(8, 7, 0, USER_MARK)
  a:alu('add', 7, WORD)
  walker:generate(a, max, level, back)
  a:load(8, 1, 9, walker.frames)
  for i = 1, 3 do a:load(8, 6 + i, FRAME, kept[i]) end
  a:jump('<=', 1, max, fits)
  a:alu('mov', 1, max) -- never
  a:label(fits)
  a:alu('lsh', 1, 3)
  a:load(8, 0, FRAME, bytes)
  a:alu('add', 0, WORD)
  a:alu_r('add', 0, 1)
  a:go(done)
  a:label(back)
  for i = 1, 3 do a:load(8, 6 + i, FRAME, kept[i]) end
  a:load(8, 0, FRAME, bytes)
  a:go(none)
  a:label(done)
  for _, place in ipairs { kept[1], kept[2], kept[3], bytes } do a:give(place, WORD) end
end

--- Generates code that adds the user's frames to a chain of r0 bytes. Uses r1 to r5.
local function user_frames(a, max)
  local done, bytes = a:new_label(), a:take(WORD)
  a:store(8, FRAME, bytes, 0)
  a:alu('mov', 3, WORD * (max + MARKS))
  a:alu_r('sub', 3, 0)
  a:jump('s<=', 3, 0, done)
  a:alu_r('mov', 2, 9)
  a:alu_r('add', 2, 0)
  a:store_value(8, 2, 0, USER_MARK)
  a:alu('add', 2, WORD)
  a:alu_r('mov', 1, asm.CONTEXT)
  a:alu('mov', 4, USER_STACK)
  a:call 'get_stack'
  a:jump('s<=', 0, 0, done)
  a:load(8, 1, FRAME, bytes)
  a:alu_r('add', 1, 0)
  a:alu('add', 1, WORD)
  a:store(8, FRAME, bytes, 1)
  a:label(done)
  a:load(8, 0, FRAME, bytes)
  a:give(bytes, WORD)
end

--- Generates r9 = the address of what a walk keeps, in a program that interrupts no other one. Jumps if there is none.
---@param a Asm
---@param none string label
function Chains:state(a, none)
  local level = a:take(WORD)
  a:store_value(8, FRAME, level, 0)
  a:map(1, self.memory)
  a:address(2, FRAME, level)
  a:call 'map_lookup_elem'
  a:give(level, WORD)
  a:jump('==', 0, 0, none)
  a:alu_r('mov', 9, 0)
  a:alu('add', 9, STATE)
end

--- Generates code that collects the chain of the current event: its address is in r9 and its bytes in r0. Uses r1 to
--- r5. The number of programs that this one has interrupted is in r8. Jumps if there are too many.
---@param a Asm
---@param parts integer enum stack_parts
---@param max integer frames; 0: as many as the kernel records
---@param none string label
function Chains:collect(a, parts, max, none)
  local most = most_frames()
  if max == 0 or max > most then max = most end
  local level, known, start = a:take(WORD), a:new_label(), a:new_label()
  local memory = self.walker and parts >= C.STACK_USER and a:take(WORD)
  a:jump('>=', 8, chain.LEVELS, none)
  a:store(8, FRAME, level, 8)
  a:map(1, self.memory)
  a:address(2, FRAME, level)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, none)
  a:alu_r('mov', 9, 0)
  if memory then a:store(8, FRAME, memory, 9) end
  if parts % 2 == C.STACK_KERNEL then
    kernel_frames(a, max)
    a:jump('==', 0, 0, start)
    a:store_value(8, 9, WORD, KERNEL_MARK)
    a:go(known)
    a:label(start)
  end
  a:alu('mov', 0, WORD)
  a:label(known)
  if parts >= C.STACK_USER then
    local others, complete = a:new_label(), a:new_label()
    if self.walker then
      table_frames(a, self.walker, max, memory, level, others)
      a:go(complete)
    end
    a:label(others)
    user_frames(a, max)
    a:label(complete)
    if memory then a:give(memory, WORD) end
  end
  a:give(level, WORD)
  a:alu_r('mov', 1, 0)
  a:alu('rsh', 1, 3)
  a:alu('sub', 1, 1)
  a:store(8, 9, 0, 1)
end

return chain
