-- SPDX-License-Identifier: GPL-2.0-only
--- Stacks in the kernel that a CPU has seen lately: where on the stack each return address was. If they are all there
--- again, the walk would find the same, because each one and its place say where the next one is. That takes a tenth of
--- a walk. Only places that are without doubt are noted: between two addresses, neither is there a second time. Between
--- the function of a system call and the start of the stack, the kernel leaves room of a random size; so the last
--- places are counted from the end of the stack, and the others from the program's context, which is on the stack, too.
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'
local types = require 'bpf.gen.kernel_types'

local FRAME = asm.FRAME
local known_stacks = {}

local MOST_KNOWN, ENTRIES_BITS = 40, 8 -- addresses of an entry; entries of a CPU
local ENTRY = { hash = 0, n = 8, near = 16, rest = 24, words = 32, size = 32 + 16 * MOST_KNOWN }
local WORDS = { place = 0, address = 8, size = 16 }
local MOST_FRAMES = 8 -- of an entry of a program's stack
local PROGRAM = { hash = 0, n = 8, thread = 16, ip = 24, bp = 32, frames = 40, size = 40 + 16 * MOST_FRAMES }
local SCANNED = 2048 -- bytes
local STACK_SIZE = 16384 -- of the kernel on x86
-- Of the program, at the end of its task's stack in the kernel.
local REGISTERS = { size = 168, bp = 32, orig_ax = 120, ip = 128 }
local TOP = REGISTERS.size + 24 -- bytes at the end of a stack whose distance to its end is fixed
local MULTIPLIER = 0x9e3779b97f4a7c15ULL

---@class KnownStacks
local Known = {}
Known.__index = Known

--- Makes the memory. nil: this kernel has no way to read it cheaply.
---@return KnownStacks?
function known_stacks.new()
  if not types.can_cast() then return end
  return setmetatable({ entries = program.memory(ENTRY.size, 2 ^ ENTRIES_BITS, 'stacks_known'),
    copy = program.memory(SCANNED, 1, 'stacks_copy'),
    programs = program.memory(PROGRAM.size, 2 ^ ENTRIES_BITS, 'stacks_program') }, Known)
end

--- Generates r0 = the word at the address in r1, which is in the kernel. Uses r1 to r5.
local function word_at(a)
  types.cast(a, 1, 'task_struct')
  a:load(8, 0, 0, 0)
end

--- Generates r0 = the entry whose place is the hash of r0 and another register, and notes it. Jumps if there is none.
local function look_up(a, map, other, at, none)
  a:value(2, MULTIPLIER)
  a:alu_r('mul', 0, 2)
  a:alu_r('add', 0, other)
  a:alu_r('mul', 0, 2)
  a:alu('rsh', 0, 64 - ENTRIES_BITS)
  a:store(8, FRAME, at.key, 0)
  a:map(1, map)
  a:address(2, FRAME, at.key)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, none)
  a:store(8, FRAME, at.entry, 0)
end

--- Generates r9 = the entry for the stack of the current task, r7 = the address of the context, and r8 = the end of the
--- stack. Jumps if there is none.
local function find_entry(self, a, at, none)
  a:call 'get_current_task_btf'
  a:load(8, 9, 0, (types.member('task_struct', 'stack')))
  a:alu32_r('mov', 1, asm.CONTEXT)
  a:alu('and', 1, STACK_SIZE - 1)
  a:alu('mov', 2, STACK_SIZE)
  a:alu_r('sub', 2, 1)
  a:store(8, FRAME, at.rest, 2)
  a:alu_r('add', 1, 9)
  a:store(8, FRAME, at.context, 1)
  a:address(1, 9, STACK_SIZE - REGISTERS.size + REGISTERS.orig_ax)
  word_at(a)
  a:alu('lsh', 0, 4)
  a:alu_r('add', 0, 8)
  look_up(a, self.entries, 7, at, none)
  a:alu('add', 9, STACK_SIZE)
  a:alu_r('mov', 8, 9)
  a:alu_r('mov', 9, 0)
  a:load(8, 7, FRAME, at.context)
end

