-- SPDX-License-Identifier: GPL-2.0-only
--- Passes: the steps that process every batch, in the order of STAGES. A pass is a loop over the batch, compiled by
--- dispatch.loop from branches, or a function that takes the batch as a whole.
local dispatch = require 'bindings.view.dispatch'

local passes = {}

local STAGES = {
  count = 1, -- counts all events, before any filter
  filter = 2, -- evaluates filters that the kernel cannot
  target = 3, -- drops events that are not about target threads
  gate = 4, -- evaluates the conditions of sources
  limit = 5, -- ends sources and the run after N events
  prepare = 6, -- calls consumers before the script's handlers
  handle = 7, -- calls the script's handlers
  export = 8, -- writes events to the file of --export, keeps them for the page of --serve
  feed = 9, -- passes the events to consumers
}

--- A consumer of whole batches: an entry without a key in the table of handlers that a script returns. Its functions
--- are called in this order; feed or poll is required. The script itself finishes the consumer at the end.
---@class Consumer
---@field wants? integer[] classes of records other than samples: EVENT_COMM, EVENT_FORK, EVENT_EXIT
---@field offer? fun(self, run: Run, gate?: Instance) before: may add an Offer to run.in_kernel; gate: the source whose
--- condition it is
---@field offered? Offer what it has added
---@field open? fun(self, run: Run, is_gate?: boolean) once, after the session has started; is_gate: it is a source's
---@field prepare? fun(self, list: ffi.cdata*, n: integer) for each batch, before the handlers
---@field keys? Branch[] set by open(): code that writes e.key and e.flags, run just before feed()
---@field feed? fun(self, list: ffi.cdata*, n: integer) for each batch, after the handlers
---@field close? fun(self) another version of the script takes its place (--watch)
---@field poll? fun(self): boolean? after each batch, even an empty one; true ends the run

--- Processes n events (struct event *) and may change their classes, keys and flags. flags are those of the batch.
--- Returns the number of events for the later passes; nil: all.
---@alias Pass fun(list: ffi.cdata*, n: integer, flags: integer): integer?

---@class Passes
local Passes = {}
Passes.__index = Passes

---@return Passes
function passes.new() return setmetatable({ _list = {} }, Passes) end

--- Adds a pass after those of the same stage.
---@param stage string key of STAGES
---@param name string the loop's chunk name, for error messages
---@param pass Branch[]|Pass|nil nil or an empty list adds nothing
function Passes:add(stage, name, pass)
  if type(pass) == 'table' then pass = #pass > 0 and dispatch.loop(name, pass) or nil end
  if pass then table.insert(self._list, { stage = STAGES[stage], place = #self._list, pass = pass }) end
end

--- Adds the passes of a consumer, which must be open.
---@param consumer Consumer
---@param stage? string default: the consumer's own
function Passes:add_consumer(consumer, stage)
  if consumer.prepare then
    self:add(stage or 'prepare', 'prepare', function(list, n) consumer:prepare(list, n) end)
  end
  self:add(stage or 'feed', 'keys', consumer.keys)
  if consumer.feed then
    self:add(stage or 'feed', 'feed', function(list, n) consumer:feed(list, n) end)
  end
end

--- Returns a function that sends a batch through all passes.
---@return Pass
function Passes:compile()
  table.sort(self._list, function(a, b)
    if a.stage ~= b.stage then return a.stage < b.stage end
    return a.place < b.place
  end)
  local list = {}
  for i, entry in ipairs(self._list) do list[i] = entry.pass end
  return function(events, n, flags)
    for i = 1, #list do
      n = list[i](events, n, flags) or n
    end
  end
end

return passes
