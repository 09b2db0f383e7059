-- SPDX-License-Identifier: GPL-2.0-only
--- Allocations that are not freed. Objects come from several allocators, of the kernel or of programs.
local array = require 'lib.array'
local events = require 'lib.events'
local flamegraph = require 'lib.flamegraph'
local leaks = require 'lib.engines.leaks'
local malloc = require 'lib.engines.memory.malloc'
local threads = require 'lib.threads'

--- Returns events, each with the function that returns the address of its object.
local function with_addresses(all, session)
  local list = {}
  for i, event in ipairs(all) do
    local ptr = event.attrs.ptr or event.fields.ptr and 'ptr'
    if not ptr then
      return nil, ('%s has no field ptr; give the address of the object with ptr='):format(event.name)
    end
    list[i] = {
      event = event,
      -- User addresses are only unique within a process.
      is_user = event.name:match '^u%w+:' ~= nil,
      ptr = session.expression(event, ptr).value,
    }
  end
  return list
end

local function size_of(event, session)
  local size = event.attrs.size or event.fields.bytes_alloc and 'bytes_alloc'
  return size and session.number(event, size, 'size')
end

--- Returns the handler of an event that allocates.
---@param kind integer number of the event
---@param size? fun(ev: Ev): integer? nil: the size is that of the last --size event of the thread
---@param keeps_size boolean the size stays, as one function that allocates may call another one
local function allocates(alloc, kind, size, found, next_size, keeps_size)
  local live, ptr, is_user, has_stack = found.live, alloc.ptr, alloc.is_user, alloc.has_stack
  return function(ev)
    local address, tid = ptr(ev), ev._tid
    found.allocated = found.allocated + 1
    if not address then return end
    local bytes = 0
    if size then
      bytes = size(ev) or 0
    elseif tid >= 0 and tid < threads.MAX then
      bytes = next_size[tid]
      if not keeps_size then next_size[tid] = 0 end
    end
    local space, stack = is_user and ev._pid or 0, has_stack and ev._stack or -1
    live:put_later(space, address, bytes, ev._time, tid, stack, kind)
  end
end

--- Returns the handler of an event that frees.
local function frees(free, found)
  local live, ptr, is_user = found.live, free.ptr, free.is_user
  return function(ev)
    local address = ptr(ev)
    found.freed = found.freed + 1
    if address then live:drop_later(is_user and ev._pid or 0, address) end
  end
end

return {
  summary = 'Find allocations that are not freed, by stack',
  description = [[
--malloc finds the allocations of programs: by malloc, calloc, realloc and
aligned_alloc of the C library, or of the one that is named, as in
--malloc=libjemalloc.so.2. Each call costs the program some 10 us to 20 us.

--alloc and --free select the events of other allocators, one or more. ptr= of each
event is the address of the object (default: the field ptr). size= of an --alloc
event is the size in bytes (default: the field bytes_alloc). A --size event has the
size of the next allocation of its thread.

Objects that are not freed by the end of the run are reported. To tell leaks
from objects in use, run for a long time or use --than. With -i, unfreed objects
are reported at each interval. SIGUSR1 prints how many objects there are now.

  $ profscript kmemleak --malloc -g --comm -- ./leak 500
  2026-11-22 11:29:44.447857
  KMEMLEAK STATS:
  TOTAL alloc 500 free 950
  LEAKED 50000 bytes in 50 objects

  LEAKED BYTES REPORT:
  Leak of 50000 bytes in 50 objects allocated from:
      age: 0.017 s to 0.033 s
      comms: leak(50000/50)
      000055784e09c1de main+0x10e (/tmp/leak)]],
  examples = {
    { 'profscript kmemleak --alloc kmem:kmalloc --free kmem:kfree -g -m 1024 --duration 60', 'kmalloc' },
    { "profscript kmemleak --alloc 'kmem:mm_page_alloc//ptr=pfn/size=4096<<order/'"
      .. ' --free kmem:mm_page_free//ptr=pfn/ -g', 'pages' },
    { 'profscript kmemleak --malloc -g -p 1', 'malloc of a process' },
  },
  attributes = { 'ptr', 'size' },
  unsupported = { 'event' },
  options = flamegraph.options {
    event = { type = 'string', multiple = true, argument = 'EVENT',
      help = 'accepted for perf-prof command lines: the events are those of --alloc and --free' },
    alloc = { type = 'event', multiple = true, help = 'events that allocate' },
    free = { type = 'event', multiple = true, help = 'events that free' },
    size = { type = 'event', multiple = true, help = 'events whose size= is the size of the next allocation' },
    malloc = { type = 'string', argument = 'LIBRARY', optional_value = 'libc.so.6',
      help = 'malloc, calloc, realloc, aligned_alloc and free of a library (libc.so.6)' },
    than = { type = 'duration', help = 'report only objects older than T' },
    comm = { type = 'flag', help = 'print which tasks allocated the objects' },
    call_graph = { help = 'record stacks of allocations' },
    srcline = {},
    user_callchain = {},
    kernel_callchain = {},
    filter = {},
  },

  start = function(opt, out, session)
    if #opt.event > 0 then out:warn 'kmemleak: -e has no effect; select events with --alloc and --free' end
    local chosen = { alloc = events.list(opt.alloc), free = events.list(opt.free), size = events.list(opt.size) }
    for kind, list in pairs(opt.malloc and malloc.events(session, opt.malloc) or {}) do
      for _, event in ipairs(list) do table.insert(chosen[kind], event) end
    end
    if #chosen.alloc == 0 or #chosen.free == 0 then return nil, '--alloc and --free are required, or --malloc' end
    local allocs, message = with_addresses(chosen.alloc, session)
    if not allocs then return nil, message end
    local releases
    releases, message = with_addresses(chosen.free, session)
    if not releases then return nil, message end

    local found = leaks.new(opt, out, session)
    local next_size = array.new(threads.MAX) -- by thread, from --size events
    local flame = flamegraph.new(opt, session, out, { title = 'leaked bytes', unit = 'bytes' })
    session.want { stacks = false } -- -g is for allocations only
    local handlers = {}
    for kind, alloc in ipairs(allocs) do
      local event, size = alloc.event, size_of(alloc.event, session)
      if opt.call_graph or flame then event:set { stack = true } end
      alloc.has_stack = event.attrs.stack or event.attrs['max-stack'] ~= nil
      found.has_stacks, found.events[kind] = found.has_stacks or alloc.has_stack, event.name
      if not size and #chosen.size == 0 then table.insert(found.unsized, event.name) end
      handlers[event] = allocates(alloc, kind, size, found, next_size, opt.malloc ~= nil)
    end
    for _, free in ipairs(releases) do handlers[free.event] = frees(free, found) end
    for _, event in ipairs(chosen.size) do
      local size = size_of(event, session)
      if not size then return nil, ('--size: %s has no size='):format(event.name) end
      handlers[event] = function(ev)
        local tid = ev._tid
        if tid >= 0 and tid < threads.MAX then next_size[tid] = size(ev) or 0 end
      end
    end

    function handlers.draw(now) found:print(now) end
    function handlers.interval(now) found:report(now) end
    function handlers.status() found:print_status() end
    function handlers.stop(now)
      found:report(now)
      if flame then found:draw(now, flame) end
    end
    function handlers.lost(gap) found.known_from = math.max(found.known_from, gap.to) end
    return handlers
  end,
}
