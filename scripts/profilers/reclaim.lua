-- SPDX-License-Identifier: GPL-2.0-only
--- Time that tasks wait for free memory: reclaim and compaction.
local aggregate = require 'lib.aggregate'
local counter = require 'lib.counter'
local join = require 'lib.join'

-- How the waits are called, by the events between which they are.
local WAITS = {
  ['vmscan:mm_vmscan_direct_reclaim'] = 'direct reclaim',
  ['vmscan:mm_vmscan_memcg_reclaim'] = 'memcg reclaim',
  ['vmscan:mm_vmscan_node_reclaim'] = 'node reclaim',
  ['compaction:mm_compaction'] = 'compaction',
}

return {
  summary = 'Time that tasks wait for free memory: reclaim and compaction',
  description = [[
A task that needs memory when there is too little frees pages itself. This prints how
long that takes, by task and kind, and how many pages are freed:

  direct reclaim   the machine, or a node or zone of it, has too little memory
  memcg reclaim    the control group has reached its limit
  node reclaim     the node has too little, before another one is used
  compaction       pages are moved, until there are enough next to each other for a
                   request of a higher order; also what kcompactd does

What kswapd does in the background is not counted: nobody waits for it.]],
  examples = {
    { 'profscript reclaim -i 1s', 'all tasks, every second' },
    { 'profscript reclaim --container web', 'a container that is close to its limit' },
  },
  unsupported = { 'event' },
  options = { top = { type = 'integer', default = 20, min = 1, help = 'rows to print' } },

  start = function(opt, out, session)
    local waits = aggregate.new('quantiles', { 'comm', 'pid', 'wait' }, { name = 'reclaim', unit = 'ns' })
    local pages = counter.new({ 'comm', 'pid', 'wait' }, { name = 'freed', value = 'pages' })
    local handlers, joins = {}, {}
    for event, wait in pairs(WAITS) do
      if session.supports(event .. '_begin') then
        local started = join.new { expires = '1min' }
        joins[#joins + 1] = started
        handlers[event .. '_begin'] = function(ev) started:start(ev._tid, ev._time) end
        if wait == 'compaction' then
          handlers[event .. '_end'] = function(ev)
            local ns = started:finish(ev._tid, ev._time)
            if ns then waits:add(ns, ev._comm, ev._pid, wait) end
          end
        else
          handlers[event .. '_end'] = function(ev)
            local ns = started:finish(ev._tid, ev._time)
            if ns then
              waits:add(ns, ev._comm, ev._pid, wait)
              pages:add(ev.nr_reclaimed, ev._comm, ev._pid, wait)
            end
          end
        end
      end
    end
    function handlers.lost(gap)
      for _, one in ipairs(joins) do one.lost(gap) end
    end
    function handlers.interval()
      for _, one in ipairs { waits, pages } do
        one:print(out, { limit = opt.top })
        one:clear()
      end
    end
    handlers.stop = handlers.interval
    return handlers
  end,
}
