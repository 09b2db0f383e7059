-- SPDX-License-Identifier: GPL-2.0-only
--- Fields that the kernel computes from a tracepoint's arguments (arguments.lua), computed in the same way.
local asm = require 'bpf.gen.asm'
local sys = require 'bindings.base.sys'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local CONTEXT, SCRATCH = asm.CONTEXT, 5
local computed = {}

--- Generates to = from->member, of an argument or of what another register points to.
---@param from integer register
---@param members string|string[] alternatives
---@param wanted? integer bytes
local function follow(a, to, from, struct, members, wanted)
  local offset, size = types.member_of(struct, members)
  if wanted and size ~= wanted then asm.refuse('struct %s has another size in this kernel', struct) end
  a:load(size, to, from, offset)
end

local function argument(a, to, number) a:load(8, to, CONTEXT, 8 * number) end

-- prev_state ---------------------------------------------------------------------------------------

-- The states of a task, in include/linux/sched.h. Those that are reported are the same since Linux 4.14.
local UNINTERRUPTIBLE, REPORT, REPORT_IDLE, REPORT_MAX = 0x02, 0x7f, 0x80, 0x100
local IDLE = 0x402
-- States that are reported as uninterruptible, and the first kernel that does so.
local AS_UNINTERRUPTIBLE = { { state = 0x1000, since = 5.018 }, { state = 0x8000, since = 6.006 } }
local IDLE_WITH_FLAGS = 6.001 -- the first kernel that finds idle tasks by these bits, whatever the others are

--- Returns the release of the kernel as a number, such as 6.018 for 6.18.
---@return number
function computed.release()
  local major, minor = sys.read('/proc/sys/kernel/osrelease'):match '^(%d+)%.(%d+)'
  return tonumber(major) + tonumber(minor) / 1000
end

--- Returns the numbers of the bits of a thread's flags that ask for a switch: now, and at the return to user space.
---@return { now: integer, lazy?: integer }
function computed.resched_bits()
  local version = computed.release()
  if version >= 6.018 then return { now = 4, lazy = 5 } end
  return { now = 3, lazy = version >= 6.013 and 4 or nil }
end

--- Returns how this kernel computes prev_state: whether it is an argument of the tracepoint, the bits that are reported
--- as uninterruptible beside that one, and whether an idle task may have other bits, too.
---@return boolean is_argument
---@return integer uninterruptible
---@return boolean idle_with_flags
function computed.switch_states()
  local now, blocked = computed.release(), 0
  for _, one in ipairs(AS_UNINTERRUPTIBLE) do
    if now >= one.since then blocked = blocked + one.state end
  end
  return types.arguments 'sched_switch' > 3, blocked, now >= IDLE_WITH_FLAGS -- the first: since Linux 5.18
end

computed.PREV_STATE = { compute = function(a, to)
  local preempted, uninterruptible, idle, done = a:new_label(), a:new_label(), a:new_label(), a:new_label()
  local is_argument, blocked, idle_with_flags = computed.switch_states()
  argument(a, to, 0)
  a:alu('and', to, 0xff)
  a:jump('!=', to, 0, preempted)
  argument(a, SCRATCH, 1)
  if is_argument then
    argument(a, to, 3)
  else
    follow(a, to, SCRATCH, 'task_struct', { '__state', 'state' })
  end
  a:extend(to, 32, false)
  if blocked > 0 then a:jump('&', to, blocked, uninterruptible) end
  a:alu_r('mov', SCRATCH, to)
  if idle_with_flags then a:alu('and', SCRATCH, IDLE) end
  a:jump('==', SCRATCH, IDLE, idle)
  argument(a, SCRATCH, 1)
  follow(a, SCRATCH, SCRATCH, 'task_struct', 'exit_state', 4)
  a:alu_r('or', to, SCRATCH)
  a:alu('and', to, REPORT)
  for _, distance in ipairs { 1, 2, 4 } do -- sets all bits below the highest one
    a:alu_r('mov', SCRATCH, to)
    a:alu('rsh', SCRATCH, distance)
    a:alu_r('or', to, SCRATCH)
  end
  a:alu_r('mov', SCRATCH, to)
  a:alu('rsh', SCRATCH, 1)
  a:alu_r('sub', to, SCRATCH)
  a:go(done)
  if blocked > 0 then
    a:label(uninterruptible)
    a:alu('mov', to, UNINTERRUPTIBLE)
    a:go(done)
  end
  a:label(idle)
  a:alu('mov', to, REPORT_IDLE)
  a:go(done)
  a:label(preempted)
  a:alu('mov', to, REPORT_MAX)
  a:label(done)
end }

