-- SPDX-License-Identifier: GPL-2.0-only
--- The passes that every batch of events goes through, in the order of STAGES. A pass is a loop over the
--- batch that dispatch.loop compiles from branches, or a function that takes the batch as a whole.
local dispatch = require 'bindings.view.dispatch'

local passes = {}

local STAGES = {
  count = 1, -- counts events as they came
  filter = 2, -- rejects by filters that the kernel did not evaluate
  target = 3, -- rejects what is not about the threads that the run names
  limit = 4, -- ends sources, and the run, after so many events
  prepare = 5, -- consumers get ready, before the script's handlers see the events
  handle = 6, -- the script's handlers
  feed = 7, -- consumers take the events
}

--- What takes the events of whole batches. It stands among the handlers that a script returns, without a
--- key, and is called in this order; all but one of feed and poll may be missing.
---@class Consumer
---@field wants? integer[] classes of records that it takes besides samples: EVENT_COMM, EVENT_FORK, EVENT_EXIT
---@field open? fun(self, run: Run) once, when the session has started
---@field prepare? fun(self, list: ffi.cdata*, n: integer) each batch, before the handlers
---@field keys? Branch[] set by open(): what writes e.key and e.flags of each event, just before feed()
---@field feed? fun(self, list: ffi.cdata*, n: integer) each batch, after the handlers
---@field poll? fun(self): boolean? between batches, also empty ones; true ends the run
--- The script itself calls what is to happen at the end.

--- Takes n events (struct event *) and may change their classes, keys and flags. flags: those of the batch.
--- Returns how many of them the later passes get; nil: all.
---@alias Pass fun(list: ffi.cdata*, n: integer, flags: integer): integer?

---@class Passes
local Passes = {}
Passes.__index = Passes

---@return Passes
function passes.new() return setmetatable({ _list = {} }, Passes) end

--- Adds a pass behind those of the same stage.
---@param stage string of STAGES
---@param name string for messages of the loop
---@param what Branch[]|Pass|nil nothing is added for nil and for no branches
function Passes:add(stage, name, what)
  if type(what) == 'table' then what = #what > 0 and dispatch.loop(name, what) or nil end
  if what then table.insert(self._list, { stage = STAGES[stage], place = #self._list, pass = what }) end
end

--- Adds what a consumer does with each batch. To be called when it is open.
---@param consumer Consumer
function Passes:add_consumer(consumer)
  if consumer.prepare then
    self:add('prepare', 'prepare', function(list, n) consumer:prepare(list, n) end)
  end
  self:add('feed', 'keys', consumer.keys)
  if consumer.feed then
    self:add('feed', 'feed', function(list, n) consumer:feed(list, n) end)
  end
end

--- A function that sends a batch through all passes.
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
