-- SPDX-License-Identifier: GPL-2.0-only
--- How long threads of programs hold pthread mutexes, by probes of the C library. A mutex that a condition variable
--- releases is not held meanwhile.
local aggregate = require 'lib.aggregate'
local array = require 'lib.array'
local intern = require 'lib.intern'
local report = require 'lib.engines.locks.report'
local threads = require 'lib.threads'

local holds = {}

local MAX_MUTEXES = 65536

--- Adds the handlers of the probes.
---@param handlers table
---@param session Session
---@param library string name or path of the C library
---@return fun(out: Output, limit: integer) print prints the holds since it was called last
function holds.follow(handlers, session, library)
  local mutexes = intern.new(2, MAX_MUTEXES) -- by process and address
  local since, depths, wanted = array.new(MAX_MUTEXES + 1), array.new(MAX_MUTEXES + 1), array.new(threads.MAX)
  local sums = aggregate.new('stats', { 'mutex', 'holder' }, { name = 'holds (ns)' })
  local names, known_from = {}, 0
  local function on(kind, name, arguments, handler)
    local event = session.event { ('%s:%s@%s%s'):format(kind, name, library, arguments or ''), resolve = 'data' }
    handlers[event] = function(ev)
      local tid = ev._tid
      if tid > 0 and tid < threads.MAX then handler(ev, tid) end
    end
  end
  local function id_of(ev, address) return mutexes.id(ev._pid, address) end
  local function take(ev, id, depth)
    if depth == 1 then since[id] = ev._time end
    depths[id] = depth
  end
  local function leave(ev, id, address)
    if since[id] > known_from then
      names[id] = names[id] or report.name_of(session, ev, address)
      sums:add(ev._time - since[id], names[id], ev._comm)
    end
    since[id], depths[id] = 0, 0
  end

  on('uprobe', 'pthread_mutex_lock', '(m=%di)', function(ev, tid) wanted[tid] = ev.m end)
  on('uretprobe', 'pthread_mutex_lock', nil, function(ev, tid)
    local id = wanted[tid] > 0 and id_of(ev, wanted[tid])
    wanted[tid] = 0
    if id then take(ev, id, depths[id] + 1) end
  end)
  on('uprobe', 'pthread_mutex_unlock', '(m=%di)', function(ev)
    local id = id_of(ev, ev.m)
    if depths[id] > 1 then depths[id] = depths[id] - 1 else leave(ev, id, ev.m) end
  end)
  for _, name in ipairs { 'pthread_cond_wait', 'pthread_cond_timedwait' } do
    on('uprobe', name, '(m=%si)', function(ev, tid)
      wanted[tid] = ev.m
      leave(ev, id_of(ev, ev.m), ev.m)
    end)
    on('uretprobe', name, nil, function(ev, tid)
      if wanted[tid] > 0 then take(ev, id_of(ev, wanted[tid]), 1) end
      wanted[tid] = 0
    end)
  end
  local lost = handlers.lost
  function handlers.lost(gap)
    known_from = math.max(known_from, gap.to)
    if lost then lost(gap) end
  end
  return function(out, limit)
    sums:print(out, { limit = limit })
    sums:clear()
  end
end

return holds
