-- SPDX-License-Identifier: GPL-2.0-only
--- Programs that write events as perf does: samples with all fields of the event, into a ring of the CPU
--- (runtime/live/capture_ring.h). The reader of perf's rings reads these, too.
---
--- The record is what the kernel would have written, byte by byte. Only common_flags of wakeups may differ: BPF cannot
--- tell whether interrupts are disabled. The code of the kernel tells it for the other events, but a task that wakes up
--- itself may do so with either.
local bit = require 'bit'
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local chain = require 'bpf.gen.chain'
local computed = require 'bpf.gen.computed'
local cpu_list = require 'bindings.base.cpu_list'
local libbpf = require 'bindings.bpf.libbpf'
local program = require 'bpf.gen.program'
local sys = require 'bindings.base.sys'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'
local trace_flags = require 'bindings.view.trace_flags'
local views = require 'bindings.view.views'

local C = ffi.C
local FRAME = asm.FRAME
local capture = {}

--- Whether interrupts are disabled at an event.
local IRQS_OFF = {
  ['sched:sched_switch'] = true,
  ['sched:sched_wakeup'] = true, -- nearly always
  ['sched:sched_waking'] = true,
  ['sched:sched_wakeup_new'] = true,
  ['sched:sched_migrate_task'] = true,
  ['raw_syscalls:sys_enter'] = false,
  ['raw_syscalls:sys_exit'] = false,
  ['irq:irq_handler_entry'] = true,
  ['irq:irq_handler_exit'] = true,
  ['irq:softirq_entry'] = false,
  ['irq:softirq_exit'] = false,
  ['irq:softirq_raise'] = true,
  ['exceptions:page_fault_user'] = true,
  ['exceptions:page_fault_kernel'] = true,
}

-- A sample: header, id, pid and tid, time, cpu, possibly a callchain, size of the fields, fields.
local ID, TASK, TIME, CPU, CHAIN, RAW_SIZE, RAW = 8, 16, 24, 32, 40, 40, 44
local COMMON_PID, FIRST_FIELD = 4, 8 -- offsets of fields
-- A loss: header, id, number, pid and tid, time, cpu, id.
local LOST = { size = 56, id = 8, number = 16, task = 24, time = 32, cpu = 40, identifier = 48 }
local SAMPLE_TYPE, LOST_TYPE = 9, 2 -- PERF_RECORD_SAMPLE, PERF_RECORD_LOST
local KERNEL_MODE, USER_MODE = 1, 2 -- PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_USER

capture.RAW_AT = RAW -- offset of the fields in a sample
capture.MAX_EVENTS = 64 -- in one run: the bits of CAPTURE_ENABLED
local FIRST_RELEASE = 5.017 -- before, common_preempt_count is another number
local FORCE_WAKEUP = 2 -- BPF_RB_FORCE_WAKEUP
capture.EARLY = 1e7 -- ns between two records that wake the reader early
local SMALL, LARGE = 2 ^ 26, 2 ^ 30 -- bytes of all rings: in any case allowed, and not

-- The kernel's preempt_count on x86.
local PREEMPT, SOFTIRQ_SERVED, SOFTIRQ_OFF, HARDIRQ, NMI = 0xff, 0x100, 0xfe00, 0xf0000, 0xf00000
local MAX_DEPTH = 15 -- of common_preempt_count

-- Rings ------------------------------------------------------------------------------------------

--- The rings of a run. They gate programs like a Switch: a program does nothing while its event's bit is 0.
---@class Rings
---@field map Descriptor
---@field bell Descriptor a BPF ring buffer: writing to it wakes the reader
---@field size integer bytes of each ring
---@field overwrite boolean programs overwrite the oldest events, and go backward
---@field watermark integer bytes after which the reader is woken
---@field nr_cpus integer
---@field events integer number of captured events so far
---@field chains? Chains
local Rings = {}
Rings.__index = Rings

--- Refuses if programs cannot write the records of this kernel.
function capture.check_kernel()
  if ffi.arch ~= 'x64' then asm.refuse('programs capture events on x86 only') end
  if computed.release() < FIRST_RELEASE then asm.refuse('capturing needs Linux 5.17') end
end

