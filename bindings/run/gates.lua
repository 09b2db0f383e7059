-- SPDX-License-Identifier: GPL-2.0-only
--- Gates: sources with a condition of their own (session.gate), such as irq-off with its --than. Their handlers and
--- consumers are called before anybody else gets the events, and decide which of them the others get. If the condition
--- is that pairs took too long or too short (`pass` of PairsConfig), programs may send just the events that end these.
local attach = require 'bindings.select.attach'
local bit = require 'bit'
local dispatch = require 'bindings.view.dispatch'
local ffi = require 'ffi'
local routes = require 'bindings.run.routes'

local C = ffi.C
local gates = {}

local CLOSE = ('if band(e.flags, %d) == 0 then e.class = %d else e.flags = e.flags - %d end'):format(C.EVENT_PASSED,
  C.EVENT_FILTERED, C.EVENT_PASSED)

--- Returns the taker of a gate's events, if it was accepted: then only those come that are passed on.
---@return Taker?
local function taker_of(source)
  local consumer = source.checked.consumers[1]
  local taker = consumer and consumer.taker
  return taker and not taker.refusal and taker or nil
end

--- Returns the sources of a run that are gates. Those of sources come before these.
---@param run Run
---@param in_kernel boolean whether programs evaluate their condition
---@return Instance[]
local function list(run, in_kernel)
  local found = {}
  for _, source in ipairs(run.events.sources.list) do
    if source.is_gate and (taker_of(source) ~= nil) == in_kernel then found[#found + 1] = source end
  end
  return found
end

--- Offers to evaluate the conditions of gates in the kernel.
---@param run Run
function gates.offer(run)
  for _, source in ipairs(list(run, false)) do
    local consumer = source.checked.consumers[1]
    if consumer and consumer.offer then consumer:offer(run, source) end
  end
end

--- Returns why programs that pair the events of a gate would not do all that it does; nil if they would.
---@param taker Taker
---@return string?
function gates.refuses(taker)
  local source, takes = taker.gate, {}
  local checked, run = source.checked, source.run
  if run.everywhere and attach.names_threads(run.opt, run.workload) then
    return 'profscript itself drops the events that are not about the target'
  end
  for _, event in ipairs(taker.events) do takes[event] = true end
  if #taker.events == 0 then return 'its events are not those of the run' end
  for _, event in ipairs(source.opened) do
    if not takes[event] and not event.is_derived then return ('%s is read, too'):format(event.name) end
    local owner = event.owner
    while owner ~= source do
      if owner.is_gate then return ('%s decides which of its events it passes on'):format(owner.name) end
      owner = owner.parent
    end
  end
  if checked.events[1] then return ('%s has a handler'):format(checked.events[1].found[1].name) end
  for _, name in ipairs { 'comm', 'exit', 'fork', 'lost' } do
    if checked.life[name] then return ("%s has a handler '%s'"):format(source.name, name) end
  end
  if #checked.consumers > 1 or source.counts then return ('%s does more with its events'):format(source.name) end
end

--- Notes that programs evaluate the condition of a gate.
---@param source Instance
function gates.accept(source)
  local above = source.parent
  while above and not above.is_gate do above = above.parent end
  for _, event in ipairs(source.opened) do event.gate = above and above.name end
end

--- Requests the records that the gates need. Called before the session starts.
---@param run Run
function gates.prepare(run)
  for _, source in ipairs(list(run, false)) do
    source.routes = routes.new()
    source.routes:add_events(source.checked)
    for _, route in ipairs(source.counts and source.counts.routes or {}) do
      for _, handler in ipairs(route.handlers) do source.routes:add(route, handler) end
    end
    source.routes:add_tasks(run, source.checked)
  end
end

--- Counts the events that programs have passed on, so that they do not count twice.
local function count(source, passes)
  local branches, taker = {}, taker_of(source)
  for _, event in ipairs(source.opened) do
    if event.captured then
      branches[#branches + 1] = { class = event.class, code = 'taker.passed = taker.passed + 1',
        bound = { taker = taker }, same = 'passed' }
    end
  end
  passes:add('count', 'passed', branches)
end

--- Adds the passes of the gates. Called when the session has started.
---@param run Run
---@param passes Passes
function gates.open(run, passes)
  for _, source in ipairs(list(run, true)) do count(source, passes) end
  for _, source in ipairs(list(run, false)) do
    local life, branches = source.checked.life, {}
    passes:add('gate', source.name, dispatch.routes(source.routes.list, function(e)
      if life.lost then life.lost(run.loss.gap(e)) end
    end))
    for _, consumer in ipairs(source.checked.consumers) do
      if consumer.open then source:on_its_own(consumer.open, consumer, run, true) end
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
  for _, source in ipairs(list(run, false)) do
    local begin = source.checked.life.targets
    if begin then begin(tids) end
  end
end

return gates