--- Generates code that looks whether the stack of the current task is that of an entry: r0 is its hash then. Jumps if
--- it is not. r7 is the thread, and r8 a number that tells its stacks apart. Uses all registers but CONTEXT.
---@param a Asm
---@param none string label
---@return table places on the stack, for note()
function Known:find(a, none)
  local at = { entry = a:take(8), context = a:take(8), rest = a:take(8), key = a:take(8) }
  local found = a:new_label()
  a:store_value(8, FRAME, at.entry, 0)
  find_entry(self, a, at, none)
  a:load(8, 1, 9, ENTRY.n)
  a:jump('==', 1, 0, none)
  for k = 0, MOST_KNOWN - 1 do
    local place, far, near = ENTRY.words + WORDS.size * k, a:new_label(), a:new_label()
    if k > 0 then
      a:load(8, 2, 9, ENTRY.n)
      a:jump('<=', 2, k, found)
    end
    a:load(8, 1, 9, place + WORDS.place)
    a:load(8, 2, 9, ENTRY.near)
    a:jump('<=', 2, k, far)
    a:alu_r('add', 1, 7)
    a:go(near)
    a:label(far)
    a:alu_r('add', 1, 8)
    a:label(near)
    word_at(a)
    a:load(8, 1, 9, place + WORDS.address)
    a:jump_r('!=', 0, 1, none)
  end
  a:label(found)
  a:load(8, 0, 9, ENTRY.hash)
  return at
end

--- Generates code that looks for the addresses of the chain at r9 in the copy of the stack at r7, and notes their
--- places in the entry at r5. Jumps at the end of the stack. Uses r0 to r4 and r8.
local function scan(a, ended, failed)
  local again, other, next, far = a:new_label(), a:new_label(), a:new_label(), a:new_label()
  a:alu('mov', 1, 0) -- bytes of the stack
  a:label(again)
  a:jump('>=', 1, SCANNED, ended)
  a:load(8, 0, 5, ENTRY.rest) -- and the number of all bytes: it would try each of these, too
  a:jump_r('>=', 1, 0, ended)
  a:alu_r('mov', 3, 7)
  a:alu_r('add', 3, 1)
  a:load(8, 4, 3, 0)
  a:load(8, 8, 5, ENTRY.n) -- addresses found: in memory, as the verifier would try each number in a register
  a:jump('>=', 8, MOST_KNOWN, failed)
  a:alu_r('mov', 3, 8)
  a:alu('lsh', 3, 3)
  a:alu_r('add', 3, 9)
  a:load(8, 2, 9, 0)
  a:alu('sub', 2, 1) -- the mark
  a:jump_r('<=', 2, 8, other)
  a:load(8, 2, 3, 16)
  a:jump_r('!=', 2, 4, other)
  a:alu_r('mov', 3, 8)
  a:alu('mul', 3, WORDS.size)
  a:alu_r('add', 3, 5)
  a:store(8, 3, ENTRY.words + WORDS.address, 4)
  a:alu('add', 8, 1)
  a:store(8, 5, ENTRY.n, 8)
  a:alu_r('mov', 2, 1)
  a:alu('add', 2, TOP)
  a:load(8, 0, 5, ENTRY.rest)
  a:jump_r('>=', 2, 0, far)
  a:store(8, 3, ENTRY.words + WORDS.place, 1)
  a:store(8, 5, ENTRY.near, 8)
  a:go(next)
  a:label(far)
  a:alu_r('mov', 2, 1)
  a:load(8, 0, 5, ENTRY.rest)
  a:alu_r('sub', 2, 0)
  a:store(8, 3, ENTRY.words + WORDS.place, 2)
  a:go(next)
  a:label(other) -- is it the last one again?
  a:load(8, 2, 3, 8)
  a:jump_r('==', 2, 4, failed)
  a:label(next)
  a:alu('add', 1, 8)
  a:go(again)
end

--- Generates code that makes the entry that find() has looked at that of the chain at r9, whose hash is on the stack,
--- if its places are without doubt. Uses all registers but CONTEXT.
---@param a Asm
---@param at table
---@param hash integer place on the stack
function Known:note(a, at, hash)
  local done, ended, fits, failed, zero = a:new_label(), a:new_label(), a:new_label(), a:new_label(), at.key
  a:store_value(8, FRAME, zero, 0)
  a:map(1, self.copy)
  a:address(2, FRAME, zero)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, done)
  a:alu_r('mov', 7, 0)
  a:alu_r('mov', 1, 0)
  a:load(8, 2, FRAME, at.rest)
  a:jump('<=', 2, SCANNED, fits)
  a:go(done)
  a:label(fits)
  a:load(8, 3, FRAME, at.context)
  a:call 'probe_read_kernel'
  a:jump('!=', 0, 0, done)
  a:load(8, 5, FRAME, at.entry)
  a:jump('==', 5, 0, done)
  a:store_value(8, 5, ENTRY.n, 0)
  a:store_value(8, 5, ENTRY.near, 0)
  a:load(8, 1, FRAME, hash)
  a:store(8, 5, ENTRY.hash, 1)
  a:load(8, 0, FRAME, at.rest)
  a:store(8, 5, ENTRY.rest, 0)
  scan(a, ended, failed)
  a:label(ended)
  a:load(8, 2, 9, 0)
  a:alu('sub', 2, 1)
  a:load(8, 8, 5, ENTRY.n)
  a:jump_r('==', 2, 8, done)
  a:label(failed)
  a:store_value(8, 5, ENTRY.n, 0)
  a:label(done)
