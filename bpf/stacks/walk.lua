-- SPDX-License-Identifier: GPL-2.0-only
--- Code that walks the stack of the current task's program by unwind tables, frame by frame: the span of memory that
--- has the address, the row of its file, the rule, two words of the stack. Where no table has an address, a frame
--- pointer is assumed.
---
--- In the code, r8 is the number of frames so far, r7 the place of the next address, and r9 the address of the frame.
local asm = require 'bpf.gen.asm'
local frame = require 'bpf.stacks.frame'
local tables = require 'bpf.stacks.tables'
local types = require 'bpf.gen.kernel_types'

local FRAME, STATE, AT, SIGNAL_AT, WORDS = asm.FRAME, frame.STATE, frame.AT, frame.SIGNAL_AT, frame.WORDS
local COPY, COPIED, MULTIPLIER = frame.COPY, frame.COPIED, frame.MULTIPLIER
local ROW, SPAN, SPACE, COUNTERS = tables.ROW, tables.SPAN, tables.SPACE, tables.COUNTERS
local SPAN_STEPS, ROW_STEPS = 12, 21 -- of a binary search
local END_OF_USER = 47 -- bits of an address
local NONE, SP, BP, PLT, BP_DEREF, SIGNAL, OUTERMOST = 0, 1, 2, 3, 4, 5, 6 -- enum frame_kind
local POINTER_RULE = 0x2fff2 -- frame pointer + 16, where the caller's one was saved at CFA - 16
local CACHE = { tag = 0, mm = 8, rule = 16, size = 24, bits = 10 } -- a map's value has at most 32 KiB

---@class Walker
---@field tables StackTables
---@field size integer bytes of memory that a walk needs
---@field room integer offset there of the number of frames for which there is room
---@field frames integer offset there of the number of frames at the end
local Walker = { size = frame.SIZE, room = AT.room, frames = AT.frames }
Walker.__index = Walker

local walk = {}

--- A walk while it is generated.
---@class Walk
---@field a Asm
---@field all StackTables
---@field pid integer place on the stack
---@field mm integer place on the stack
---@field cache integer place on the stack: the address of this CPU's cache
---@field entry integer place on the stack: the address of the entry of the address that is looked up
local Walk = {}
Walk.__index = Walk

--- Generates code that counts. Uses r1 and r2.
function Walk:count(name)
  local a = self.a
  a:map_value(2, self.all.counters, COUNTERS[name])
  a:alu('mov', 1, 1)
  a:atomic_add(8, 2, 0, 1)
end

--- Generates code that reads bytes of the program's stack at r3, which are not noted. Jumps if they cannot be read.
function Walk:read(to, size, failed)
  self.a:store_value(8, STATE, AT.noted, WORDS.most)
  frame.read(self.a, to, size, failed)
end

--- Generates code that asks for the tables of the current process. Uses r0 to r5.
function Walk:ask()
  local a = self.a
  a:map(1, self.all.asked)
  a:address(2, FRAME, self.pid)
  a:address(3, FRAME, self.mm)
  a:alu('mov', 4, 0)
  a:call 'map_update_elem'
  self:count 'asked'
end

-- The first frame ---------------------------------------------------------------------------------

--- Generates code that finds the spans of the current process. Jumps if there are none.
function Walk:find_spans(none)
  local a, own, unknown, known = self.a, self.a:new_label(), self.a:new_label(), self.a:new_label()
  a:call 'get_current_pid_tgid'
  a:alu('rsh', 0, 32)
  a:store(8, FRAME, self.pid, 0)
  a:map(1, self.all.spaces)
  a:address(2, FRAME, self.pid)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, unknown)
  a:load(8, 2, FRAME, self.mm)
  a:load(8, 1, 0, SPACE.mm)
  a:jump_r('==', 1, 2, own)
  a:jump('!=', 1, 0, unknown) -- the process has executed another program since
  a:store(8, 0, SPACE.mm, 2)
  a:label(own)
  a:load(4, 1, 0, SPACE.first)
  a:load(4, 2, 0, SPACE.count)
  a:jump('!=', 2, 0, known)
  a:go(none)
  a:label(unknown)
  self:ask()
  self:count 'no_process'
  a:go(none)
  a:label(known)
  a:store(8, STATE, AT.first, 1)
  a:store(8, STATE, AT.count, 2)
