-- SPDX-License-Identifier: GPL-2.0-only
--- Completion of command lines: profilers, their options and values, events, attributes and fields. It uses the same
--- declarations as the parser.
local catalog = require 'bindings.select.catalog'
local nearest = require 'bindings.base.nearest'
local needs = require 'bpf.plan.needs'
local options = require 'bindings.options.parser'
local perf_events = require 'bindings.view.perf_events'
local processes = require 'bindings.select.processes'
local selector = require 'bindings.select.selector'
local shell = require 'bindings.base.shell'
local sys = require 'bindings.base.sys'
local types = require('bindings.options.types').types

local complete = {}

--- The machine as seen by completion. Lists are empty if unknown.
---@class complete.World
---@field profilers fun(): string[]
---@field sources fun(): string[] profilers that have events
---@field load fun(name: string): scripts.Script?
---@field events fun(): string[] names of tracepoints and perf events
---@field pmus table<string, boolean>
---@field terms fun(pmu: string): string[]
---@field processes fun(): string[] process names
---@field fields fun(event: string): string[]

--- The candidates. The shell adds a space after 'words' but not after 'open' ones, and completes 'files' and
--- 'commands' itself.
---@class complete.Result
---@field mode 'words'|'open'|'files'|'commands'
---@field list string[]

-- Events without a tracepoint of the same name, for tp_btf:.
local NO_TRACEPOINTS = { ftrace = true, misc = true, syscalls = true }
local SAMPLE = { '_cpu', '_pid', '_tid', '_time', '_period', '_comm' }

