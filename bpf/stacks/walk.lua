-- SPDX-License-Identifier: GPL-2.0-only
--- Code that walks the stack of the current task's program by unwind tables, frame by frame: the span of memory that
--- has the address, the row of its file, the rule, two words of the stack. Where no table has an address, a frame
--- pointer is assumed.
---
--- In the code, r8 is the number of frames so far, r7 the place of the next address, and r9 the address of what is kept
--- meanwhile. That is in the memory of a map, because of values on its own stack the verifier knows too much: it would
--- take the walks after each outcome of a comparison for different ones.
local asm = require 'bpf.gen.asm'
local program = require 'bpf.gen.program'
local tables = require 'bpf.stacks.tables'
local types = require 'bpf.gen.kernel_types'

local FRAME, STATE = asm.FRAME, 9
local ROW, SPAN, SPACE, COUNTERS = tables.ROW, tables.SPAN, tables.SPACE, tables.COUNTERS
local SPAN_STEPS, ROW_STEPS = 12, 21 -- of a binary search
local REGISTERS = { bp = 32, call = 120, ip = 128, cs = 136, sp = 152 } -- offsets in struct pt_regs
local USER_CODE = 0x33 -- segment of 64-bit code
local END_OF_USER = 47 -- bits of an address
local NONE, SP, BP, PLT, BP_DEREF, SIGNAL, OUTERMOST = 0, 1, 2, 3, 4, 5, 6 -- enum frame_kind
local POINTER_RULE = 0x2fff2 -- frame pointer + 16, where the caller's one was saved at CFA - 16
local SIGNAL_AT = { bp = 120, sp = 160, ip = 168, size = 56 } -- of the stack pointer; size: from bp to ip

local CACHE = { tag = 0, mm = 8, rule = 16, size = 24, bits = 10 } -- a map's value has at most 32 KiB
local MULTIPLIER = 0x9e3779b97f4a7c15ULL
local AT = { words = 0 } -- offsets from r9
for i, name in ipairs { 'ip', 'sp', 'bp', 'first', 'count', 'start', 'end_', 'bias', 'row', 'rows', 'address', 'back',
  'rule', 'tag', 'mm', 'top', 'frames', 'noted', 'place', 'first_ip', 'first_bp',
  'room' } do
  AT[name] = SIGNAL_AT.size + 8 * (i - 1)
end

local COPY, COPIED = AT.room + 8, 512 -- of the program's stack, from 16 bytes before its stack pointer on
-- The words that a walk has read, if they are few: each with its place in the copy, or beyond it.
local WORDS = { at = COPY + COPIED, place = 0, word = 8, size = 16, most = 32 }
local KNOWN = { hash = 0, n = 8, generation = 16, mm = 24, ip = 32, top = 40, bp = 48, words = 56,
  size = 56 + WORDS.size * WORDS.most, bits = 7 } -- a walk that a CPU has made lately

---@class Walker
---@field tables StackTables
---@field package known Descriptor for each CPU: walks that it has made lately
---@field size integer bytes of memory that a walk needs
---@field room integer offset there of the number of frames for which there is room
---@field frames integer offset there of the number of frames at the end
local Walker = { size = WORDS.at + WORDS.size * WORDS.most, room = AT.room, frames = AT.frames }
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

--- Generates code that reads bytes of the program's stack at r3. Jumps if they cannot be read.
local function read(a, to, size, failed)
  a:address(1, STATE, to)
  a:alu('mov', 2, size)
  a:call 'probe_read_user'
  a:jump('!=', 0, 0, failed)
end

--- The same with words that are not noted.
function Walk:read(to, size, failed)
  self.a:store_value(8, STATE, AT.noted, WORDS.most)
  read(self.a, to, size, failed)
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

--- Generates code that takes over the program's registers. Jumps if there are none, or if they are those of code of 32
--- bits.
function Walk:load_registers(none)
  local a = self.a
  a:call 'get_current_task_btf'
  a:load(8, 1, 0, (types.member('task_struct', 'mm')))
  a:store(8, FRAME, self.mm, 1)
  a:store(8, STATE, AT.mm, 1)
  a:jump('==', 1, 0, none)
  a:alu_r('mov', 1, 0)
  a:call 'task_pt_regs'
  for _, name in ipairs { 'ip', 'sp', 'bp' } do
    a:load(8, 1, 0, REGISTERS[name])
    a:store(8, STATE, AT[name], 1)
    if name ~= 'sp' then a:store(8, STATE, AT['first_' .. name], 1) end
  end
  a:load(8, 1, 0, REGISTERS.call) -- negative: the program was interrupted, and has not called the kernel
  a:alu('rsh', 1, 63)
  a:alu('xor', 1, 1)
  a:store(8, STATE, AT.back, 1)
  a:load(8, 1, 0, REGISTERS.cs)
  a:alu('and', 1, 0xffff)
  a:jump('!=', 1, USER_CODE, none)
end

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

--- Generates code that copies the end of the program's stack, so that most frames take no call.
function Walk:copy_stack()
  local a, failed, done = self.a, self.a:new_label(), self.a:new_label()
  a:load(8, 3, STATE, AT.sp)
  a:alu('sub', 3, 16)
  a:store(8, STATE, AT.top, 3)
  self:read(COPY, COPIED, failed)
  a:store_value(8, STATE, AT.noted, 0)
  a:go(done)
  a:label(failed)
  a:store_value(8, STATE, AT.top, -1)
  a:label(done)
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
  read(a, AT.words, 8, cut)
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