end

-- The rule of an address --------------------------------------------------------------------------

--- Generates r1 = the rule of the address that is looked up, and jumps to `found`, if this CPU has looked it up lately.
function Walk:recall(found)
  local a, other = self.a, self.a:new_label()
  a:load(8, 1, STATE, AT.address)
  a:load(8, 2, STATE, AT.mm)
  a:map_value(3, self.all.counters, COUNTERS.generation)
  a:load(8, 3, 3, 0)
  a:alu('lsh', 3, END_OF_USER)
  a:alu_r('or', 3, 1)
  a:store(8, STATE, AT.tag, 3)
  a:value(5, MULTIPLIER)
  a:alu_r('xor', 1, 2)
  a:alu_r('mul', 1, 5)
  a:alu('rsh', 1, 64 - CACHE.bits)
  a:alu('mul', 1, CACHE.size)
  a:load(8, 4, FRAME, self.cache)
  a:alu_r('add', 4, 1)
  a:store(8, FRAME, self.entry, 4)
  a:load(8, 1, 4, CACHE.tag)
  a:jump_r('!=', 1, 3, other)
  a:load(8, 1, 4, CACHE.mm)
  a:jump_r('!=', 1, 2, other)
  a:load(8, 1, 4, CACHE.rule)
  a:go(found)
  a:label(other)
end

--- Generates code that keeps the rule in r1 for recall(). Uses r2 and r4.
function Walk:remember()
  local a = self.a
  a:load(8, 4, FRAME, self.entry)
  a:load(8, 2, STATE, AT.tag)
  a:store(8, 4, CACHE.tag, 2)
  a:load(8, 2, STATE, AT.mm)
  a:store(8, 4, CACHE.mm, 2)
  a:store(8, 4, CACHE.rule, 1)
end

--- Generates r1 = the address of the last element that is not beyond r3, of the r2 elements from number r1 on of a
--- sorted array. Without jumps: mispredicted ones would take longer than all else, and the verifier follows each. Uses
--- r0, r4 and r5.
local function search(a, map, what, size, steps)
  a:map_value(5, map, 0)
  for _ = 1, steps do
    a:alu_r('mov', 0, 2)
    a:alu('rsh', 0, 1)
    a:alu_r('sub', 2, 0)
    a:alu_r('mov', 4, 1)
    a:alu_r('add', 4, 0)
    a:alu('and', 4, what.most - 1)
    a:alu('lsh', 4, what.shift)
    a:alu_r('add', 4, 5)
    a:load(size, 4, 4, 0)
    a:alu_r('sub', 4, 3)
    a:alu('sub', 4, 1)
    a:alu('arsh', 4, 63) -- 0: it is beyond, else -1
    a:alu_r('and', 0, 4)
    a:alu_r('add', 1, 0)
  end
  a:alu('and', 1, what.most - 1)
  a:alu('lsh', 1, what.shift)
  a:alu_r('add', 1, 5)
end

--- Generates code that finds the span of the address that is looked up, if it is not that of the last one. Jumps if
--- there is none.
function Walk:find_span(missing)
  local a, same, other = self.a, self.a:new_label(), self.a:new_label()
  a:load(8, 3, STATE, AT.address)
  a:load(8, 2, STATE, AT.start)
  a:jump_r('<', 3, 2, other)
  a:load(8, 2, STATE, AT.end_)
  a:jump_r('<', 3, 2, same)
  a:label(other)
  a:load(8, 1, STATE, AT.first)
  a:load(8, 2, STATE, AT.count)
  search(a, self.all.spans, SPAN, 8, SPAN_STEPS)
  for _, name in ipairs { 'start', 'end_', 'bias' } do
    a:load(8, 2, 1, SPAN[name])
    a:store(8, STATE, AT[name], 2)
  end
  for _, name in ipairs { 'row', 'rows' } do
    a:load(4, 2, 1, SPAN[name])
    a:store(8, STATE, AT[name], 2)
  end
  a:load(8, 2, STATE, AT.start)
  a:jump_r('<', 3, 2, missing)
  a:load(8, 2, STATE, AT.end_)
  a:jump_r('>=', 3, 2, missing)
  a:label(same)
