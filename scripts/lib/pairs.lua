-- SPDX-License-Identifier: GPL-2.0-only
--- Pairs of events: what lies between an event and the next one of a later stage that has the same
--- key. The result is put among a profiler's handlers:
---
---   local found = pairs.new {
---     stages = { { a }, { b } },              -- events, as an option of type event gives them
---     pair = function(p, second) ... end,     -- p.first_time, p.ns, p.key...; second: the event
---   }
---   return { found, stop = function() ... end }
local feed = require 'bindings.pairs.matcher'

local M = {}

--- One end of a pair, as the pair function sees the whole: p.first_time, p.second_time, p.ns
--- (ns), p.first_class, p.second_class, p.kind (which two events, from 0: by stage, then in the order of
--- the first's and of the second's stage), p.key, p.first_tid, p.first_cpu, p.first_event (with keep).
---@class PairsConfig
---@field stages Event[][] at least two, or one with cycle
---@field key? string C expression for events without key=; none at all: the cpu or thread is the key
---@field cycle? boolean the last stage is followed by the first
---@field keep? boolean first events are kept, so that out:print_event(p.first_event) works
---@field has? fun(key: integer): boolean which keys take part, where each is a field of its event
---@field others? Event[] events of no stage, which details show
---@field details? Details of lib.detail: what lies between the events is kept, so that they can show it
---@field lost? fun(p: any, time: number) starts that a loss drops, which begins at that time
---@field left? fun(p: any) starts that still wait at finish()
---@field triggers? Event[]
---@field triggered? fun(ev: any) called at each trigger, when all pairs before it have been seen
---@field pair? fun(p: any, second: any)
---@field latencies? HistSet gets the ns of each pair under its kind: cheaper than a function

--- May stand in a stage: the end of a task, whose key is the thread.
M.task_end = feed.TASK_END

---@param config PairsConfig
function M.new(config)
  local least = config.cycle and 1 or 2
  if #config.stages < least then
    error(('pairs need at least %d stages, there %s %d'):format(least, #config.stages == 1 and 'is' or 'are',
      #config.stages), 2)
  end
  return feed.new(config)
end

return M
