-- SPDX-License-Identifier: GPL-2.0-only
--- Waits for locks: those of the kernel, and mutexes and condition variables of programs.
local futexes = require 'lib.engines.locks.futexes'
local holds = require 'lib.engines.locks.holds'
local kernel_locks = require 'lib.engines.locks.kernel_locks'
local report = require 'lib.engines.locks.report'

local function memory(ev) return ev:string 'uaddr' end

return {
  summary = 'Waits for locks of the kernel and of programs, with who held them',
  description = [[
Prints a row for each lock, type, caller and owner, longest waits first. Only waits
are seen: a lock that is free costs nothing, and has no row.

Locks of the kernel have the type that it reports, such as mutex, spinlock or rwsem:W.
The caller is the first function that is not one of the lock itself.

Programs wait for futexes. The type follows from the call: "mutex" is a pthread mutex
(its owner is read at the start of the wait), "pi-mutex" and "robust mutex" have their
owner in the futex, "join" waits for the end of a thread, "condition" is a condition
variable, semaphore or timed wait, and "futex" anything else. Waits that end at once are not counted.

--holds probes the C library, which costs a program some 10 us for each mutex that it
takes, and names no callers of its waits. What a condition variable releases is not
held meanwhile.

--cycle T reports threads that have waited for each other for longer than T when an
interval or the run ends. A wait that lasts at the end of the run is counted.]],
  examples = {
    { 'profscript lock -p 1', 'locks that a process waits for' },
    { 'profscript lock --only user -g -- make', 'locks of programs, with stacks' },
    { 'profscript lock --only kernel -i 1s', 'locks of the kernel, every second' },
    { 'profscript lock --only user --hist -p 1', 'how long the waits for each lock of a process are' },
  },
  unsupported = { 'event' },
  options = {
    only = { type = 'enum', values = { 'kernel', 'user' }, help = 'only locks of the kernel, or of programs' },
    top = { type = 'integer', default = 20, min = 1, help = 'rows to print' },
    holds = { type = 'flag', help = 'also print how long pthread mutexes are held, by probes of the C library' },
    hist = { type = 'flag', help = 'also print a histogram of the waits for each lock' },
    than = { type = 'duration', help = 'only waits longer than T' },
    cycle = { type = 'duration', default = '1s', help = 'report threads that wait for each other for longer than T' },
    call_graph = { help = 'also print the stacks' },
    user_callchain = {},
    kernel_callchain = {},
    mmap_pages = { default = 512 },
  },

  start = function(opt, out, session)
    local sums = report.new(opt, out, session)
    local handlers = { interval = function(time) sums:print(time) end }
    local sees_kernel, sees_user = session.supports 'lock:contention_begin', session.supports 'syscalls:sys_enter_futex'
    if opt.only == 'kernel' or opt.only ~= 'user' and (sees_kernel or not sees_user) then
      kernel_locks.follow(handlers, session, sums)
    end
    local waits = (opt.only == 'user' or opt.only ~= 'kernel' and sees_user)
      and futexes.follow(handlers, session, sums, memory)
    if waits then sums.cycles = function(time) return waits.cycles(time, opt.cycle) end end
    if opt.holds then sums.holds = holds.follow(handlers, session, 'libc.so.6') end
    function handlers.stop(time)
      if waits then waits.open(time) end
      sums:print(time)
    end
    return handlers
  end,
}