--- Creates the rings. Refuses without BPF.
---@param pages integer of each ring, a power of two
---@param watermark integer percent
---@param overwrite? boolean
---@return Rings
function capture.rings(pages, watermark, overwrite)
  capture.check_kernel()
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  if bit.band(pages, pages - 1) ~= 0 or not overwrite and pages * 4096 <= 2 * C.CAPTURE_MARGIN then
    asm.refuse('the rings do not have 4, 8, 16... pages')
  end
  local nr_cpus, size = lib.libbpf_num_possible_cpus(), pages * 4096
  local each = C.CAPTURE_DATA + size + C.CAPTURE_MARGIN
  local all, online = nr_cpus * each, #cpu_list.numbers(sys.read '/sys/devices/system/cpu/online')
  -- Some machines have few CPUs, but could have hundreds.
  if all > LARGE or all > SMALL and nr_cpus > 2 * online then
    asm.refuse('rings for %d possible CPUs would need %d MiB', nr_cpus, math.ceil(all / 2 ^ 20))
  end
  return setmetatable({
    map = program.shared_array(each, nr_cpus, 'rings'), bell = program.bell 'bell', size = size,
    nr_cpus = nr_cpus, events = 0,
    overwrite = overwrite or false,
    watermark = math.max(math.min(math.floor(size * watermark / 100), size - 2 * C.CAPTURE_MARGIN), 1),
  }, Rings)
end

--- Generates code that jumps to `off` unless the event is enabled on this CPU, and otherwise leaves the CPU in r0 and
--- its ring in r1.
---@param a Asm
---@param off string label
---@param number? integer of the event, from 0; default: the next one that is added
function Rings:check(a, off, number)
  local key = a:take(8)
  a:call 'get_smp_processor_id'
  a:store(8, FRAME, key, 0)
  a:map(1, self.map)
  a:address(2, FRAME, key)
  a:call 'map_lookup_elem'
  a:jump('==', 0, 0, off)
  a:alu_r('mov', 1, 0)
  a:load(8, 0, FRAME, key)
  a:load(8, 2, 1, C.CAPTURE_ENABLED)
  a:value(3, bit.lshift(1ULL, number or self.events))
  a:alu_r('and', 2, 3)
  a:jump('==', 2, 0, off)
  a:give(key, 8)
end

-- Flags ------------------------------------------------------------------------------------------

--- Generates code that adds a flag to r1 if the register has any of the bits.
local function add_flag(a, register, mask, flag)
  local skip = a:new_label()
  a:alu_r('mov', 2, register)
  a:alu('and', 2, mask)
  a:jump('==', 2, 0, skip)
  a:alu('or', 1, flag)
  a:label(skip)
end

--- Generates code that leaves the bytes common_flags and common_preempt_count in r1, as a number of 16 bits. r8 is the
--- current task. Uses r0 to r5.
local function common_bytes(a, event)
  local usual, done = a:new_label(), a:new_label()
  types.preempt_count(a, 8)
  local known = types.enumerators 'trace_flag_type'
  a:alu('mov', 1, IRQS_OFF[event] and trace_flags.IRQS_OFF or 0)
  a:alu_r('mov', 3, 0)
  a:alu('rsh', 3, 8)
  a:alu('and', 3, 0xffff)
  a:jump('==', 3, 0, usual)
  add_flag(a, 0, NMI, trace_flags.NMI)
  add_flag(a, 0, HARDIRQ, trace_flags.HARDIRQ)
  add_flag(a, 0, SOFTIRQ_SERVED, trace_flags.SOFTIRQ)
  if known.TRACE_FLAG_BH_OFF then add_flag(a, 0, SOFTIRQ_OFF, trace_flags.BH_OFF) end
  a:label(usual)
  a:alu_r('mov', 3, 0) -- the bit in the preempt_count is inverted
  a:alu('rsh', 3, 31)
  a:jump('!=', 3, 0, done)
  a:alu('or', 1, trace_flags.PREEMPT_RESCHED)
  a:label(done)
  local offset, size = types.member('task_struct', 'thread_info.flags')
  a:load(size, 3, 8, offset)
  local bits = computed.resched_bits()
  add_flag(a, 3, bit.lshift(1, bits.now), trace_flags.NEED_RESCHED)
  if bits.lazy then add_flag(a, 3, bit.lshift(1, bits.lazy), trace_flags.NEED_RESCHED_LAZY) end
  -- The depth of disabled preemption, and of disabled migration.
  local function depth(shift)
    local small = a:new_label()
    a:jump('<=', 2, MAX_DEPTH, small)
    a:alu('mov', 2, MAX_DEPTH)
    a:label(small)
    a:alu('lsh', 2, shift)
    a:alu_r('or', 1, 2)
  end
  a:alu_r('mov', 2, 0)
  a:alu('and', 2, PREEMPT)
  depth(8)
  offset, size = types.member('task_struct', 'migration_disabled')
  a:load(size, 2, 8, offset)
  depth(12)