--- Returns what walks stacks; nil: the kernel lacks something that it needs. Refuses without BPF.
---@param levels integer programs on a CPU that interrupt each other
---@return Walker?
function walk.new(levels)
  if jit.arch ~= 'x64' or not types.has_function 'bpf_task_pt_regs' then return end
  return setmetatable({ tables = tables.new(CACHE.size * 2 ^ CACHE.bits, levels),
    known = program.memory(KNOWN.size, 2 ^ KNOWN.bits, 'known_walks') }, Walker)
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
  local iterator = types.has_function 'bpf_iter_num_new' and a:take(8) or nil
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
  one:load_registers(none)
  one:find_spans(none)
  one:copy_stack()
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

-- Walks that were made lately -------------------------------------------------------------------------

--- Generates r1 = what the tables are now: it changes with them.
local function load_generation(a, walker)
  a:map_value(1, walker.tables.counters, COUNTERS.generation)
  a:load(8, 1, 1, 0)
end

--- Generates r0 = the entry of KNOWN for the stack, and notes it at a place on the stack. Jumps if there is none.
local function find_known(a, walker, entry, other)
  local key = a:take(8)
  a:value(2, MULTIPLIER)
  a:load(8, 1, STATE, AT.top)
  a:load(8, 3, STATE, AT.mm)
  a:alu_r('xor', 1, 3)
  a:alu_r('mul', 1, 2)
  a:load(8, 3, STATE, AT.ip)
  a:alu_r('xor', 1, 3)
  a:alu_r('mul', 1, 2)
  a:alu('rsh', 1, 64 - KNOWN.bits)
  a:store(8, FRAME, key, 1)
  a:map(1, walker.known)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:give(key, 8)
  a:jump('==', 0, 0, other)
  a:store(8, FRAME, entry, 0)
end

--- Generates code that looks whether the stack of the current task's program has the words that a walk has read lately:
--- r0 is what note() has kept of it then. Jumps if not. Walker.size bytes of memory are at r9. Uses all registers but
--- CONTEXT and r7.
---@param a Asm
---@param other string label
---@return integer place on the stack, for note()
function Walker:find(a, other)
  local entry, mm, found = a:take(8), a:take(8), a:new_label()
  local one = setmetatable({ a = a, all = self.tables, mm = mm }, Walk)
  a:store_value(8, FRAME, entry, 0)
  one:load_registers(other)
  one:copy_stack()
  find_known(a, self, entry, other)
  load_generation(a, self)
  a:load(8, 2, 0, KNOWN.generation)
  a:jump_r('!=', 1, 2, other)
  for known, at in pairs { mm = 'mm', ip = 'first_ip', bp = 'first_bp', top = 'top' } do
    a:load(8, 1, 0, KNOWN[known])
    a:load(8, 2, STATE, AT[at])
    a:jump_r('!=', 1, 2, other)
  end
  a:load(8, 8, 0, KNOWN.n)
  a:jump('==', 8, 0, other)
  for k = 0, WORDS.most - 1 do
    local at = KNOWN.words + WORDS.size * k
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
    read(a, AT.words, 8, other)
    a:load(8, 2, STATE, AT.words)
    a:load(8, 0, FRAME, entry)
    a:label(loaded)
    a:load(8, 3, 0, at + WORDS.word)
    a:jump_r('!=', 2, 3, other)
  end
  a:label(found)
  a:load(8, 0, 0, KNOWN.hash)
  a:give(mm, 8)
  return entry
end

--- Generates code that keeps a number for the walk that was just made, if its words are noted. Uses r0 to r5.
---@param a Asm
---@param entry integer place on the stack, of find()
---@param hash integer place on the stack
function Walker:note(a, entry, hash)
  local done, complete = a:new_label(), a:new_label()
  a:load(8, 5, FRAME, entry)
  a:jump('==', 5, 0, done)
  a:store_value(8, 5, KNOWN.n, 0)
  a:load(8, 1, STATE, AT.noted)
  a:jump('>=', 1, WORDS.most, done)
  load_generation(a, self)
  a:store(8, 5, KNOWN.generation, 1)
  for known, at in pairs { mm = 'mm', ip = 'first_ip', bp = 'first_bp', top = 'top' } do
    a:load(8, 1, STATE, AT[at])
    a:store(8, 5, KNOWN[known], 1)
  end
  a:load(8, 1, FRAME, hash)
  a:store(8, 5, KNOWN.hash, 1)
  a:load(8, 2, STATE, AT.noted)
  for k = 0, WORDS.most - 1 do
    a:jump('<=', 2, k, complete)
    for off = 0, WORDS.size - 8, 8 do
      a:load(8, 1, STATE, WORDS.at + WORDS.size * k + off)
      a:store(8, 5, KNOWN.words + WORDS.size * k + off, 1)
    end
  end
  a:label(complete)
  a:load(8, 2, STATE, AT.noted)
  a:store(8, 5, KNOWN.n, 2)
  a:label(done)
end

return walk
