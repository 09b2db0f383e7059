-- SPDX-License-Identifier: GPL-2.0-only
--- Allocations that are not freed. Longer than most profilers because objects come from several allocators, of the
--- kernel or of programs, and because of the report by stack.
local array = require 'lib.array'
local events = require 'lib.events'
local flamegraph = require 'lib.flamegraph'
local objects = require 'lib.objects'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_OBJECTS = 2 ^ 22 -- about 300 MB

--- Returns the events of an option, each with the function that returns the address of its object.
local function events_of(groups, session)
  local list = {}
  for i, event in ipairs(events.list(groups)) do
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

return {
  summary = 'Find allocations that are not freed, by stack',
  description = [[
--alloc and --free select the events of one or more allocators. ptr= of each
event is the address of the object (default: the field ptr). size= of an --alloc
event is the size in bytes (default: the field bytes_alloc). To trace the
allocators of programs, use probes; a --size event has the size of the next
allocation of its thread.

Objects that are not freed by the end of the run are reported. To tell leaks
from objects in use, run for a long time or use --than. With -i, unfreed objects
are reported at each interval. SIGUSR1 prints how many objects there are now.

  $ profscript kmemleak --size 'uprobe:malloc@libc.so.6(n=%di)//size=n/' \
      --alloc 'uretprobe:malloc@libc.so.6(p=$retval)//ptr=p/' \
      --free 'uprobe:free@libc.so.6(p=%di)//ptr=p/' -g --comm -- ./leak 500
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
    { "profscript kmemleak --size 'uprobe:malloc@libc.so.6(n=%di)//size=n/'"
      .. " --alloc 'uretprobe:malloc@libc.so.6(p=$retval)//ptr=p/'"
      .. " --free 'uprobe:free@libc.so.6(p=%di)//ptr=p/' -g -p 1", 'malloc of a process' },
  },
  attributes = { 'ptr', 'size' },
  unsupported = { 'event' },
  options = flamegraph.options {
    event = { type = 'string', multiple = true, argument = 'EVENT',
      help = 'accepted for perf-prof command lines: the events are those of --alloc and --free' },
    alloc = { type = 'event', multiple = true, required = true, help = 'events that allocate' },
    free = { type = 'event', multiple = true, required = true, help = 'events that free' },
    size = { type = 'event', multiple = true, help = 'events whose size= is the size of the next allocation' },
    than = { type = 'duration', help = 'report only objects older than T' },
    comm = { type = 'flag', help = 'print which tasks allocated the objects' },
    call_graph = { help = 'record stacks of allocations' },
    user_callchain = {},
    kernel_callchain = {},
    filter = {},
  },

  start = function(opt, out, session)
    if #opt.event > 0 then out:warn 'kmemleak: -e has no effect; select events with --alloc and --free' end
    local allocs, message = events_of(opt.alloc, session)
    if not allocs then return nil, message end
    local frees
    frees, message = events_of(opt.free, session)
    if not frees then return nil, message end

    local live = objects.new(MAX_OBJECTS)
    local next_size = array.new(threads.MAX) -- by thread, from --size events
    local allocated, freed = 0, 0
    local known_from = 0 -- the end of the last loss: lost events may have freed older objects
    local handlers, unsized, any_stack = {}, {}, false -- unsized: names of events without size=
    local flame = flamegraph.new(opt, session, out, { title = 'leaked bytes', unit = 'bytes' })
    session.want { stacks = false } -- -g is for allocations only

    for kind, alloc in ipairs(allocs) do
      local ptr, is_user, size = alloc.ptr, alloc.is_user, size_of(alloc.event, session)
      local attrs = alloc.event.attrs
      if opt.call_graph or flame then alloc.event:set { stack = true } end
      local stacked = attrs.stack or attrs['max-stack'] ~= nil
      any_stack = any_stack or stacked
      if not size and #opt.size == 0 then unsized[#unsized + 1] = alloc.event.name end
      handlers[alloc.event] = function(ev)
        local address, tid = ptr(ev), ev._tid
        allocated = allocated + 1
        if not address then return end
        local bytes = 0
        if size then
          bytes = size(ev) or 0
        elseif tid >= 0 and tid < threads.MAX then
          bytes = next_size[tid]
          next_size[tid] = 0
        end
        local space, stack = is_user and ev._pid or 0, stacked and ev._stack or -1
        live:put_later(space, address, bytes, ev._time, tid, stack, kind)
      end
    end
    for _, free in ipairs(frees) do
      local ptr, is_user = free.ptr, free.is_user
      handlers[free.event] = function(ev)
        local address = ptr(ev)
        freed = freed + 1
        if address then live:drop_later(is_user and ev._pid or 0, address) end
      end
    end
    for _, event in ipairs(events.list(opt.size)) do
      local size = size_of(event, session)
      if not size then return nil, ('--size: %s has no size='):format(event.name) end
      handlers[event] = function(ev)
        local tid = ev._tid
        if tid >= 0 and tid < threads.MAX then next_size[tid] = size(ev) or 0 end
      end
    end

    --- Returns the live objects by stack, or by event if they have no stack. Most bytes first.
    local function leaks(now)
      local groups, order = {}, {}
      local sum = { bytes = 0, objects = 0, uncertain_bytes = 0, uncertain = 0 }
      live:each(function(object)
        if opt.than and now - object.time <= opt.than then return end
        local size = tonumber(object.size)
        if object.time < known_from then
          sum.uncertain, sum.uncertain_bytes = sum.uncertain + 1, sum.uncertain_bytes + size
          return
        end
        sum.objects, sum.bytes = sum.objects + 1, sum.bytes + size
        local stack = object.stack < 2 ^ 31 and object.stack or -1
        local key = stack >= 0 and stack or -tonumber(object.kind)
        local group = groups[key]
        if not group then
          group = { bytes = 0, objects = 0, oldest = 0, newest = math.huge, comms = {}, names = {} }
          group.stack, group.event = stack, allocs[object.kind].event.name
          groups[key] = group
          order[#order + 1] = group
        end
        group.bytes, group.objects = group.bytes + size, group.objects + 1
        local age = now - object.time
        group.oldest, group.newest = math.max(group.oldest, age), math.min(group.newest, age)
        local comm = session.task_name(object.tid)
        local by_comm = group.comms[comm]
        if not by_comm then
          by_comm = { comm = comm, bytes = 0, objects = 0 }
          group.comms[comm] = by_comm
          table.insert(group.names, by_comm)
        end
        by_comm.bytes, by_comm.objects = by_comm.bytes + size, by_comm.objects + 1
      end)
      local function more(a, b)
        if a.bytes ~= b.bytes then return a.bytes > b.bytes end
        if a.objects ~= b.objects then return a.objects > b.objects end
        return a.oldest and a.oldest > b.oldest or a.comm ~= nil and a.comm < b.comm
      end
      for _, group in ipairs(order) do
        table.sort(group.names, more)
        for i, name in ipairs(group.names) do
          group.names[i] = ('%s(%d/%d)'):format(name.comm, name.bytes, name.objects)
        end
      end
      table.sort(order, more)
      return order, sum
    end

    local spec = tables.new('leaks', {
      { name = 'bytes', adds_up = true },
      { name = 'objects', adds_up = true },
      { name = 'oldest_ns' },
      { name = 'newest_ns' },
      { name = 'event' },
      { name = 'comms', show = opt.comm },
      { name = 'stack' },
    }, { stamp = false })
    local totals = tables.offered('kmemleak', { { name = 'alloc', metric = 'counter' },
      { name = 'free', metric = 'counter' } })
    local offered = { alloc = 0, free = 0 }
    local status = { 'objects', 'bytes', 'alloc', 'free' }
    tables.record('status', status)

    --- Draws the live objects as a flame graph of bytes, or of objects if not all sizes are known.
    local function draw(now)
      live:each(function(object)
        local tid, is_young = object.tid, opt.than and now - object.time <= opt.than
        if object.time < known_from or is_young or object.stack >= 2 ^ 31 then return end
        flame:add({ _stack = object.stack, _comm = session.task_name(tid), _pid = object.space, _tid = tid, _cpu = -1 },
          #unsized == 0 and tonumber(object.size) or 1)
      end)
      flame:finish()
    end

    local function frame_lines(stack)
      return stack >= 0 and session.stack_lines(stack) or {}
    end

    local function print_text(list, sum)
      out:stamp()
      out:printf('KMEMLEAK STATS:\nTOTAL alloc %d free %d\n', allocated, freed)
      out:printf('LEAKED %d bytes in %d objects\n\n', sum.bytes, sum.objects)
      if #list > 0 then out:write 'LEAKED BYTES REPORT:\n' end
      for _, leak in ipairs(list) do
        out:printf('Leak of %d bytes in %d objects allocated %s:\n', leak.bytes, leak.objects,
          leak.stack >= 0 and 'from' or 'by ' .. leak.event)
        out:printf('    age: %.3f s to %.3f s\n', leak.newest / 1e9, leak.oldest / 1e9)
        if opt.comm then out:printf('    comms: %s\n', table.concat(leak.names, ' ')) end
        for _, line in ipairs(frame_lines(leak.stack)) do out:printf('    %s\n', line) end
      end
    end

    local function report(now)
      if allocated == 0 then return end
      out:offer(totals, { { alloc = allocated - offered.alloc, free = freed - offered.free } })
      offered.alloc, offered.free = allocated, freed
      local list, sum = leaks(now)
      local replaced, no_room = live:stats()
      if out.format == 'text' then print_text(list, sum) end
      if out:takes_rows() then
        for _, leak in ipairs(list) do
          leak.oldest_ns, leak.newest_ns = leak.oldest, leak.newest
          leak.comms, leak.stack = leak.names, frame_lines(leak.stack)
        end
        out:table(spec, list, nil, function() return '' end)
      end
      if sum.uncertain > 0 then
        out:warn(('kmemleak: ignored %d objects (%d bytes): lost events may have freed them'):format(
          sum.uncertain, sum.uncertain_bytes))
      end
      if no_room > 0 then
        out:warn(('kmemleak: did not track %d allocations: more than %d live objects'):format(no_room,
          MAX_OBJECTS))
      end
      if #unsized > 0 and #list > 0 then
        out:warn(('kmemleak: no size= for %s: its allocations count as 0 bytes'):format(table.concat(unsized, ', ')))
      end
      if opt.verbose > 0 then
        out:warn(('kmemleak: %d allocations at an address already in use'):format(replaced))
        if not any_stack then out:warn 'kmemleak: use -g to record the stacks of allocations' end
      end
    end
    handlers.interval = report
    function handlers.status()
      local n, bytes = 0, 0
      live:each(function(object) n, bytes = n + 1, bytes + tonumber(object.size) end)
      if out.format == 'text' then
        out:stamp()
        out:printf('KMEMLEAK STATS:\nALLOC LIST num %d mem %d\n', n, bytes)
        out:printf('TOTAL alloc %d free %d\n', allocated, freed)
      else
        out:record('status', { objects = n, bytes = bytes, alloc = allocated, free = freed }, status)
      end
    end
    handlers.stop = function(now)
      report(now)
      if flame then draw(now) end
    end
    handlers.lost = function(gap) known_from = math.max(known_from, gap.to) end
    return handlers
  end,
}
