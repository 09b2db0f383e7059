-- SPDX-License-Identifier: GPL-2.0-only
--- Waits of programs for futexes: which lock, of which type, for how long, and who owned it.
local array = require 'lib.array'
local bit = require 'bit'
local report = require 'lib.engines.locks.report'
local rows = require 'lib.engines.rows'
local threads = require 'lib.threads'

local band = bit.band
local futexes = {}

local ENTER, EXIT = 'syscalls:sys_enter_futex', 'syscalls:sys_exit_futex'
local PRIVATE = 0x80
local OPERATION = 0x7f -- without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME
local WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2 = 0, 6, 9, 11, 13
local OWNER, WAITERS = 0x3fffffff, 0x80000000 -- of a futex that the kernel knows to be a lock
local CONTENDED = 2 -- the value of a pthread mutex with waiters
local AGAIN = -11
local MUTEX_BYTES = 12 -- lock, count and owner

-- Types, in the order of TYPES.
local MUTEX, ROBUST, PI, CONDITION, JOIN, OTHER = 1, 2, 3, 4, 5, 6
local TYPES = { 'mutex', 'robust mutex', 'pi-mutex', 'condition', 'join', 'futex' }

--- Returns a word of bytes of the program's memory; 0 if they could not be read.
local function word(bytes, at)
  if #bytes ~= MUTEX_BYTES then return 0 end
  local a, b, c, d = bytes:byte(at + 1, at + 4)
  return a + 256 * (b + 256 * (c + 256 * d))
end

--- Returns the type of a wait and the owner of the lock, 0 if it is not known; nil: the call waits for nothing.
local function wait_of(ev, mutex_of)
  local op, value = band(ev.op, OPERATION), ev.val
  if op == WAIT then
    if value == CONTENDED then return MUTEX, word(mutex_of(ev), 8) end
    local owner = value % (OWNER + 1)
    if value >= WAITERS and owner > 0 and owner < threads.MAX then return ROBUST, owner end
    return OTHER, 0
  end
  if op == LOCK_PI or op == LOCK_PI2 then return PI, word(mutex_of(ev), 0) % (OWNER + 1) end
  if op == WAIT_BITSET and band(ev.op, PRIVATE) == 0 and value > 1 then return JOIN, value end -- the id of a thread
  if op == WAIT_BITSET or op == WAIT_REQUEUE_PI then return CONDITION, 0 end
end

--- Returns the function that finds threads which wait for each other, see FutexWaits.
---@param session Session
---@param owners Array by thread: of the lock that it waits for
---@param addresses Array by thread: of that lock
---@param seen integer[] threads
---@param waits_longer fun(tid: integer, time: number, than: number): boolean
---@return fun(time: number, than: number): string[]
local function cycles_of(session, owners, addresses, seen, waits_longer)
  --- Returns the threads from one that waits for another one, and so on, back to itself; nil: they do not lead there.
  local function cycle_from(first, time, than)
    local list, tid, passed = {}, first, {}
    repeat
      if passed[tid] or not waits_longer(tid, time, than) then return end
      list[#list + 1], passed[tid] = tid, true
      tid = owners[tid]
    until tid == first
    return list
  end
  local function named(tid) return rows.task(session, tid) end
  return function(time, than)
    local lines = {}
    for _, first in ipairs(seen) do
      local list = cycle_from(first, time, than)
      if list and first == math.min(unpack(list)) then
        local parts = {}
        for i, tid in ipairs(list) do
          parts[i] = ('%s waits for %s of %s'):format(named(tid), report.address(addresses[tid]), named(owners[tid]))
        end
        lines[#lines + 1] = table.concat(parts, ', ')
      end
    end
    return lines
  end
end

--- The functions are called with a dot.
---@class FutexWaits
---@field open fun(time: number) adds the waits that last
---@field cycles fun(time: number, than: number): string[] returns the threads that have waited for each other for
--- longer than a time, as text

--- Adds the handlers of futexes.
---@param handlers table
---@param session Session
---@param sums LockReport
---@param mutex_of fun(ev: Ev): string returns the memory at the futex
---@return FutexWaits
function futexes.follow(handlers, session, sums, mutex_of)
  local enter = session.event { ENTER, stack = true, resolve = 'data' }
  local exit = session.event { EXIT }
  local since, stacks, addresses = array.new(threads.MAX), array.new(threads.MAX), array.new(threads.MAX)
  local types, owners, pids, seen = array.new(threads.MAX), array.new(threads.MAX), array.new(threads.MAX), {}
  local known_from = 0

  function sums.user_type(kind) return TYPES[kind] end
  if sums.opt.input then mutex_of = function() return '' end end -- perf does not record it
  handlers[enter] = function(ev)
    local tid = ev._tid
    if tid <= 0 or tid >= threads.MAX then return end
    local kind, owner = wait_of(ev, mutex_of)
    if not kind then return end
    if types[tid] == 0 then seen[#seen + 1] = tid end
    since[tid], stacks[tid], addresses[tid], types[tid], owners[tid] = ev._time, ev._stack, ev.uaddr, kind, owner
    pids[tid] = ev._pid
  end
  handlers[exit] = function(ev)
    local tid = ev._tid
    if tid <= 0 or tid >= threads.MAX or since[tid] == 0 then return end
    local ns, is_known = ev._time - since[tid], since[tid] > known_from
    since[tid] = 0
    if is_known and ev.ret ~= AGAIN then
      sums:add(ns, pids[tid], addresses[tid], types[tid], stacks[tid], owners[tid], ev)
    end
  end
  local lost = handlers.lost
  function handlers.lost(gap)
    known_from = math.max(known_from, gap.to)
    if lost then lost(gap) end
  end

  local function waits_longer(tid, time, than)
    return tid > 0 and tid < threads.MAX and since[tid] > known_from and time - since[tid] > than
  end
  local found = {}
  --- Adds the waits that last.
  function found.open(time)
    for _, tid in ipairs(seen) do
      if since[tid] > known_from then
        sums:add(time - since[tid], pids[tid], addresses[tid], types[tid], stacks[tid], owners[tid])
      end
    end
  end
  found.cycles = cycles_of(session, owners, addresses, seen, waits_longer)
  return found
end

return futexes
