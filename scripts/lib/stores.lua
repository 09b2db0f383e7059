-- SPDX-License-Identifier: GPL-2.0-only
--- What accesses have written to watched addresses (breakpoint): the instructions are read from memory or from
--- their file, and decoded by lib.x86store.
local kcore = require 'lib.kcore'
local x86store = require 'lib.x86store'

local stores = {}

local BEFORE, BEHIND = 15, 4 -- bytes of code that are read
local KERNEL = 0x8000000000000000ULL
local PLAIN = 2 ^ 53 -- a larger offset is no number of Lua

local function read_at(path, offset, n)
  local file = offset >= 0 and offset < PLAIN and io.open(path, 'rb')
  local bytes = file and file:seek('set', offset) and file:read(n)
  if file then file:close() end
  return bytes
end

--- Watched addresses, and what is known to be there.
---@class Stores
local Stores = {}
Stores.__index = Stores

--- The result of a change (inc, or) is known only if all writes to the address are seen.
---@param session Session
---@param sees_all { kernel: boolean, user: boolean } whether all writes to addresses of the kernel, and of user
--- space, are seen
---@return Stores
function stores.new(session, sees_all)
  return setmetatable({ session = session, sees_all = sees_all, core = (kcore.open '/proc/kcore'), known = {} }, Stores)
end

--- Memory of the kernel, or of a process that still runs.
---@package
function Stores:memory(pid, address, n)
  if address >= KERNEL then return self.core and self.core:read(address, n) end
  return read_at(('/proc/%d/mem'):format(pid), tonumber(address), n)
end

--- The code before the address where the event's task goes on, and some that follows.
---@package
function Stores:code(ev, ip)
  local code = self:memory(ev._pid, ip - BEFORE, BEFORE + BEHIND)
  if not code and ip < KERNEL then
    local frame = self.session.address(ev, ip)
    code = frame and frame.dso and read_at(frame.dso, frame.offset - BEFORE, BEFORE + BEHIND)
  end
  return (code or ''):sub(1, BEFORE), (code or ''):sub(BEFORE + 1)
end

--- What an access has done.
---@param ev Ev of a breakpoint on writes
---@param list? { name: string, value: integer64 }[] its registers: session.registers()
---@param length integer bytes that are watched
---@param old? integer64 what was there before
---@return X86Instruction? instruction
---@return integer64? value of the watched bytes; nil: not known
function Stores:look(ev, list, length, old)
  local watched, registers = ev:u64 '_addr', {}
  for _, register in ipairs(list or {}) do registers[register.name] = register.value end
  if not registers.RIP then return end
  local code, ahead = self:code(ev, registers.RIP)
  local found = x86store.decode(code, ahead, registers, watched, length)
  return found, found and x86store.value(found, watched, length, old)
end

--- The same, where all accesses are passed in the order of time, so that the value before each is known.
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
  -- Memory counts if it was read between the access before and this one.
  local old = known.value or known.read and known.read < ev._time and known.memory or nil
  local found, value = self:look(ev, list, length, old)
  known = { value = value }
  self.known[key] = known
  local bytes = not value and self:memory(ev._pid, watched, length)
  if bytes and #bytes == length then known.memory, known.read = kcore.integer(bytes, 1, length), self.session.now() end
  return found, value
end

--- Forgets the values, because events were lost.
function Stores:forget() self.known = {} end

--- The line about an access: "INSN: 89 07 mov %eax,(%rdi) ADDR: 0x404028 DATA: 0x5".
---@param found X86Instruction
---@param value? integer64
---@return string
function stores.text(found, value)
  local bytes = found.code:gsub('.', function(byte) return ('%02x '):format(byte:byte()) end)
  return ('INSN: %s%s ADDR: 0x%x%s'):format(bytes, found.name, found.address,
    value and ('  DATA: 0x%x'):format(value) or '  DATA: unknown')
end

return stores
