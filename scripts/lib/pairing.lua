-- SPDX-License-Identifier: GPL-2.0-only
--- Pairing analysis, for profilers of pairs: how often each event was followed by each event of the next stage. Events
--- that no event followed are printed. See lib.relation.
local relation = require 'lib.relation'
local tables = require 'lib.table'

local pairing = {}

local UNMATCHED, PAIR = { 'replaced', 'unstarted' }, { 'start', 'end', 'count' }

--- Returns the counts of pairs by the classes of both events, of events that were not paired by class, and the first
--- events in order, each with those that can follow it.
local function new_counts(stages, cycle)
  local unpaired, counts, order = {}, {}, {}
  for i = 1, cycle and #stages or #stages - 1 do
    local seconds = stages[i + 1] or stages[1]
    for _, first in ipairs(stages[i]) do
      unpaired[first.class], counts[first.class] = 0, {}
      order[#order + 1] = { first = first, seconds = seconds }
      for _, second in ipairs(seconds) do counts[first.class][second.class] = 0 end
    end
  end
  return counts, unpaired, order
end

--- Returns a function(stats) that prints the number of starts replaced by a later start with the same key, and of ends
--- without a start.
local function unmatched_printer(out)
  local reported = { replaced = 0, unstarted = 0 }
  tables.record('unmatched', UNMATCHED)
  return function(stats)
    local replaced, unstarted = stats.replaced - reported.replaced, stats.unstarted - reported.unstarted
    reported = stats
    if replaced + unstarted == 0 then return end
    out:stamp(nil, ('%d replaced by a later one with the same key, %d ends without a start'):format(replaced,
      unstarted))
    out:record('unmatched', { replaced = replaced, unstarted = unstarted }, UNMATCHED, '')
  end
end

--- Returns a function that prints the counts, and one that starts new ones.
local function counts_printer(out, counts, unpaired, order)
  tables.record('pair', PAIR)
  local spec = tables.offered('pairs', { { name = 'start' }, { name = 'end' }, { name = 'count', metric = 'counter' } })
  local function print_counts()
    local text, rows = out.format == 'text', {}
    local function print_row(row)
      rows[#rows + 1] = row
      if not text then return out:put_record('pair', row, PAIR) end
      out:stamp_line(row['end'] and ('%s %s paired %d'):format(row.start, row['end'], row.count)
        or ('%s unpaired %d'):format(row.start, row.count))
    end
    for _, one in ipairs(order) do
      local class = one.first.class
      print_row { start = one.first.name, count = unpaired[class] }
      for _, second in ipairs(one.seconds) do
        print_row { start = one.first.name, ['end'] = second.name, count = counts[class][second.class] }
      end
    end
    out:offer(spec, rows)
  end
  return print_counts, function()
    for class, of_first in pairs(counts) do
      unpaired[class] = 0
      for second in pairs(of_first) do of_first[second] = 0 end
    end
  end
end

--- Returns the handlers of the profiler.
---@param settings DelaySettings
---@return table handlers
function pairing.run(settings)
  local opt, out = settings.opt, settings.out
  local counts, unpaired, order = new_counts(settings.events.stages, opt.cycle)
  local print_unmatched, print_counts, clear = unmatched_printer(out), counts_printer(out, counts, unpaired, order)
  local function left(p)
    unpaired[p.first_class] = unpaired[p.first_class] + 1
    local first = p.first_event
    if first then out:print_event(first) end
  end
  local handlers, matcher
  handlers, matcher = relation.run(settings.name, {
    keep = true,
    pair = function(p)
      local of_first = counts[p.first_class]
      of_first[p.second_class] = of_first[p.second_class] + 1
    end,
    lost = left,
    left = left,
    draw = print_counts,
    report = function()
      print_counts()
      clear()
      print_unmatched(matcher:stats())
    end,
  }, settings.events, opt, out, settings.session)
  return handlers
end

return pairing
