-- SPDX-License-Identifier: GPL-2.0-only
--- Needs: what an option requires of the way in which events are taken. A declaration lists them
--- (`needs = { 'each_event' }`), and a way states which of them it cannot give.
local nearest = require 'bindings.base.nearest'

local needs = {}

-- The vocabulary. What an option needs of the way in which events are taken:
local OF_WAYS = {
  each_event = 'each event reaches this process',
  reload = 'the script may be replaced while events arrive',
  newest = 'the rings keep the newest events until these are asked for',
  event_counts = 'something beside the handlers counts the events',
  perf_samples = 'perf writes the samples: it evaluates a condition, or sends them on',
  both_switches = 'the two sides of a switch are events of their own',
  stacks = 'stacks are recorded',
  filter = 'events are selected by what is in them',
  groups = 'tasks are selected by their cgroups',
  stored = 'events are read from a recording or another machine',
}
-- What it needs of the profiler:
local OF_PROFILERS = {
  whole_run = 'it applies to the run, and not to a profiler that is a source of events',
  own_run = 'the profiler runs by itself, and is no source of events of another one',
  live = 'events are live, and not those of a recording',
  samples = 'events are sampled, not only counted',
  idle_if_counted = 'it has no effect where events are only counted, and may be given there',
  threads = 'events are attached to threads',
  modes = 'events happen in a mode of the CPU',
}

--- All words, with what they mean.
needs.WORDS = {}
for _, words in ipairs { OF_WAYS, OF_PROFILERS } do
  for word, meaning in pairs(words) do needs.WORDS[word] = meaning end
end

--- Returns what is wrong with the needs of a declaration; nil: nothing.
---@param list string[]
---@return string? message
function needs.check(list)
  for _, word in ipairs(list) do
    if not needs.WORDS[word] then
      return ("unknown need '%s'%s"):format(tostring(word), nearest.hint(tostring(word), nearest.keys(needs.WORDS)))
    end
  end
end

--- Returns whether a declaration has a need.
---@param option { needs?: string[] }
---@param word string
---@return boolean
function needs.has(option, word)
  for _, one in ipairs(option.needs or {}) do
    if one == word then return true end
  end
  return false
end

local function is_given(value)
  return value ~= nil and value ~= false and not (type(value) == 'table' and next(value) == nil)
end

--- Returns the first given option with a need, as on the command line; nil: there is none.
---@param options { name: string, long: string, needs?: string[] }[] declarations
---@param values table<string, any> by name
---@param word string
---@return string? option such as '--exit-n'
function needs.given(options, values, word)
  assert(needs.WORDS[word], word)
  for _, option in ipairs(options) do
    if needs.has(option, word) and is_given(values[option.name]) then return '--' .. option.long end
  end
end

--- Returns what the given options need of ways, each need with the first of these.
---@param options { name: string, long: string, needs?: string[] }[]
---@param values table<string, any>
---@return table<string, string> options by need
function needs.of(options, values)
  local found = {}
  for _, option in ipairs(options) do
    for _, word in ipairs(is_given(values[option.name]) and option.needs or {}) do
      found[word] = found[word] or OF_WAYS[word] and '--' .. option.long or nil
    end
  end
  return found
end

return needs
