-- SPDX-License-Identifier: GPL-2.0-only
--- Waits for locks of the kernel, by the tracepoints lock:contention_*, which Linux has since 5.19.
local array = require 'lib.array'
local bit = require 'bit'
local report = require 'lib.engines.locks.report'
local threads = require 'lib.threads'

local kernel_locks = {}

local BEGIN, END = 'lock:contention_begin', 'lock:contention_end'
local SPIN, READ, WRITE, RT, PERCPU, MUTEX = 1, 2, 4, 8, 16, 32

--- Returns the name of the type that the flags of an event say.
---@param flags integer
---@return string
function kernel_locks.type_of(flags)
  local function has(one) return bit.band(flags, one) ~= 0 end
  local side = has(READ) and ':R' or has(WRITE) and ':W' or ''
  if side == '' then return has(SPIN) and not has(MUTEX) and 'spinlock' or has(RT) and 'rt-mutex' or 'mutex' end
  return (has(SPIN) and 'rwlock' or has(RT) and 'rt-rwlock' or has(PERCPU) and 'percpu-rwsem' or 'rwsem') .. side
end

--- Adds the handlers of locks of the kernel.
---@param handlers table
---@param session Session
---@param sums LockReport
function kernel_locks.follow(handlers, session, sums)
  local first, second = session.event { BEGIN, stack = true }, session.event { END }
  -- By thread, twice: a thread that waits and sleeps may be interrupted, and wait for a spinlock there.
  local since, stacks = array.new(2 * threads.MAX), array.new(2 * threads.MAX)
  local flags, locks = array.new(2 * threads.MAX), array.new(2 * threads.MAX)
  local known_from, key_of = 0, report.kernel_key

  sums.kernel_type = kernel_locks.type_of
  handlers[first] = function(ev)
    local tid = ev._tid
    if tid <= 0 or tid >= threads.MAX then return end
    local at = 2 * tid + bit.band(ev.flags, SPIN)
    since[at], stacks[at], flags[at], locks[at] = ev._time, ev._stack, ev.flags, key_of(ev:u64 'lock_addr')
  end
  handlers[second] = function(ev)
    local tid = ev._tid
    if tid <= 0 or tid >= threads.MAX then return end
    local lock, at = key_of(ev:u64 'lock_addr'), 2 * tid + SPIN
    if since[at] == 0 or locks[at] ~= lock then at = 2 * tid end
    if since[at] <= known_from or locks[at] ~= lock then return end
    sums:add(ev._time - since[at], 0, lock, flags[at], stacks[at], 0, ev)
    since[at] = 0
  end
  function handlers.lost(gap) known_from = math.max(known_from, gap.to) end
end

return kernel_locks
