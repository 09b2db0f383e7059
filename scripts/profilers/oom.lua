-- SPDX-License-Identifier: GPL-2.0-only
--- Processes that are killed for lack of memory, and who asked for it.
local map = require 'lib.map'
local rows = require 'lib.engines.rows'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local KIB, PAGE = 1024, 4096
-- What the kernel says of a victim, and the columns for it; Linux before 6.8 only says who it is.
local SIZES = { total_vm = 'virtual', anon_rss = 'anon', file_rss = 'file', shmem_rss = 'shmem', pgtables = 'tables' }

--- Returns the columns of the table.
local function columns()
  local list = { { name = 'asked_by' }, { name = 'order' }, { name = 'reclaims' },
    { name = 'freed', unit = 'bytes', align = 'right' }, { name = 'killed' } }
  for _, name in ipairs { 'virtual', 'anon', 'file', 'shmem', 'tables' } do
    list[#list + 1] = { name = name, unit = 'bytes', align = 'right' }
  end
  list[#list + 1] = { name = 'adj', align = 'right' }
  list[#list + 1] = { name = 'gone_ns', title = 'gone', unit = 'ns', align = 'right' }
  return list
end

--- Returns the function that returns the process whose last thread ends in an event.
local function last_thread(event)
  local dead = event.fields.group_dead and 'group_dead'
  return function(ev)
    local is_last
    if dead then is_last = ev[dead] ~= 0 else is_last = ev._tid == ev._pid end
    return is_last and ev._pid or nil
  end
end

return {
  summary = 'Processes that are killed for lack of memory, and who asked for it',
  description = [[
Prints a row for each process that the kernel chooses as a victim, when it is gone or the
run ends. asked_by is the task whose request for memory could not be met, and order that
the request was for 2^order pages. reclaims is how often that task had tried to free
pages since its last kill, and freed how many it got. virtual, anon, file, shmem and
tables are the sizes of the victim, adj its oom_score_adj, and gone how long it took until
its last thread had ended, which is when its memory is free.

A process that asks beyond the limit of its control group is seen as well.]],
  examples = {
    { 'profscript oom', 'all kills, until Ctrl-C' },
    { 'profscript oom --json -o kills.json', 'the same for other programs' },
  },
  unsupported = { 'event' },
  everywhere = true, -- the victim may be any process
  optional = { ['sched:sched_process_exit'] = 'when a victim is gone is not known' },

  start = function(opt, out, session)
    local ours, tries, freed, orders, dying = threads.new(session, opt), map.new(), map.new(), map.new(), map.new()
    local spec, handlers = tables.new('oom', columns()), {}
    local function named(pid) return rows.task(session, pid) end

    local killed = session.event { 'oom:mark_victim' }
    handlers[killed] = function(ev)
      local asker, pid = ev._tid, ev.pid
      if not (ours.has(asker) or ours.has(pid)) then return end
      local row = { asked_by = named(asker), order = orders:get(asker), reclaims = tries:take(asker) or 0,
        freed = (freed:take(asker) or 0) * PAGE, killed = named(pid) }
      for field, column in pairs(SIZES) do row[column] = killed.fields[field] and ev[field] * KIB or nil end
      local adj = 'oom_score_adj'
      row.adj = killed.fields[adj] and ev[adj] or nil
      dying:set(pid, { row = row, time = ev._time })
    end
    for _, kind in ipairs { 'direct', 'memcg' } do
      local event = ('vmscan:mm_vmscan_%s_reclaim_'):format(kind)
      if session.supports(event .. 'begin') then
        handlers[event .. 'begin'] = function(ev) orders:set(ev._tid, ev.order) end
        handlers[event .. 'end'] = function(ev)
          tries:add(ev._tid)
          freed:add(ev._tid, ev.nr_reclaimed)
        end
      end
    end
    function handlers.exit(ev)
      for _, of_task in ipairs { tries, freed, orders } do of_task:take(ev._tid) end
    end
    local gone = session.event { 'sched:sched_process_exit' }
    if gone then
      local process_of = last_thread(gone)
      handlers[gone] = function(ev)
        local pid = process_of(ev)
        local victim = pid and dying:take(pid)
        if not victim then return end
        victim.row.gone_ns = ev._time - victim.time
        out:table(spec, { victim.row })
      end
    end
    function handlers.stop()
      dying:each(function(_, victim) out:table(spec, { victim.row }) end)
    end
    return ours.follow(handlers)
  end,
}
