-- SPDX-License-Identifier: GPL-2.0-only
--- Gates: sources with a condition of their own (session.gate), such as irq-off with its --than. Their handlers and
--- consumers are called before anybody else gets the events, and decide which of them the others get. If the condition
--- is that pairs took too long or too short (`pass` of PairsConfig), programs may send just the events that end these.
local bit = require 'bit'
local dispatch = require 'bindings.view.dispatch'
local ffi = require 'ffi'
local handlers_by_class = require 'bindings.view.handlers_by_class'

local C = ffi.C
local gates = {}

local CLOSE = ('if band(e.flags, %d) == 0 then %s else e.flags = e.flags - %d end'):format(C.EVENT_PASSED,
  dispatch.reject 'gate', C.EVENT_PASSED)

--- Returns the sources of a run that are gates. Those of sources come before these.
local function list(run)
  local found = {}
  for _, source in ipairs(run.events.sources.list) do
    if source.is_gate then found[#found + 1] = source end
  end
  return found
end

--- Offers to evaluate the conditions of gates in the kernel.
---@param run Run
function gates.offer(run)
  for _, source in ipairs(list(run)) do
    local consumer = source.checked.consumers[1]
    if consumer and consumer.offer then consumer:offer(run, source) end
  end
end

--- Returns why programs that pair the events of a gate would not do all that it does with them; nil if they would.
---@param offer Offer
---@return string?
function gates.refuses(offer)
  local source, takes = offer.gate, {}
  if #source.checked.consumers > 1 or source.counts then return ('%s does more with its events'):format(source.name) end
  if #offer.events == 0 then return 'its events are not those of the run' end
  for _, event in ipairs(offer.events) do
    local owner = event.owner
    while owner ~= source do
      if owner.is_gate then return ('%s decides which of its events it passes on'):format(owner.name) end
      owner = owner.parent
    end
    takes[event] = true
  end
  for _, entry in ipairs(source.checked.events) do
    for _, event in ipairs(entry.found) do
      if takes[event] then return ('%s has a handler'):format(event.name) end
    end
  end
end

--- Notes that programs evaluate the condition of a gate.
---@param offer Offer
function gates.accept(offer)
  local source, above = offer.gate, offer.gate.parent
  while above and not above.is_gate do above = above.parent end
  source.accepted, source.checked.consumers = offer, {}
  for _, event in ipairs(offer.events) do event:set_gate(above and above.name) end
end

--- Requests the records that the gates need. Called before the session starts.
---@param run Run
function gates.prepare(run)
  for _, source in ipairs(list(run)) do
    source.by_class = handlers_by_class.new()
    source.by_class:add_events(source.checked, {})
    for _, one in ipairs(source.counts and source.counts.handlers or {}) do
      for _, handler in ipairs(one.handlers) do source.by_class:add(one, handler) end
    end
    source.by_class:add_tasks(run, source.checked)
  end
end

--- Counts the events that programs pass on, so that they do not count twice.
local function count(offer, passes)
  local branches = {}
  for _, event in ipairs(offer.events) do
    if event.route.is_captured then
      branches[#branches + 1] = { class = event.class, code = 'offer.passed = offer.passed + 1',
        bound = { offer = offer }, same = 'passed' }
    end
  end
  passes:add('count', 'passed', branches)
end

--- Adds the passes of the gates. Called when the session has started.
---@param run Run
---@param passes Passes
function gates.open(run, passes)
  for _, source in ipairs(list(run)) do
    local life, branches, taken = source.checked.life, {}, {}
    if source.accepted then count(source.accepted, passes) end
    for _, event in ipairs(source.accepted and source.accepted.events or {}) do taken[event] = true end
    passes:add('gate', source.name, dispatch.handlers(source.by_class.list, function(e)
      if life.lost then life.lost(run.loss.gap(e)) end
    end))
    for _, consumer in ipairs(source.checked.consumers) do
      if consumer.open then source:on_its_own(consumer.open, consumer, run, true) end
      passes:add_consumer(consumer, 'gate')
    end
    for _, event in ipairs(source.opened) do
      if not taken[event] then
        branches[#branches + 1] = { class = event.class, code = CLOSE, bound = { band = bit.band }, same = 'gate' }
      end
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