end

-- Records ----------------------------------------------------------------------------------------

--- Generates code that leaves pid and tid of the current task, r8, in r1: those of perf, which are -1 for a task that
--- has been reaped, such as at its last switch. Uses r0 to r5.
local function task_word(a, may_be_reaped)
  if may_be_reaped then types.cast(a, 8, 'task_struct') end
  local function id(to, member, is_alive)
    local offset, size = types.member('task_struct', member)
    a:load(size, to, 8, offset)
    if not may_be_reaped then return end
    local alive = a:new_label()
    is_alive()
    a:jump('!=', 3, 0, alive)
    a:alu32('mov', to, -1)
    a:label(alive)
  end
  id(1, 'tgid', function()
    local offset = types.member('task_struct', 'signal')
    a:load(8, 3, 0, offset)
    offset = types.member('signal_struct', 'pids')
    a:load(8, 3, 3, offset + 8) -- PIDTYPE_TGID
  end)
  id(2, 'pid', function()
    local offset = types.member('task_struct', 'thread_pid')
    a:load(8, 3, 0, offset)
  end)
  a:alu('lsh', 2, 32)
  a:alu_r('or', 1, 2)
end

--- Returns the number of bytes of the fields in a sample of perf, which rounds it up. With the size before them, they
--- are a multiple of 8.
---@param list Field[]
---@return integer
function capture.raw_size(list)
  local stop, align = 0, 1
  for _, field in ipairs(list) do
    stop = math.max(stop, field.offset + field.size)
    align = math.max(align, math.min(field.elem_size, 8))
    if field.name == '__syscall_nr' then align = 8 end -- arguments would follow
  end
  stop = math.ceil(stop / align) * align
  return math.ceil((stop + 4) / 8) * 8 - 4
end

local function next_piece(at, stop)
  local size = 8
  while at % size ~= 0 or at + size > stop do size = size / 2 end
  return size
end

