-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs of events: an event and the next one of a later stage that has the same key. What new() returns is put
--- among the handlers of a profiler:
---
---   local found = pairs.new {
---     stages = { { a }, { b } },              -- events, as an option of type event holds them
---     pair = function(p, second) ... end,     -- called for each pair
---   }
---   return { found, stop = function() ... end }
---
--- What waits for its end is bounded: two million starts, and 256 MiB of kept events.
local feed = require 'bindings.pairs.matcher'

local M = {}

--- A pair, as the functions of PairsConfig get it. It is valid until they return.
---@class Pair
---@field ns number from the first event to the second
---@field key integer64
---@field kind integer which two events, from 0: by stage, then in the order of the first stage, then of the second
---@field first_time number
---@field second_time number
---@field first_class integer `class` of the first event
---@field second_class integer
---@field first_tid integer
---@field first_cpu integer
---@field first_event? Ev the first event, with `keep`; nil where there was no room for it

---@class PairsConfig
---@field stages Event[][] at least two, or one with `cycle`; the events of a stage are alternatives
---@field key? string C expression for the events without key=; where there is no key at all, it is the CPU or
--- thread
---@field cycle? boolean the last stage is followed by the first
---@field keep? boolean keep first events, so that `p.first_event` is there
---@field has? fun(key: integer): boolean which keys take part, where each key is a field of its event
---@field others? Event[] events of no stage, which details show
---@field details? Details of lib.detail: events are kept as long as it may show them
---@field pair? fun(p: Pair, second: Ev) called for each pair
---@field latencies? HistSet gets the ns of each pair under its kind; cheaper than a function
---@field lost? fun(p: Pair, time: number) called for starts that are dropped by a loss, which begins at that time
---@field left? fun(p: Pair) called by finish() for starts that still wait
---@field triggers? Event[]
---@field triggered? fun(ev: Ev) called at each trigger, after all pairs that were complete before

--- The end of a task, to be put into a stage. Its key is the thread.
M.task_end = feed.TASK_END

--- Finds pairs. The result has the methods finish(), to be called at the start of `stop`; stats(), a table of
--- counts (pairs, replaced, dropped, evicted, stored, unstarted, mismatched, unneeded, unkept); and
--- key_value(p.key), which is what the user means by a key.
---@param config PairsConfig
---@return Feed
function M.new(config)
  local least = config.cycle and 1 or 2
  if #config.stages < least then
    error(('pairs need at least %d stages, there %s %d'):format(least, #config.stages == 1 and 'is' or 'are',
      #config.stages), 2)
  end
  return feed.new(config)
end

return M