end

--- Generates r1 = the rule of the address that is looked up. Jumps if there is none.
function Walk:find_row(missing)
  local a = self.a
  a:load(8, 2, STATE, AT.rows)
  a:jump('==', 2, 0, missing)
  a:load(8, 1, STATE, AT.bias)
  a:load(8, 3, STATE, AT.address)
  a:alu_r('sub', 3, 1)
  a:load(8, 1, STATE, AT.row)
  search(a, self.all.rows, ROW, 4, ROW_STEPS)
  a:load(4, 2, 1, ROW.addr)
  a:jump_r('<', 3, 2, missing)
  a:load(4, 1, 1, ROW.rule)
end

--- Generates r1 = the rule of the address that is looked up.
function Walk:find_rule()
  local a, found, no_span, no_row, kept = self.a, self.a:new_label(), self.a:new_label(), self.a:new_label(),
    self.a:new_label()
  self:recall(found)
  self:find_span(no_span)
  self:find_row(no_row)
  a:go(kept)
  a:label(no_span)
  self:ask()
  a:label(no_row)
  a:alu('mov', 1, NONE)
  a:label(kept)
  self:remember()
  a:label(found)
end

-- The caller's frame ------------------------------------------------------------------------------

--- Generates r2 = the offset of the rule, bytes.
function Walk:load_offset()
  local a = self.a
  a:load(8, 2, STATE, AT.rule)
  a:alu('lsh', 2, 32)
  a:alu('arsh', 2, 48)
  a:alu('lsh', 2, 3)
end

--- Generates code that takes the registers from where the kernel has put them for a signal.
function Walk:leave_signal(again, cut)
  local a = self.a
  a:load(8, 3, STATE, AT.sp)
  a:alu('add', 3, SIGNAL_AT.bp)
  self:read(AT.words, SIGNAL_AT.size, cut)
  for _, name in ipairs { 'bp', 'sp', 'ip' } do
    a:load(8, 1, STATE, AT.words + SIGNAL_AT[name] - SIGNAL_AT.bp)
    a:store(8, STATE, AT[name], 1)
  end
  a:store_value(8, STATE, AT.back, 0)
  a:go(again)
end

--- Generates r1 = the CFA of a function that has realigned its stack.
function Walk:realigned_cfa(known, cut)
  local a = self.a
  self:load_offset()
  a:load(8, 3, STATE, AT.bp)
  a:alu_r('add', 3, 2)
  self:read(AT.words, 8, cut)
  a:load(8, 3, STATE, AT.bp)
  self:read(AT.bp, 8, cut)
  a:load(8, 1, STATE, AT.words)
  a:store_value(8, STATE, AT.rule, 0)
  a:go(known)
end

--- Generates r1 = the CFA of a linker's stub.
function Walk:stub_cfa(known)
  local a = self.a
  self:load_offset()
  a:alu('rsh', 2, 3)
  a:load(8, 3, STATE, AT.ip)
  a:alu('and', 3, 15)
  a:load(8, 1, STATE, AT.sp)
  a:alu('add', 1, 8)
  a:store_value(8, STATE, AT.rule, 0)
  a:jump_r('<', 3, 2, known)
  a:alu('add', 1, 8)
  a:go(known)
end