end

--- Generates code that reads the frame at the address in r7, two words, to the stack. Jumps if it cannot be read.
local function read_frame(a, frame, none)
  a:address(1, FRAME, frame)
  a:alu('mov', 2, 16)
  a:alu_r('mov', 3, 7)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, none)
end

--- The same for the stack of the program, whose frames say where the next one is. What the kernel could not read, where
--- its walk ended, is not tried again: that costs as much as all else. Uses all registers but CONTEXT.
---@param a Asm
---@param none string label
---@return table places on the stack, for note_program()
function Known:find_program(a, none)
  local at = { entry = a:take(8), ip = a:take(8), bp = a:take(8), thread = a:take(8), frame = a:take(16),
    key = a:take(8) }
  local found = a:new_label()
  a:store_value(8, FRAME, at.entry, 0)
  a:call 'get_current_pid_tgid'
  a:store(8, FRAME, at.thread, 0)
  a:call 'get_current_task_btf'
  a:load(8, 9, 0, (types.member('task_struct', 'stack')))
  for _, name in ipairs { 'bp', 'ip' } do
    a:address(1, 9, STACK_SIZE - REGISTERS.size + REGISTERS[name])
    word_at(a)
    a:store(8, FRAME, at[name], 0)
  end
  a:load(8, 1, FRAME, at.thread)
  look_up(a, self.programs, 1, at, none)
  a:alu_r('mov', 9, 0)
  a:load(8, 1, 9, PROGRAM.n)
  a:jump('==', 1, 0, none)
  for _, name in ipairs { 'thread', 'ip', 'bp' } do
    a:load(8, 1, 9, PROGRAM[name])
    a:load(8, 7, FRAME, at[name])
    a:jump_r('!=', 1, 7, none)
  end
  for k = 0, MOST_FRAMES - 1 do
    a:load(8, 1, 9, PROGRAM.n)
    a:jump('<=', 1, k + 1, found)
    read_frame(a, at.frame, none)
    for off = 0, 8, 8 do
      a:load(8, 2, 9, PROGRAM.frames + 16 * k + off)
      a:load(8, 1, FRAME, at.frame + off)
      a:jump_r('!=', 1, 2, none)
    end
    a:load(8, 7, FRAME, at.frame)
  end
  a:label(found)
  a:load(8, 0, 9, PROGRAM.hash)
  return at
end

--- Generates code that makes the entry that find_program() has looked at that of the chain at r9, whose hash is on the
--- stack, if it is short. Uses all registers but CONTEXT.
---@param a Asm
---@param at table
---@param hash integer place on the stack
function Known:note_program(a, at, hash) -- luacheck: no self
  local done, complete = a:new_label(), a:new_label()
  a:load(8, 8, FRAME, at.entry)
  a:jump('==', 8, 0, done)
  a:store_value(8, 8, PROGRAM.n, 0)
  for name, from in pairs { hash = hash, thread = at.thread, ip = at.ip, bp = at.bp } do
    a:load(8, 1, FRAME, from)
    a:store(8, 8, PROGRAM[name], 1)
  end
  a:load(8, 1, FRAME, at.ip)
  a:load(8, 2, 9, 16)
  a:jump_r('!=', 1, 2, done)
  a:load(8, 7, FRAME, at.bp)
  for k = 0, MOST_FRAMES - 1 do
    a:load(8, 1, 9, 0)
    a:jump('<=', 1, k + 2, complete)
    read_frame(a, at.frame, done)
    a:load(8, 1, FRAME, at.frame + 8)
    a:load(8, 2, 9, 24 + 8 * k)
    a:jump_r('!=', 1, 2, done)
    a:store(8, 8, PROGRAM.frames + 16 * k + 8, 1)
    a:load(8, 7, FRAME, at.frame)
    a:store(8, 8, PROGRAM.frames + 16 * k, 7)
  end
  a:load(8, 1, 9, 0)
  a:jump('>', 1, MOST_FRAMES + 2, done)
  a:label(complete)
  a:load(8, 1, 9, 0)
  a:alu('sub', 1, 1)
  a:store(8, 8, PROGRAM.n, 1)
  a:label(done)
end

return known_stacks