--- Generates code that writes all fields but the common ones to r9 + raw.
local function write_fields(a, source, list, raw, stop)
  local at = FIRST_FIELD
  local function clear(to)
    while at < to do
      local size = next_piece(at, to)
      a:store_value(size, 9, raw + at, 0)
      at = at + size
    end
  end
  local sorted = {}
  for _, field in ipairs(list) do
    if field.offset >= FIRST_FIELD then sorted[#sorted + 1] = field end
  end
  table.sort(sorted, function(one, other) return one.offset < other.offset end)
  for _, field in ipairs(sorted) do
    if views.has(field, 'DYNAMIC') then asm.refuse("'%s' has no fixed size", field.name) end
    clear(field.offset)
    if not source:write(a, field, 9, raw + field.offset, 8) then
      while at < field.offset + field.size do
        local size = next_piece(at, field.offset + field.size)
        source:load(a, size, 1, field, at - field.offset)
        a:store(size, 9, raw + at, 1)
        at = at + size
      end
    end
    at = field.offset + field.size
  end
  clear(stop)
end

--- Generates code that writes whose event it is, when and where, to the sample at r9 + sample. r8 is the current task.
--- Uses r0 to r5.
---@param a Asm
---@param event string "sys:name"
---@param places { time: integer, cpu: integer }
---@param sample integer
function capture.write_head(a, event, places, sample)
  task_word(a, not system_calls.is_one(event))
  a:store(8, 9, sample + TASK, 1)
  a:load(8, 1, FRAME, places.time)
  a:store(8, 9, sample + TIME, 1)
  a:load(8, 1, FRAME, places.cpu)
  a:store(8, 9, sample + CPU, 1)
end

--- Generates code that writes the fields, after their size, to the sample at r9 + sample. r8 is the current task. Uses
--- r0 to r5.
---@param a Asm
---@param source Source
---@param spec { event: string, list: Field[], type: integer }
---@param sample integer
---@param more? integer bytes that follow and count as fields
function capture.write_raw(a, source, spec, sample, more)
  local size = capture.raw_size(spec.list)
  common_bytes(a, spec.event)
  a:alu('lsh', 1, 48)
  a:value(2, size + (more or 0) + bit.lshift(spec.type + 0ULL, 32))
  a:alu_r('or', 1, 2)
  a:store(8, 9, sample + RAW_SIZE, 1)
  local offset = types.member('task_struct', 'pid')
  a:load(4, 1, 8, offset)
  a:store(4, 9, sample + RAW + COMMON_PID, 1)
  write_fields(a, source, spec.list, sample + RAW, size)
end

-- Room in the rings ------------------------------------------------------------------------------

--- Generates code that leaves the number of programs that this one has interrupted in r8, and jumps to `lost` if the
--- ring, r7, has no room. Uses r1 and r2.
local function enter(a, rings, margin)
  if rings.overwrite then
    a:alu('mov', 8, 1)
    a:fetch_add(7, C.CAPTURE_NEST, 8)
    return
  end
  a:load(8, 8, 7, C.CAPTURE_NEST)
  a:address(1, 8, 1)
  a:store(8, 7, C.CAPTURE_NEST, 1)
  a:load(8, 1, 7, C.CAPTURE_RESERVED)
  a:load(8, 2, 7, C.CAPTURE_TAIL)
  a:alu_r('sub', 1, 2)
  -- Programs that come in between have the margin.
  a:jump('>', 1, rings.size - margin, 'lost')
end

--- Generates code that reserves r9 bytes of the ring, r7, for the outermost program, and leaves their position in r9.
--- Uses r1 and r3.
local function reserve(a, rings)
  if not rings.overwrite then return a:fetch_add(7, C.CAPTURE_RESERVED, 9) end
  a:load(8, 1, 7, C.CAPTURE_RESERVED)
  a:store(8, 7, C.CAPTURE_START, 1)
  a:alu_r('mov', 3, 9)
  a:alu('neg', 9, 0)
  a:fetch_add(7, C.CAPTURE_RESERVED, 9)
  a:alu_r('sub', 9, 3)
end

--- Generates code that does the same for any program. r8 is the number of programs that it has interrupted. Uses r0 to
--- r3.
local function reserve_nested(a, rings)
  if not rings.overwrite then return reserve(a, rings) end
  local outermost, reserved = a:new_label(), a:new_label()
  a:jump('==', 8, 0, outermost)
  -- Do not overwrite what the outermost program is writing. If a third one comes in between, look again.
  a:alu_r('mov', 3, 9)
  for _ = 1, 2 do
    a:load(8, 0, 7, C.CAPTURE_RESERVED)
    a:alu_r('mov', 1, 0)
    a:alu_r('mov', 9, 0)
    a:alu_r('sub', 9, 3)
    a:load(8, 2, 7, C.CAPTURE_START)
    a:alu_r('sub', 2, 9)
    a:jump('>', 2, rings.size, 'lost')
    a:compare_exchange(7, C.CAPTURE_RESERVED, 9)
    a:jump_r('==', 0, 1, reserved)
  end
  a:go 'lost'
  a:label(outermost)
  reserve(a, rings)
  a:label(reserved)
end

--- Generates code that ends a record of the ring, r7, and jumps to `done`. is_early: the reader should soon see it.
--- Uses r1 to r4.
local function publish(a, rings, places, done, is_early)
  a:load(8, 1, 7, C.CAPTURE_NEST)
  a:alu('sub', 1, 1)
  a:store(8, 7, C.CAPTURE_NEST, 1)
  if rings.overwrite then return a:go(done) end
  -- The outermost program publishes. What an interrupt has written since then, it publishes, too.
  a:jump('!=', 1, 0, done)
  a:load(8, 1, 7, C.CAPTURE_RESERVED)
  a:store(8, 7, C.CAPTURE_HEAD, 1)
  a:load(8, 2, 7, C.CAPTURE_WAKE)
  if is_early then
    local wake = a:new_label()
    a:load(8, 3, FRAME, places.time)
    a:jump_r('>=', 1, 2, wake)
    a:load(8, 2, 7, C.CAPTURE_EARLY)
    a:jump_r('<', 3, 2, done)
    a:label(wake)
    a:alu('add', 3, capture.EARLY)
    a:store(8, 7, C.CAPTURE_EARLY, 3)
  else
    a:jump_r('<', 1, 2, done)
  end
  a:alu('add', 1, rings.watermark)
  a:store(8, 7, C.CAPTURE_WAKE, 1)
  a:map(1, rings.bell)
  a:alu_r('mov', 2, FRAME)
  a:alu('add', 2, places.time) -- not the CPU, of which old verifiers would forget how large it can be
  a:alu('mov', 3, 8)
  a:alu('mov', 4, FORCE_WAKEUP)
  a:call 'ringbuf_output'
  a:go(done)
end

--- Generates code that writes a loss to the record at r9, and leaves the position after it in r9. r5 is the number.
local function write_loss(a, places, mask, id)
  local DATA = C.CAPTURE_DATA
  a:alu_r('mov', 2, 9)
  a:alu('and', 2, mask)
  a:alu_r('add', 2, 7)
  a:value(1, LOST_TYPE + bit.lshift(LOST.size + 0ULL, 48))
  a:store(8, 2, DATA, 1)
  a:value(1, id)
  a:store(8, 2, DATA + LOST.id, 1)
  a:store(8, 2, DATA + LOST.identifier, 1)
  a:store(8, 2, DATA + LOST.number, 5)
  a:store_value(8, 2, DATA + LOST.task, -1)
  a:load(8, 1, FRAME, places.time)
  a:store(8, 2, DATA + LOST.time, 1)
  a:load(8, 1, FRAME, places.cpu)
  a:store(8, 2, DATA + LOST.cpu, 1)
  a:alu('add', 9, LOST.size)
end

--- What a program writes.
---@class CaptureSpec
---@field event string "sys:name"
---@field list Field[]
---@field type integer common_type
---@field id integer64 in the samples
---@field rings Rings
---@field stack? { parts: integer, max: integer, walker?: Walker } with the callchain, see Chains:collect()
---@field more? { size: integer, write: fun(at: integer) } what follows the fields: bytes, a multiple of 8; generates
--- code that writes them to r9 + at, with all registers but r6, r7 and r9
---@field done? string label: where the program goes on; default: its end
---@field is_early? boolean the reader is woken for it, but not more often than each capture.EARLY
---@field now? boolean places.time, a place on the stack, becomes the time

--- Returns whether an event can be captured.
---@param event string "sys:name"
---@return boolean
function capture.is_known(event) return IRQS_OFF[event] ~= nil or system_calls.parts(event) ~= nil end

--- Returns whether all of its record is known, also common_flags. Those of a wakeup are if a task wakes up another
--- one: then the kernel holds a lock with interrupts disabled.
---@param event string "sys:name"
---@param is_other? boolean it is not the wakeup of the current task
---@return boolean
function capture.is_exact(event, is_other)
  return is_other or event ~= 'sched:sched_wakeup' and event ~= 'sched:sched_waking'
end

-- The program --------------------------------------------------------------------------------------

-- Registers: the ring; how many programs this one has interrupted, until a record is reserved, and the current task
-- from then on; the size, then the position and then the address of the record.
local RING, NESTED, TASK_AT, RECORD = 7, 8, 8, 9

--- A program while it is generated.
---@class CaptureProgram
---@field a Asm
---@field places ProbePlaces
---@field spec CaptureSpec
---@field done string label: where the program goes on
---@field size integer bytes of the record without the stack
---@field from? integer place on the stack: the address of the callchain
---@field bytes? integer place on the stack: its size
local Program = {}
Program.__index = Program

--- Generates code that counts the program as running, and leaves places.time. Goes to `lost` if there is no room.
function Program:begin()
  local a, places, rings = self.a, self.places, self.spec.rings
  a:load(8, RING, FRAME, places.side)
  enter(a, rings, (self.spec.stack and 2 or 1) * C.CAPTURE_MARGIN)
  if self.spec.now or not places.time then
    -- From now on, the reader of an overwritten ring waits, so this is not too old for a dump.
    places.time = places.time or a:take(8)
    a:call 'ktime_get_ns'
    a:store(8, FRAME, places.time, 0)
  end
  if not rings.overwrite then return end
  -- The reader does it the other way round: it pauses the ring, then looks whether a program is running.
  a:load(8, 1, RING, C.CAPTURE_PAUSED)
  a:jump('!=', 1, 0, 'lost')
end

--- Generates code that collects the callchain. Uses all registers but RING and NESTED.
function Program:collect_stack()
  local a, rings, stack = self.a, self.spec.rings, self.spec.stack
  if not stack then return end
  self.from, self.bytes = a:take(8), a:take(8)
  rings.chains = rings.chains or chain.new(stack.walker)
  rings.chains:collect(a, stack.parts, stack.max, 'lost')
  a:store(8, FRAME, self.from, RECORD)
  a:store(8, FRAME, self.bytes, 0)
end

--- Generates RECORD = the size of the record, and of what comes before it. Uses r1.
function Program:record_size(before)
  local a = self.a
  a:alu('mov', RECORD, self.size + before)
  if not self.bytes then return end
  a:load(8, 1, FRAME, self.bytes)
  a:alu_r('add', RECORD, 1)
end

--- Generates RECORD = the address of a record, after that of a loss if there was one. Uses r0 to r5.
function Program:reserve()
  local a, rings = self.a, self.spec.rings
  a:load(8, 3, RING, C.CAPTURE_LOST)
  a:load(8, 4, RING, C.CAPTURE_TOLD)
  a:jump_r('!=', 3, 4, 'report loss')
  self:record_size(0)
  reserve_nested(a, rings)
  a:label 'reserved'
  a:alu('and', RECORD, rings.size - 1)
  a:alu_r('add', RECORD, RING)
end

--- Generates code that copies the callchain to its place. Uses r0 to r5.
function Program:copy_stack()
  if not self.bytes then return end
  local a = self.a
  a:address(1, RECORD, C.CAPTURE_DATA + CHAIN)
  a:load(8, 2, FRAME, self.bytes)
  a:jump('>', 2, chain.MAX_SIZE, self.done) -- never, but the verifier does not know that any more
  a:load(8, 3, FRAME, self.from)
  a:call 'probe_read_kernel'
end

--- Generates code that writes the sample. RECORD is after the callchain then. Uses r0 to r5.
function Program:write_sample(source)
  local a, spec, DATA = self.a, self.spec, C.CAPTURE_DATA
  a:call 'get_current_task_btf'
  a:alu_r('mov', TASK_AT, 0)
  local mode = system_calls.parts(spec.event) and USER_MODE or KERNEL_MODE -- perf's handler passes the task's registers
  a:value(1, SAMPLE_TYPE + bit.lshift(mode + 0ULL, 32) + bit.lshift(self.size + 0ULL, 48))
  if self.bytes then
    a:load(8, 2, FRAME, self.bytes)
    a:alu('lsh', 2, 48)
    a:alu_r('add', 1, 2)
  end
  a:store(8, RECORD, DATA, 1)
  a:value(1, spec.id)
  a:store(8, RECORD, DATA + ID, 1)
  capture.write_head(a, spec.event, self.places, DATA)
  if self.bytes then
    a:load(8, 1, FRAME, self.bytes)
    a:jump('>', 1, chain.MAX_SIZE, self.done)
    a:alu_r('add', RECORD, 1)
  end
  local more = spec.more
  capture.write_raw(a, source, spec, DATA, more and more.size or 0)
  if more then more.write(DATA + self.size - more.size) end
end

--- Generates code that reserves a record after that of a loss, and writes the loss. Uses r0 to r5.
function Program:report_loss()
  local a, rings = self.a, self.spec.rings
  a:label 'report loss'
  -- A program within another one does not report losses, so that they are reported once and before what follows them.
  a:jump('!=', NESTED, 0, 'lost')
  self:record_size(LOST.size)
  reserve(a, rings)
  a:load(8, 3, RING, C.CAPTURE_LOST)
  a:load(8, 4, RING, C.CAPTURE_TOLD)
  a:store(8, RING, C.CAPTURE_TOLD, 3)
  a:alu_r('mov', 5, 3)
  a:alu_r('sub', 5, 4)
  write_loss(a, self.places, rings.size - 1, self.spec.id)
  a:go 'reserved'
end

--- Generates code that counts a loss. Uses r1.
function Program:lose()
  local a = self.a
  a:label 'lost'
  a:alu('mov', 1, 1)
  a:atomic_add(8, RING, C.CAPTURE_LOST, 1)
  a:store(8, RING, C.CAPTURE_NEST, NESTED)
  a:go(self.done)
end

--- Generates the body of a program (probe.load()). places.side holds the ring, and places.time the time; without, it
--- is now. Uses all registers but r6.
---@param a Asm
---@param source Source
---@param places ProbePlaces
---@param spec CaptureSpec
function capture.write(a, source, places, spec)
  local self = setmetatable({ a = a, places = places, spec = spec, done = spec.done or 'done',
    size = RAW + capture.raw_size(spec.list) + (spec.more and spec.more.size or 0) }, Program)
  self:begin()
  self:collect_stack()
  self:reserve()
  self:copy_stack()
  self:write_sample(source)
  publish(a, spec.rings, places, self.done, spec.is_early)
  self:report_loss()
  self:lose()
end

return capture