--- Generates r1 = the CFA by the rule in r1.
function Walk:find_cfa(labels)
  local a, known, missing = self.a, self.a:new_label(), self.a:new_label()
  local by = { [SP] = a:new_label(), [BP] = a:new_label(), [PLT] = a:new_label(), [BP_DEREF] = a:new_label(),
    [SIGNAL] = a:new_label(), [OUTERMOST] = labels.whole, [NONE] = missing }
  a:store(8, STATE, AT.rule, 1)
  a:alu('and', 1, 7)
  for _, kind in ipairs { SP, BP, OUTERMOST, NONE, PLT, BP_DEREF, SIGNAL } do a:jump('==', 1, kind, by[kind]) end
  self:count 'other'
  a:label(missing)
  self:count 'no_table'
  a:store_value(8, STATE, AT.rule, POINTER_RULE)
  a:label(by[BP])
  self:load_offset()
  a:load(8, 1, STATE, AT.bp)
  a:alu_r('add', 1, 2)
  a:go(known)
  a:label(by[SIGNAL])
  self:leave_signal(labels.again, labels.cut)
  a:label(by[BP_DEREF])
  self:realigned_cfa(known, labels.cut)
  a:label(by[PLT])
  self:stub_cfa(known)
  a:label(by[SP])
  self:load_offset()
  a:load(8, 1, STATE, AT.sp)
  a:alu_r('add', 1, 2)
  a:label(known)
end

--- Generates r1 = the word of the program's stack at r3, and notes it. Jumps if it cannot be read.
function Walk:load_word(cut)
  local a, far, loaded, known = self.a, self.a:new_label(), self.a:new_label(), self.a:new_label()
  a:load(8, 1, STATE, AT.top)
  a:alu_r('mov', 4, 3)
  a:alu_r('sub', 4, 1)
  a:store(8, STATE, AT.place, 4)
  a:jump('>', 4, COPIED - 8, far)
  a:alu_r('add', 4, STATE)
  a:load(8, 1, 4, COPY)
  a:go(loaded)
  a:label(far)
  frame.read(a, AT.words, 8, cut)
  a:load(8, 1, STATE, AT.words)
  a:label(loaded)
  a:load(8, 2, STATE, AT.noted)
  a:jump('>=', 2, WORDS.most, known)
  a:alu_r('mov', 5, 2)
  a:alu('lsh', 5, 4)
  a:alu_r('add', 5, STATE)
  a:load(8, 4, STATE, AT.place)
  a:store(8, 5, WORDS.at + WORDS.place, 4)
  a:store(8, 5, WORDS.at + WORDS.word, 1)
  a:alu('add', 2, 1)
  a:store(8, STATE, AT.noted, 2)
  a:label(known)
end

--- Generates code that steps out of the frame whose CFA is in r1.
function Walk:leave(labels)
  local a, kept = self.a, self.a:new_label()
  a:load(8, 2, STATE, AT.sp)
  a:jump_r('<=', 1, 2, labels.cut) -- callers are farther up
  a:store(8, STATE, AT.sp, 1)
  a:alu_r('mov', 3, 1)
  a:alu('sub', 3, 8)
  self:load_word(labels.cut)
  a:store(8, STATE, AT.ip, 1)
  a:load(8, 3, STATE, AT.rule)
  a:alu('lsh', 3, 48) -- where the frame pointer was saved, see struct frame_row
  a:alu('arsh', 3, 51)
  a:jump('==', 3, 0, kept)
  a:alu('lsh', 3, 3)
  a:load(8, 1, STATE, AT.sp)
  a:alu_r('add', 3, 1)
  self:load_word(labels.cut)
  a:store(8, STATE, AT.bp, 1)
  a:label(kept)
  a:store_value(8, STATE, AT.back, 1)
  a:load(8, 1, STATE, AT.ip)
  a:jump('==', 1, 0, labels.whole)
  a:alu('rsh', 1, END_OF_USER)
  a:jump('!=', 1, 0, labels.cut)
  a:go(labels.again)
end

-- The walk ----------------------------------------------------------------------------------------

--- Returns whether programs that walk are loaded quickly: before Linux 6.4 that takes 0.1 to 0.4 s for each.
---@return boolean
function walk.is_quick() return types.has_function 'bpf_iter_num_new' end