--- Splits a line as the shell does, up to the cursor.
---@param line string
---@return string[] words the last one ends at the cursor and may be empty
---@return boolean quoted whether the last one is inside quotes
local function split(line)
  local words, _, unclosed, touches = shell.split(line)
  if not touches then words[#words + 1] = '' end
  return words, unclosed ~= nil
end

local function common_prefix(list)
  local prefix = list[1] or ''
  for _, word in ipairs(list) do
    while word:sub(1, #prefix) ~= prefix do prefix = prefix:sub(1, -2) end
  end
  return prefix
end

--- Returns the candidates that start with the typed text. If there are none, those that contain it, unless the shell
--- would then replace the typed text by a common prefix without it.
local function matching(typed, candidates)
  local list = {}
  for _, word in ipairs(candidates) do
    if word:sub(1, #typed) == typed then list[#list + 1] = word end
  end
  if #list > 0 or typed == '' then return list end
  for _, word in ipairs(candidates) do
    if word:find(typed, 1, true) then list[#list + 1] = word end
  end
  local prefix = common_prefix(list)
  if prefix ~= '' and not prefix:find(typed, 1, true) then return {} end
  return list
end

local function offer(mode, prefix, typed, candidates)
  local list = matching(typed, candidates)
  for i, word in ipairs(list) do
    list[i] = prefix .. word
  end
  return { mode = mode, list = list }
end

--- Returns the start of the last event in a list of selectors and the positions of its slashes. Commas between the
--- first two slashes of names in `has_terms` do not separate events.
local function last_event(text, has_terms)
  local start, slashes, depth, quote = 1, {}, 0, nil
  for i = 1, #text do
    local char = text:sub(i, i)
    if quote then
      if char == quote then quote = nil end
    elseif char == "'" or char == '"' then
      quote = char
    elseif char == '(' then
      depth = depth + 1
    elseif char == ')' then
      depth = math.max(0, depth - 1)
    elseif depth == 0 and char == '/' then
      slashes[#slashes + 1] = i
    elseif depth == 0 and char == ',' and not (#slashes == 1 and has_terms[text:sub(start, slashes[1] - 1)]) then
      start, slashes = i + 1, {}
    end
  end
  return start, slashes
end

--- Returns the names of the events in a list of selectors.
local function event_names(text)
  local names, parsed = {}, selector.parse(text)
  for i, one in ipairs(parsed or {}) do
    names[i] = one.system and one.name and one.text:match '^[^/]+'
  end
  return names
end

--- Completes an identifier at the end of an expression or filter.
local function complete_field(before, text, fields)
  local typed = text:match '[%a_][%w_]*$' or ''
  local candidates = {}
  for _, name in ipairs(fields) do
    candidates[#candidates + 1] = name
  end
  if typed:sub(1, 1) == '_' then
    for _, name in ipairs(SAMPLE) do
      candidates[#candidates + 1] = name
    end
  end
  return offer('open', before .. text:sub(1, #text - #typed), typed, candidates)
end

--- Completes the name of an event. Tracepoints, of which there are thousands, are completed in two steps: system and
--- name.
local function complete_name(before, typed, world)
  local names = world.events()
  if not typed:find(':', 1, true) then
    local first, seen = {}, {}
    for _, name in ipairs(names) do
      local system = name:match '^[^:]+:' or name
      if not seen[system] then first[#first + 1] = system end
      seen[system] = true
    end
    for pmu in pairs(world.pmus) do
      first[#first + 1] = pmu .. '/'
    end
    for _, source in ipairs(world.sources()) do
      first[#first + 1] = source .. '/'
    end
    table.sort(first)
    local list = {}
    for _, word in ipairs(first) do
      if word:sub(1, #typed) == typed then list[#list + 1] = word end
    end
    -- If only one system matches, continue with its names.
    if #list > 1 or (list[1] and not list[1]:find ':$') then return offer('open', before, typed, list) end
  end
  return offer('open', before, typed, names)
end

local function complete_attribute(before, typed, profiler)
  local candidates = {}
  local own = {}
  for _, name in ipairs(profiler.attributes or {}) do
    own[name] = true
  end
  for _, name in ipairs(nearest.keys(selector.attributes)) do
    local attribute = selector.attributes[name]
    if attribute.common or own[name] then
      candidates[#candidates + 1] = name .. (attribute.kind == 'flag' and '/' or '=')
    end
  end
  return offer('open', before, typed, candidates)
end

local complete_argument, scan

--- Completes the options of a source, at the end of the text between its slashes.
local function complete_options(before, text, script, world)
  local words, columns, _, touches = shell.split(text)
  if not touches then words[#words + 1], columns[#columns + 1] = '', #text + 1 end
  local spec = setmetatable({ list = {} }, { __index = script.spec })
  for _, option in ipairs(script.spec.list) do
    if not needs.has(option, 'whole_run') then table.insert(spec.list, option) end
  end
  local result = complete_argument(words[#words], spec, scan(spec, words), world, script.profiler)
  if result.mode == 'files' or result.mode == 'commands' then return { mode = 'words', list = {} } end
  for i, word in ipairs(result.list) do
    result.list[i] = before .. text:sub(1, columns[#columns] - 1) .. word
  end
  result.mode = 'open'
  return result
end

--- Returns the names that are followed by terms (PMUs) or options (sources).
local function with_terms(world)
  local names = {}
  for pmu in pairs(world.pmus) do
    names[pmu] = true
  end
  for _, source in ipairs(world.sources()) do
    names[source] = 'source'
  end
  return names
end

local function complete_event(before, text, world, profiler)
  local known = with_terms(world)
  local start, slashes = last_event(text, known)
  if #slashes == 0 then return complete_name(before .. text:sub(1, start - 1), text:sub(start), world) end
  local name, at = text:sub(start, slashes[1] - 1), slashes[#slashes]
  local part = text:sub(at + 1)
  before = before .. text:sub(1, at)
  if #slashes == 1 and known[name] == 'source' then
    return complete_options(before, part, world.load(name), world)
  elseif #slashes == 1 and known[name] then
    local others, term = part:match '^(.-)([^,]*)$'
    return offer('open', before .. others, term, world.terms(name))
  elseif #slashes == 1 then
    return complete_field(before, part, world.fields(name))
  end
  local attribute, value = part:match '^([%w_-]+)=(.*)$'
  if not attribute then return complete_attribute(before, part, profiler) end
  local described = selector.attributes[attribute:gsub('_', '-')]
  local is_expression = described and described.kind == 'expr'
  return complete_field(before .. attribute .. '=', value, is_expression and world.fields(name) or {})
end

--- Completes the value of an option.
local function complete_value(before, text, option, given, world, profiler)
  if option.type == 'event' then return complete_event(before, text, world, profiler) end
  if option.type == 'enum' then return offer('words', before, text, option.values) end
  if option.type == 'processes' or option.values then
    local others, name = text:match '^(.-)([^,]*)$'
    return offer('words', before .. others, name, option.values or world.processes())
  end
  if option.argument == 'FILE' then return { mode = 'files', list = {} } end
  if option.argument == 'EXPR' or option.argument == 'FILTER' then
    local fields, seen = {}, {}
    for _, selected in ipairs(given) do
      for _, name in ipairs(event_names(selected)) do
        for _, field in ipairs(world.fields(name)) do
          if not seen[field] then fields[#fields + 1] = field end
          seen[field] = true
        end
      end
    end
    return complete_field(before, text, fields)
  end
  return { mode = 'words', list = {} }
end

--- Returns the option in a word if its value is the next word.
local function wants_value(spec, word)
  local option = spec.long[(word:match '^%-%-([^=]+)$' or ''):gsub('_', '-') .. '']
  if not option and word:find '^%-%w' then
    for i = 2, #word do
      option = spec.short[word:sub(i, i)]
      if not option then return nil end
      if not types[option.type].switch then
        if i < #word then return nil end
        break
      end
    end
  end
  return option and not types[option.type].switch and option.optional_value == nil and option or nil
end

--- Scans the words after the profiler's name, except the last one.
---@return { option: opt.Option?, events: string[], filled: integer, workload: boolean }
function scan(spec, words)
  local state = { events = {}, filled = 0, workload = false }
  for i = 1, #words - 1 do
    local word = words[i]
    if state.workload then return state end
    if state.option then
      if state.option.type == 'event' then table.insert(state.events, word) end
      state.option = nil
    elseif word == '--' then
      state.workload = true
    elseif word:sub(1, 1) == '-' and word ~= '-' then
      state.option = wants_value(spec, word)
    elseif word ~= 'help' then
      local last = spec.positional[#spec.positional]
      if state.filled < #spec.positional then
        state.filled = state.filled + 1
      elseif not (last and last.multiple) then
        state.workload = true
      end
    end
  end
  return state
end

local function option_names(spec)
  local names = {}
  for _, option in ipairs(spec.list) do
    local takes_value = not types[option.type].switch and option.optional_value == nil
    names[#names + 1] = '--' .. option.long
    if takes_value and option.type == 'enum' then names[#names] = names[#names] .. '=' end
  end
  table.sort(names)
  return names
end

function complete_argument(typed, spec, state, world, profiler)
  local long, value = typed:match '^%-%-([%w_-]+)=(.*)$'
  local option = long and spec.long[long:gsub('_', '-') .. '']
  if state.option then return complete_value('', typed, state.option, state.events, world, profiler) end
  if state.workload then return { mode = 'commands', list = {} } end
  if option then
    return complete_value(('--%s='):format(long), value, option, state.events, world, profiler)
  end
  if typed:sub(1, 1) == '-' then
    local result = offer('words', '', typed, option_names(spec))
    if #result.list == 1 and result.list[1]:find '=$' then result.mode = 'open' end
    return result
  end
  local positional = spec.positional[state.filled + 1] or spec.positional[#spec.positional]
  if positional and (state.filled < #spec.positional or positional.multiple) then
    return complete_value('', typed, positional, state.events, world, profiler)
  end
  if not spec.workload then return { mode = 'words', list = {} } end
  return { mode = 'commands', list = matching(typed, { 'help' }) }
end

--- Returns the candidates for the word at the end of a line.
---@param line string the command line up to the cursor
---@param breaks string characters at which the shell splits words: the candidates omit the text up to the last one
---@param world complete.World
---@return complete.Result
function complete.run(line, breaks, world)
  local words, quoted = split(line)
  local typed = words[#words]
  local at = 2
  while at < #words and words[at]:sub(1, 1) == '-' do at = at + 1 end
  if words[at] == 'help' and at < #words then at = at + 1 end -- `profscript help NAME`
  local has_no_name = #words > 2 and wants_value(options.explain_spec(), words[2]) -- `profscript -e EVENT help`
  local result
  if at >= #words and not has_no_name then
    if typed:find('/', 1, true) or #words > 2 and wants_value(options.global_spec, words[#words - 1]) then
      result = { mode = 'files', list = {} }
    elseif typed:sub(1, 1) == '-' then
      result = offer('words', '', typed, option_names(options.global_spec))
    else
      result = offer('words', '', typed, world.profilers())
    end
  else
    local spec, profiler, rest = options.explain_spec(), {}, { unpack(words, 2) }
    if not has_no_name then
      local script = world.load(words[at])
      if not script then return { mode = 'words', list = {} } end
      spec, profiler, rest = script.spec, script.profiler, { unpack(words, at + 1) }
    end
    result = complete_argument(typed, spec, scan(spec, rest), world, profiler)
  end

  local cut = 0
  for i = 1, quoted and 0 or #typed do
    if breaks:find(typed:sub(i, i), 1, true) then cut = i end
  end
  local list = {}
  for _, word in ipairs(result.list) do
    if word:sub(1, cut) == typed:sub(1, cut) then list[#list + 1] = word:sub(cut + 1) end
  end
  return { mode = result.mode, list = list }
end

--- Returns this machine. What cannot be read is left out.
---@param found scripts.Scripts
---@return complete.World
function complete.machine(found)
  local events = catalog.machine()
  local self = { pmus = events:pmus() }

  function self.profilers() return nearest.keys(found:names()) end

  function self.sources()
    local names = {}
    for _, entry in ipairs(found:list()) do
      if entry.summary and not entry.is_tool then
        names[#names + 1] = entry.name
        names[#names + 1] = entry.also
      end
    end
    return names
  end

  function self.load(name) return (found:load(name)) end

  function self.events()
    local names = {}
    for i, entry in ipairs((events:entries())) do
      names[i] = entry.name:match '^[ku]r?e?t?probe:' or entry.name:match '^mem:' or entry.name
    end
    for i = 1, #names do
      local system, name = names[i]:match '^([%w_]+):([%w_]+)$'
      if system and not NO_TRACEPOINTS[system] then names[#names + 1] = 'tp_btf:' .. name end
    end
    return names
  end

  function self.processes()
    local names = {}
    for _, name in ipairs(processes.names()) do
      if name:find '^[%w_.+-]+$' then names[#names + 1] = name end -- others need quotes
    end
    return names
  end

  function self.terms(pmu)
    local list = perf_events.term_names(perf_events.open_pmu(pmu, sys))
    local named = {}
    for _, name in ipairs(perf_events.named(perf_events.open_pmu(pmu, sys))) do
      named[name] = true
    end
    for i, name in ipairs(list) do
      list[i] = named[name] and name or name .. '='
    end
    return list
  end

  function self.fields(event) return events:fields(event) end

  return self
end

return complete
