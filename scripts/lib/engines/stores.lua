-- SPDX-License-Identifier: GPL-2.0-only
--- Values written to watched addresses (breakpoint). The instructions are read from memory or from their file, and
--- decoded by lib.engines.x86store.
local kcore = require 'lib.engines.kcore'
local x86store = require 'lib.engines.x86store'

local stores = {}

local BEFORE, AFTER = 15, 4 -- bytes of code to read before and after the instruction pointer
local KERNEL = 0x8000000000000000ULL -- first kernel address
local MAX_EXACT = 2 ^ 53 -- larger offsets are not exact in a Lua number

-- Options that hide some of the accesses.
local PARTIAL = {
  'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest', 'cpus', 'cgroups', 'exclude_pid', 'prio',
  'sched_policy', 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max',
}

local function read_at(path, offset, n)
  local file = offset >= 0 and offset < MAX_EXACT and io.open(path, 'rb')
  local bytes = file and file:seek('set', offset) and file:read(n)
  if file then file:close() end
  return bytes
end

--- Watched addresses with their last known values.
---@class Stores
local Stores = {}
Stores.__index = Stores

--- Whether all writes to kernel memory are seen, and all writes to the memory of the traced processes.
local function sees_all(opt, session)
  local all = not session.per_thread or session.inherits and not opt.tids
  for _, name in ipairs(PARTIAL) do all = all and not opt[name] end
  return { kernel = all and not session.per_thread, user = all }
end

--- Creates the state of a run. The result of a read-modify-write instruction (inc, or) is known only if all writes to
--- the address are recorded.
---@param session Session
---@param opt table of the run
---@return Stores
function stores.new(session, opt)
  return setmetatable({ session = session, sees_all = sees_all(opt, session), core = (kcore.open '/proc/kcore'),
    known = {} }, Stores)
end

--- Reads memory of the kernel or of a running process.
---@package
function Stores:memory(pid, address, n)
  if address >= KERNEL then return self.core and self.core:read(address, n) end
  return read_at(('/proc/%d/mem'):format(pid), tonumber(address), n)
end

--- Returns the code before and after the instruction pointer of an event.
---@package
function Stores:code(ev, ip)
  local code = self:memory(ev._pid, ip - BEFORE, BEFORE + AFTER)
  if not code and ip < KERNEL then
    local frame = self.session.address(ev, ip)
    code = frame and frame.dso and read_at(frame.dso, frame.offset - BEFORE, BEFORE + AFTER)
  end
  return (code or ''):sub(1, BEFORE), (code or ''):sub(BEFORE + 1)
end

--- Decodes the instruction of an access.
---@param ev Ev sample of a breakpoint on writes
---@param list? { name: string, value: integer64 }[] registers of the sample: session.registers()
---@param length integer number of watched bytes
---@param old? integer64 value before the access
---@return X86Instruction? instruction
---@return integer64? value new value of the watched bytes; nil: unknown
function Stores:look(ev, list, length, old)
  local watched, registers = ev:u64 '_addr', {}
  for _, register in ipairs(list or {}) do registers[register.name] = register.value end
  if not registers.RIP then return end
  local code, ahead = self:code(ev, registers.RIP)
  local found = x86store.decode(code, ahead, registers, watched, length)
  return found, found and x86store.value(found, watched, length, old)
end

--- Like look(), but takes the old value from the accesses before. All accesses must be passed in time order.
---@param ev Ev
---@param list? { name: string, value: integer64 }[]
---@param length integer
---@return X86Instruction? instruction
---@return integer64? value
function Stores:see(ev, list, length)
  local watched = ev:u64 '_addr'
  local half = watched >= KERNEL and 'kernel' or 'user'
  if not self.sees_all[half] then return self:look(ev, list, length) end
  local key = ('%x %d'):format(watched, half == 'user' and ev._pid or 0)
  local known = self.known[key] or {}
  -- The value read from memory is valid if it was read between the previous access and this one.
  local old = known.value or known.read and known.read < ev._time and known.memory or nil
  local found, value = self:look(ev, list, length, old)
  known = { value = value }
  self.known[key] = known
  local bytes = not value and self:memory(ev._pid, watched, length)
  if bytes and #bytes == length then known.memory, known.read = kcore.integer(bytes, 1, length), self.session.now() end
  return found, value
end

--- Drops the known values. Call this when events were lost.
function Stores:forget() self.known = {} end

--- Returns the text of an access: 'INSN: 89 07 mov %eax,(%rdi) ADDR: 0x404028  DATA: 0x5'.
---@param found X86Instruction
---@param value? integer64
---@return string
function stores.text(found, value)
  local bytes = found.code:gsub('.', function(byte) return ('%02x '):format(byte:byte()) end)
  return ('INSN: %s%s ADDR: 0x%x%s'):format(bytes, found.name, found.address,
    value and ('  DATA: 0x%x'):format(value) or '  DATA: unknown')
end

return stores