-- System calls --------------------------------------------------------------------------------------

--- Adds the mark of i386 to a number. -1, which is none, stays.
---@param noted? integer place on the stack, see Arguments:prepare()
local function mark_number(a, to, noted)
  if not noted then return end
  a:load(8, SCRATCH, asm.FRAME, noted)
  a:alu_r('or', to, SCRATCH)
end

computed.ENTERED = { compute = function(a, to, noted)
  argument(a, to, 1)
  mark_number(a, to, noted)
end }

computed.LEFT = { compute = function(a, to, noted)
  argument(a, to, 0)
  follow(a, to, to, 'pt_regs', { 'orig_ax', 'syscallno' })
  a:extend(to, 32, true)
  mark_number(a, to, noted)
end }

local COMPAT_REGISTERS = { 'bx', 'cx', 'dx', 'si', 'di', 'bp' }

computed.SYSCALL_ARGUMENTS = { write = function(a, to, off, task)
  local compat, done = a:new_label(), a:new_label()
  local function copy(registers)
    for i, name in ipairs(registers) do
      follow(a, 2, 1, 'pt_regs', name, 8)
      a:store(8, to, off + 8 * (i - 1), 2)
    end
  end
  argument(a, 1, 0)
  system_calls.if_compat(a, task, compat)
  copy(system_calls.REGISTERS)
  a:go(done)
  a:label(compat)
  copy(COMPAT_REGISTERS)
  a:label(done)
end }

-- Block requests -----------------------------------------------------------------------------------

local DRIVER_IN, DRIVER_OUT, OPERATION = 34, 35, 0xff -- enum req_op: passed through to the driver; its bits
local MINOR_BITS = 20

--- Generates to = the first argument.
---@param noted? integer place on the stack, see Arguments:prepare()
local function first_argument(a, to, noted)
  if noted then a:load(8, to, asm.FRAME, noted) else argument(a, to, 0) end
end

--- dev of a request: its disk's number. A request without a disk has 0, which BPF reads through a null pointer.
local REQUEST_DEV = { compute = function(a, to, noted)
  first_argument(a, to, noted)
  follow(a, to, to, 'request', 'q', 8)
  follow(a, to, to, 'request_queue', 'disk', 8)
  follow(a, SCRATCH, to, 'gendisk', 'major', 4)
  follow(a, to, to, 'gendisk', 'first_minor', 4)
  a:alu('lsh', SCRATCH, MINOR_BITS)
  a:alu_r('or', to, SCRATCH)
end }

--- Generates code that jumps to the label if the request is passed through to the driver.
local function jump_if_passed(a, to, label)
  argument(a, to, 0)
  follow(a, to, to, 'request', 'cmd_flags', 4)
  a:alu('and', to, OPERATION)
  a:jump('==', to, DRIVER_IN, label)
  a:jump('==', to, DRIVER_OUT, label)
end

--- Returns a field of a request that is 0 if the request is passed through.
local function of_request(load)
  return { compute = function(a, to)
    local none, done = a:new_label(), a:new_label()
    jump_if_passed(a, to, none)
    argument(a, to, 0)
    load(a, to, none)
    a:go(done)
    a:label(none)
    a:alu('mov', to, 0)
    a:label(done)
  end }
end

computed.REQUEST = {
  dev = REQUEST_DEV,
  sector = of_request(function(a, to, none)
    follow(a, to, to, 'request', '__sector', 8)
    a:jump('==', to, -1, none) -- not set, as in a flush
  end),
  nr_sector = of_request(function(a, to)
    follow(a, to, to, 'request', '__data_len', 4)
    a:alu('rsh', to, 9)
  end),
}

computed.COMPLETION = {
  dev = REQUEST_DEV,
  sector = { 0, 'request', '__sector' },
  nr_sector = { compute = function(a, to)
    argument(a, to, 2)
    a:extend(to, 32, false)
    a:alu('rsh', to, 9)
  end },
}

computed.BIO = {
  dev = { compute = function(a, to, noted)
    first_argument(a, to, noted)
    follow(a, to, to, 'bio', 'bi_bdev', 8)
    follow(a, to, to, 'block_device', 'bd_dev', 4)
  end },
  sector = { 0, 'bio', 'bi_iter.bi_sector' },
  nr_sector = { compute = function(a, to)
    argument(a, to, 0)
    follow(a, to, to, 'bio', 'bi_iter.bi_size', 4)
    a:alu('rsh', to, 9)
  end },
}

return computed
