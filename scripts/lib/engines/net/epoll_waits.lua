-- SPDX-License-Identifier: GPL-2.0-only
--- Waits of threads in epoll_wait(2): how long, what woke the thread, and how long it handled what it got.
local array = require 'lib.array'
local intern = require 'lib.intern'
local off_cpu = require 'lib.engines.off_cpu.waits'
local threads = require 'lib.threads'

local epoll_waits = {}

local MAX = 65536 -- keys
local MAX_WAKERS = 65536
local CALLS = { 'epoll_wait', 'epoll_pwait', 'epoll_pwait2' }

-- What has ended a wait, if not the waking by something with a name.
local READY, TIMEOUT, SIGNAL = 1, 2, 3
local ENDS = { '[ready]', '[timeout]', '[signal]' }

--- Sums by key: waits, events, times in ns.
local WAITS, EVENTS, WAITED, WOKEN, LATENCY, LATENCY_MAX, HANDLED, HANDLING, HANDLING_MAX = 0, 1, 2, 3, 4, 5, 6, 7, 8
local WIDTH = 9
epoll_waits.AT = { WAITS = WAITS, EVENTS = EVENTS, WAITED = WAITED, WOKEN = WOKEN, LATENCY = LATENCY,
  LATENCY_MAX = LATENCY_MAX, HANDLED = HANDLED, HANDLING = HANDLING, HANDLING_MAX = HANDLING_MAX }

---@class EpollWaits
---@field sums Array by key and what is in AT
---@field on_handled fun(key: integer, ev: Ev, ns: number) called when a thread waits again
local EpollWaits = {}
EpollWaits.__index = EpollWaits

--- Creates the follower.
---@param session Session
---@param ours Threads
---@return EpollWaits
function epoll_waits.new(session, ours)
  return setmetatable({
    sums = array.new((MAX + 1) * WIDTH), session = session, has = ours.has, known_from = 0,
    keys = intern.new(3, MAX), -- process, descriptor, what has ended the wait
    wakers = intern.new(1, MAX_WAKERS), cause_of = off_cpu.cause_finder(session),
    -- By thread: when its wait began, for what, when and by what it was woken; when it has returned, and as which key.
    since = array.new(threads.MAX), fds = array.new(threads.MAX), woken = array.new(threads.MAX),
    woken_by = array.new(threads.MAX), left = array.new(threads.MAX), left_key = array.new(threads.MAX),
  }, EpollWaits)
end

--- Handles the beginning of a wait.
---@param ev Ev
function EpollWaits:enter(ev)
  local tid = ev._tid
  if not self.has(tid) then return end
  if self.left[tid] > self.known_from then
    local sums, at, ns = self.sums, self.left_key[tid] * WIDTH, ev._time - self.left[tid]
    sums[at + HANDLED], sums[at + HANDLING] = sums[at + HANDLED] + 1, sums[at + HANDLING] + ns
    if ns > sums[at + HANDLING_MAX] then sums[at + HANDLING_MAX] = ns end
    if ns > self.than then self.on_handled(self.left_key[tid], ev, ns) end
  end
  self.since[tid], self.fds[tid], self.woken[tid], self.left[tid] = ev._time, ev.epfd, 0, 0
end

--- Returns whether a thread is in epoll_wait.
---@param tid integer
---@return boolean
function EpollWaits:is_waiting(tid) return tid > 0 and tid < threads.MAX and self.since[tid] > 0 end

--- Handles sched:sched_waking of a thread that waits.
---@param ev Ev
---@param name string of what wakes it
function EpollWaits:waking(ev, name)
  local tid = ev.pid
  self.woken[tid], self.woken_by[tid] = ev._time, #ENDS + 1 + self.wakers.id(name)
end

--- Handles the end of a wait.
---@param ev Ev
function EpollWaits:exit(ev)
  local tid, time, ret = ev._tid, ev._time, ev.ret
  if not self.has(tid) or self.since[tid] <= self.known_from then return end
  local woken = ret > 0 and self.woken[tid] or 0
  local by = ret == 0 and TIMEOUT or ret < 0 and SIGNAL or woken > 0 and self.woken_by[tid] or READY
  local key, sums = self.keys.id(ev._pid, self.fds[tid], by), self.sums
  local at = key * WIDTH
  sums[at + WAITS], sums[at + WAITED] = sums[at + WAITS] + 1, sums[at + WAITED] + time - self.since[tid]
  if ret > 0 then sums[at + EVENTS] = sums[at + EVENTS] + ret end
  if woken > 0 then
    sums[at + WOKEN], sums[at + LATENCY] = sums[at + WOKEN] + 1, sums[at + LATENCY] + time - woken
    if time - woken > sums[at + LATENCY_MAX] then sums[at + LATENCY_MAX] = time - woken end
  end
  self.since[tid], self.left[tid], self.left_key[tid] = 0, time, key
end

--- Returns what a key is about: process, descriptor, and what has ended the wait.
---@param key integer
---@return integer pid
---@return integer fd
---@return string by
function EpollWaits:parts(key)
  if key >= self.keys.max then return 0, -1, '(other)' end
  local by = self.keys:part(key, 3)
  local name = ENDS[by] or self.wakers:part(by - #ENDS - 1, 1) or '(other)'
  return self.keys:part(key, 1), self.keys:part(key, 2), name
end

--- Calls a function with each key and the index of its sums, and clears them. Keys stay: threads return to them.
---@param each fun(key: integer, at: integer)
function EpollWaits:take(each)
  for key = 0, self.keys:count() - 1 do
    local at = key * WIDTH
    if self.sums[at + WAITS] > 0 or self.sums[at + HANDLED] > 0 then each(key, at) end
    for i = at, at + WIDTH - 1 do self.sums[i] = 0 end
  end
end

--- Returns the handlers.
---@return table
function EpollWaits:handlers()
  local session, handlers = self.session, {}
  for _, call in ipairs(CALLS) do
    if session.supports('syscalls:sys_enter_' .. call) then
      handlers['syscalls:sys_enter_' .. call] = function(ev) self:enter(ev) end
      handlers['syscalls:sys_exit_' .. call] = function(ev) self:exit(ev) end
    end
  end
  local waking = session.supports 'sched:sched_waking' and 'sched:sched_waking' or 'sched:sched_wakeup'
  session.want { stack_part = 'kernel' }
  -- Only the names of interrupts need stacks.
  local in_interrupt = ('common_flags & %d'):format(off_cpu.IN_INTERRUPT)
  handlers[session.event { ('%s/%s/'):format(waking, in_interrupt), stack = true }] = function(ev)
    if self:is_waiting(ev.pid) then self:waking(ev, self.cause_of(ev._stack)) end
  end
  handlers[session.event { ('%s/!(%s)/'):format(waking, in_interrupt) }] = function(ev)
    if self:is_waiting(ev.pid) then self:waking(ev, ev._comm) end
  end
  function handlers.lost(gap) self.known_from = math.max(self.known_from, gap.to) end
  return handlers
end

return epoll_waits
