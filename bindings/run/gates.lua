-- SPDX-License-Identifier: GPL-2.0-only
--- Gates: sources with a condition of their own (session.gate), such as irq-off with its --than. Their handlers and
--- consumers are called before anybody else gets the events, and decide which of them the others get.
local bit = require 'bit'
local dispatch = require 'bindings.view.dispatch'
local ffi = require 'ffi'
local routes = require 'bindings.run.routes'

local C = ffi.C
local gates = {}

local CLOSE = ('if band(e.flags, %d) == 0 then e.class = %d else e.flags = e.flags - %d end'):format(C.EVENT_PASSED,
  C.EVENT_FILTERED, C.EVENT_PASSED)

--- Returns the sources of a run that are gates. Those of sources come before these.
---@param run Run
---@return Instance[]
local function list(run)
  local found = {}
  for _, source in ipairs(run.events.sources.list) do
    if source.is_gate then found[#found + 1] = source end
  end
  return found
end

--- Requests the records that the gates need. Called before the session starts.
---@param run Run
function gates.prepare(run)
  for _, source in ipairs(list(run)) do
    source.routes = routes.new()
    source.routes:add_events(source.checked)
    for _, route in ipairs(source.counts and source.counts.routes or {}) do
      for _, handler in ipairs(route.handlers) do source.routes:add(route, handler) end
    end
    source.routes:add_tasks(run, source.checked)
  end
end

--- Opens a consumer of a gate. Meanwhile its events have the attributes, such as a key, that they have in its profiler.
local function open_consumer(run, source, consumer)
  local attrs = {}
  for i, event in ipairs(source.opened) do attrs[i], event.attrs = event.attrs, source.attrs[i] end
  consumer:open(run, true)
  for i, event in ipairs(source.opened) do event.attrs = attrs[i] end
end

--- Adds the passes of the gates. Called when the session has started.
---@param run Run
---@param passes Passes
function gates.open(run, passes)
  for _, source in ipairs(list(run)) do
    local life, branches = source.checked.life, {}
    passes:add('gate', source.name, dispatch.routes(source.routes.list, function(e)
      if life.lost then life.lost(run.loss.gap(e)) end
    end))
    for _, consumer in ipairs(source.checked.consumers) do
      if consumer.open then open_consumer(run, source, consumer) end
      passes:add_consumer(consumer, 'gate')
    end
    for i, event in ipairs(source.opened) do
      branches[i] = { class = event.class, code = CLOSE, bound = { band = bit.band }, same = 'gate' }
    end
    passes:add('gate', 'gate', branches)
  end
end

--- Passes the threads that the user has named to the gates.
---@param run Run
---@param tids integer[]
function gates.begin(run, tids)
  for _, source in ipairs(list(run)) do
    local begin = source.checked.life.targets
    if begin then begin(tids) end
  end
end

return gates
