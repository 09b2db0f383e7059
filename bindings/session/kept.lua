-- SPDX-License-Identifier: GPL-2.0-only
--- What a script keeps: events, values for its next version, slices of an export.
local check = require 'bindings.base.check'
local slots = require 'bindings.session.slots'

local kept = {}

--- Adds the functions.
---@param api Session
---@param of SessionParts
function kept.add(api, of)
  local instance, run, check_start = of.instance, of.run, of.check_start
  local services, own_states = run.services, {} -- the states of a source

  --- Returns an array of n slots, each of which can keep an event after its handler has returned. Unused slots cost no
  --- memory.
  ---
  ---   local started = session.slots(threads.MAX)
  ---   started:put(ev._tid, ev)
  ---   out:print_event(started:get(ev._tid))
  ---@param n integer
  ---@return Slots
  function api.slots(n) return slots.new(n, services.any) end

  --- Returns what the version of the script before, which --watch has replaced, had under this name. Otherwise calls
  --- make() and returns the result. Only valid in start().
  ---
  ---   local waits = session.state('waits', function() return hist.new() end)
  ---@generic T
  ---@param name string
  ---@param make fun(): T
  ---@return T
  function api.state(name, make)
    check_start 'session.state'
    check.is(name, 'string', 'session.state takes a name')
    check.is(make, 'function', 'session.state takes a function that makes the value')
    local states = instance.parent and own_states or run.states
    if states[name] ~= nil then error(("session.state: '%s' exists already"):format(name), 2) end
    local value = not instance.parent and run.kept and run.kept[name]
    if value == nil or value == false then value = make() end
    if value == nil then error(("session.state: the function for '%s' returns nothing"):format(name), 2) end
    states[name] = value
    return value
  end

  --- Returns a function that adds slices to the file of --export: what the script has found out between two times.
  --- Slices of a key must not overlap, except with `nested`, and come in the order of their ends.
  ---
  ---   local slice = session.slices { by = 'tid', names = { 'asleep', 'waiting' } }
  ---   if slice then slice(1, ev.pid, since, ev._time) end
  ---@param settings { by: 'tid'|'cpu'|'key', names: string[], nested?: boolean,
  --- key_text?: (fun(key: integer64): string), has_addresses?: boolean } by: what keys are; has_addresses: they are
  --- addresses
  ---@return (fun(kind: integer, key: integer, from: number, to: number))? slice kind: index in names; nil without
  --- --export
  function api.slices(settings)
    check.is(settings, 'table', 'session.slices takes a table')
    check.is(settings.names, 'table', 'session.slices takes a list of names')
    return run.export and run.export:script_slices { by = settings.by, names = settings.names,
      nested = settings.nested, key_text = settings.key_text, has_addresses = settings.has_addresses }
  end
end

return kept
