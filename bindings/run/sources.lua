-- SPDX-License-Identifier: GPL-2.0-only
--- Sources: profilers as event sources of others: `-e 'PROFILER/OPTIONS/ATTRIBUTE/'`. A source is started as on its own
--- command line, but only for its events and its `describe`. Its events are opened with the others and arrive in the
--- same stream. Its other handlers are only called if it decides which of its events the others get
--- (bpf/run/gates.lua).
local ffi = require 'ffi'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local dispatch = require 'bindings.view.dispatch'
local declarations = require 'bindings.options.declare'
local needs = require 'bpf.plan.needs'
local options = require 'bindings.options.parser'
local selector = require 'bindings.select.selector'
local shell = require 'bindings.base.shell'

local C = ffi.C

---@class Sources
---@field found scripts.Scripts
---@field list Instance[]
local Sources = {}
Sources.__index = Sources

local sources = {}

local MAX_DEPTH = 8 -- of nested sources: a script may name itself

---@param found scripts.Scripts
---@return Sources
function sources.new(found)
  return setmetatable({ found = found, list = {} }, Sources)
end

--- Returns the paths of all profilers by name and alias. Not all of them can be sources.
---@return table<string, string>
function Sources:paths()
  self.known = self.known or self.found:names()
  return self.known
end

local function refuse(text, column, ...)
  failure.usage('%s', selector.caret(diagnostic.new('event', text, column, (...):format(select(2, ...)))))
end

--- Parses the source's options, the text between its first two slashes.
---@param script scripts.Script
---@param text string the whole -e
---@param one Selector
---@param base table options of the profiler that uses the source
---@param of_run table options of the run
---@return table opt
local function parse(script, text, one, base, of_run)
  local words, columns, unclosed = shell.split(one.filter or '')
  local first = one.filter_column or one.column
  if unclosed then refuse(text, first + unclosed - 1, 'unclosed quote') end
  local opt, rest, given = options.parse_words(script.spec, words, base)
  if not opt then refuse(text, first + (columns[given or 1] or 1) - 1, '%s: %s', script.name, rest) end
  if rest[1] or opt.explain then
    local at = #words - #rest + 1
    refuse(text, first + (columns[opt.explain and 1 or at] or 1) - 1, "%s: a source only takes options, not '%s'",
      script.name, rest[1] or 'help')
  end
  -- Follows the threads of the run, which are the source's, too. A source of a source has another base.
  if given.ptrace then of_run.ptrace, base.ptrace = true, true end
  for _, list in ipairs { declarations.common, script.spec.list } do
    for _, option in ipairs(list) do
      local name = option.name
      if needs.has(option, 'whole_run') then
        if given[name] and name ~= 'ptrace' then
          refuse(text, first, '%s: --%s is not valid for a source: it applies to the whole run', script.name,
            option.long)
        end
        opt[name] = base[name]
      end
    end
  end
  opt.cpus = opt.cpus or base.cpus
  return opt
end

--- Returns whether a source's events are only context (untraced): the profiler analyzes them only if they have a key or
--- role.
local function is_untraced(set, attrs)
  return set.attributes.untraced and not (attrs.key or attrs.role)
end

--- Combines the common attributes of a source's event with the attributes given to the source.
local function merge_attributes(set, event, one, gate)
  local attrs = {}
  for name, value in pairs(event.attrs) do
    if selector.attributes[name].common then attrs[name] = value end
  end
  for _, attr in ipairs(one.attrs) do
    attrs[attr.name] = attr.value
  end
  if is_untraced(set, attrs) then attrs.untraced = true end
  event:lend(attrs, one.attrs, gate)
end

--- Opens a profiler as a source.
---@param set table the event set of the profiler that uses it
---@param text string the whole -e
---@param one Selector
---@return Event[]
function Sources:open(set, text, one)
  local script, message = self.found:load(one.system and one.system .. ':' .. one.name or one.name)
  if not script then failure.usage('%s', message) end
  if script.profiler.events == false then
    refuse(text, one.column, "'%s' has no events", script.name)
  end
  local target, depth = set.owner, 0
  local above = target
  while above do
    above, depth = above.parent, depth + 1
  end
  if depth > MAX_DEPTH then refuse(text, one.column, "'%s' is its own source", script.name) end
  for _, attr in ipairs(one.attrs) do
    if attr.name == 'period' or attr.name == 'freq' then
      refuse(text, attr.column, "set the sampling rate of '%s' with its options", script.name)
    end
  end

  local opt = parse(script, text, one, target.opt, target.run.opt)
  local source = instance.new(target.run, script, opt, target)
  local before = #set.list
  source.left = opt.exit_n
  source:open_event_options()
  local handlers, refusal = source:start()
  if handlers == nil and refusal then refuse(text, one.column, '%s: %s', script.name, tostring(refusal)) end
  source.checked = source:check(handlers)
  if #set.list == before then
    refuse(text, one.column, "'%s' has no events of its own; select some, as in '%s/-e EVENT/'", script.name, one.name)
  end
  self.list[#self.list + 1] = source
  local opened, attrs = {}, {}
  for i = before + 1, #set.list do
    local event = set.list[i]
    attrs[#attrs + 1] = event.attrs
    merge_attributes(set, event, one, source.is_gate and source.name or nil)
    event.attrs.cpus = event.attrs.cpus or (opt.cpus ~= target.opt.cpus and opt.cpus or nil)
    opened[#opened + 1] = event
  end
  source.opened, source.attrs = opened, attrs
  return opened
end

--- Applies the options of the sources to their events and to the ring buffers, which all events share.
---@param opt table options of the run
function Sources:apply_options(opt)
  for _, source in ipairs(self.list) do
    source:mark_events()
    opt.mmap_pages = math.max(opt.mmap_pages, source.opt.mmap_pages or 0)
    opt.watermark = math.min(opt.watermark, source.opt.watermark or 100)
  end
end

--- Ends a source after its -N events. Returns whether all events of the run are now closed.
---@param closed table<Event, boolean> those that were closed before
local function close(session, list, closed, source)
  local open = false
  source.closed = true
  for _, event in ipairs(list) do
    local owner = event.owner
    while owner and not owner.closed do
      owner = owner.parent
    end
    if owner and not closed[event] then
      closed[event] = true
      C.session_close_class(session, event.class)
    end
    open = open or not closed[event]
  end
  return not open
end

--- Returns the branches that count the events of sources with -N and drop those after the last one.
---@param session ffi.cdata*
---@param list Event[] all events of the run
---@param ended fun() called when all events are closed
---@return Branch[]
function sources.limits(session, list, ended)
  local branches, closed = {}, {}
  for i, event in ipairs(list) do
    local bound, tests, counts, owner = {}, {}, {}, event.owner
    while owner do
      if owner.left then
        local name, source = ('source_%d_%d'):format(i, #tests + 1), owner -- each close_NAME has its own source
        bound[name] = source
        bound['close_' .. name] = function()
          if close(session, list, closed, source) then ended() end
        end
        tests[#tests + 1] = name .. '.left == 0'
        counts[#counts + 1] = ('NAME.left = NAME.left - 1 if NAME.left == 0 then close_NAME() end'):gsub('NAME', name)
      end
      owner = owner.parent
    end
    if #tests > 0 then
      local code = ('if %s then %s else %s end'):format(table.concat(tests, ' or '), dispatch.reject 'limit',
        table.concat(counts, '\n'))
      branches[#branches + 1] = { class = event.class, code = code, bound = bound }
    end
  end
  return branches
end

return sources