--- Returns what walks stacks; nil: the kernel lacks something that it needs. Refuses without BPF.
---@param levels integer programs on a CPU that interrupt each other
---@return Walker?
function walk.new(levels)
  if jit.arch ~= 'x64' or not types.has_function 'bpf_task_pt_regs' then return end
  return setmetatable({ tables = tables.new(CACHE.size * 2 ^ CACHE.bits, levels) }, Walker)
end

--- Generates the head of the loop: r8 = the number of frames so far, from 0 to most - 1. The kernel's iterator lets the
--- verifier stop at the second or third frame; before Linux 6.4 it follows all of them.
---@param a Asm
---@param most integer
---@param iterator integer? place on the stack
---@param again string label
---@param ended string label: where it goes after the last one
local function loop(a, most, iterator, again, ended)
  if not iterator then
    a:alu('mov', 8, 0)
    a:label(again)
    a:jump('>=', 8, most, ended)
    return
  end
  a:address(1, FRAME, iterator)
  a:alu('mov', 2, 0)
  a:alu('mov', 3, most)
  a:call_kernel(types.kernel_function 'bpf_iter_num_new')
  a:label(again)
  a:address(1, FRAME, iterator)
  a:call_kernel(types.kernel_function 'bpf_iter_num_next')
  a:jump('==', 0, 0, ended)
  a:load(4, 8, 0, 0)
  a:jump('>=', 8, most, ended) -- never
end

--- Generates code that writes the addresses of the program's stack to memory at r7. There are Walker.size bytes of
--- memory at r9. Uses all registers but CONTEXT. Jumps if there are no tables.
---@param a Asm
---@param most integer the greatest number of frames
---@param level integer place on the stack: how many programs this one has interrupted
---@param none string label
function Walker:generate(a, most, level, none)
  local places = { pid = a:take(8), mm = a:take(8), cache = a:take(8), entry = a:take(8), out = a:take(8) }
  local iterator = walk.is_quick() and a:take(8) or nil
  local one = setmetatable({ a = a, all = self.tables }, Walk)
  for name, place in pairs(places) do one[name] = place end
  local labels = { again = a:new_label(), whole = a:new_label(), cut = a:new_label() }
  local done, complete = a:new_label(), a:new_label()
  a:store(8, FRAME, one.out, 7)
  a:map(1, self.tables.cache)
  a:address(2, FRAME, level)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, none)
  a:store(8, FRAME, one.cache, 0)
  frame.load_registers(a, one.mm, none)
  one:find_spans(none)
  frame.copy_stack(a)
  for _, name in ipairs { 'start', 'end_', 'frames' } do a:store_value(8, STATE, AT[name], 0) end
  loop(a, most, iterator, labels.again, done)
  a:load(8, 1, STATE, AT.room)
  a:jump_r('>=', 8, 1, done)
  a:load(8, 7, FRAME, one.out)
  a:alu_r('mov', 1, 8)
  a:alu('lsh', 1, 3)
  a:alu_r('add', 7, 1)
  a:load(8, 1, STATE, AT.ip)
  a:store(8, 7, 0, 1)
  a:alu('add', 8, 1)
  a:store(8, STATE, AT.frames, 8)
  a:load(8, 2, STATE, AT.back) -- a return address may be beyond the end of its function
  a:alu_r('sub', 1, 2)
  a:store(8, STATE, AT.address, 1)
  one:find_rule()
  one:find_cfa(labels)
  one:leave(labels)
  a:label(labels.whole)
  one:count 'whole'
  a:go(complete)
  a:label(labels.cut)
  one:count 'cut'
  a:label(done)
  a:store_value(8, STATE, AT.noted, WORDS.most)
  a:label(complete)
  if iterator then
    a:address(1, FRAME, iterator)
    a:call_kernel(types.kernel_function 'bpf_iter_num_destroy')
    a:give(iterator, 8)
  end
  for _, place in pairs(places) do a:give(place, 8) end
end

return walk
