-- SPDX-License-Identifier: GPL-2.0-only
--- Profilers as sources of events of others: `-e 'PROFILER/OPTIONS/ATTRIBUTE/'`. A source is started
--- as on a command line of its own, but only to learn its events and how it prints one: they are
--- opened with the others and are of the same stream; the source's handlers and tables do not run.
local ffi = require 'ffi'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local declarations = require 'bindings.options.declare'
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

local MAX_DEPTH = 8 -- of sources within sources: a script may name itself

---@param found scripts.Scripts
---@return Sources
function sources.new(found)
  return setmetatable({ found = found, list = {} }, Sources)
end

--- The profilers there are, by all of their names: not each is a source.
---@return table<string, string>
function Sources:paths()
  self.known = self.known or self.found:names()
  return self.known
end

local function refuse(text, column, ...)
  failure.usage('%s', selector.caret(diagnostic.new('event', text, column, (...):format(select(2, ...)))))
end

--- Parses the source's options, which are the text between its first two slashes.
---@param script scripts.Script
---@param text string the whole -e
---@param one Selector
---@param base table options of the profiler that the source is for
---@return table opt
local function parse(script, text, one, base)
  local words, columns, unclosed = shell.split(one.filter or '')
  local first = one.filter_column or one.column
  if unclosed then refuse(text, first + unclosed - 1, 'unclosed quote') end
  local opt, rest, given = options.parse_words(script.spec, words, base)
  if not opt then refuse(text, first + (columns[given or 1] or 1) - 1, '%s: %s', script.name, rest) end
  if rest[1] or opt.explain then
    local at = #words - #rest + 1
    refuse(text, first + (columns[opt.explain and 1 or at] or 1) - 1, "%s: a source takes options only, not '%s'",
      script.name, rest[1] or 'help')
  end
  for _, name in ipairs(declarations.OF_THE_RUN) do
    if given[name] then
      refuse(text, first, '%s: --%s is not for a source: it is that of the whole run', script.name,
        (name:gsub('_', '-')))
    end
    opt[name] = base[name]
  end
  opt.cpus = opt.cpus or base.cpus
  return opt
end

--- Whether the events are context, not what the profiler is asked about: pairing them takes a key.
local function is_untraced(set, attrs)
  return set.attributes.untraced and not (attrs.key or attrs.role)
end

--- The attributes of the source's own events that hold for everybody, and those of the source.
local function merge_attributes(set, event, one)
  local attrs = {}
  for name, value in pairs(event.attrs) do
    if selector.attributes[name].common then attrs[name] = value end
  end
  for _, attr in ipairs(one.attrs) do
    attrs[attr.name] = attr.value
  end
  if is_untraced(set, attrs) then attrs.untraced = true end
  event.attrs, event.given = attrs, one.attrs
  event.alias = attrs.alias or event.alias
end

--- Opens a profiler as a source.
---@param set table the events of the profiler that it is for
---@param text string the whole -e
---@param one Selector
---@param group integer
---@return Event[]
function Sources:open(set, text, one, group)
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
      refuse(text, attr.column, "how often '%s' samples is said by its options", script.name)
    end
  end

  local opt = parse(script, text, one, target.opt)
  local source = instance.new(target.run, script, opt, target)
  local before = #set.list
  source.left = opt.exit_n
  source:open_event_options()
  local handlers, refusal = source:start()
  if handlers == nil and refusal then refuse(text, one.column, '%s: %s', script.name, tostring(refusal)) end
  source:check(handlers)
  if #set.list == before then
    refuse(text, one.column, "'%s' has no events of its own: name some, as in '%s/-e EVENT/'", script.name, one.name)
  end
  self.list[#self.list + 1] = source
  local opened = {}
  for i = before + 1, #set.list do
    local event = set.list[i]
    merge_attributes(set, event, one)
    event.attrs.cpus = event.attrs.cpus or (opt.cpus ~= target.opt.cpus and opt.cpus or nil)
    event.group = group
    opened[#opened + 1] = event
  end
  return opened
end

--- Has the options of the sources take effect on their events, and on the rings, which all share.
---@param opt table of the run
function Sources:apply_options(opt)
  for _, source in ipairs(self.list) do
    source:mark_events()
    opt.mmap_pages = math.max(opt.mmap_pages, source.opt.mmap_pages or 0)
    opt.watermark = math.min(opt.watermark, source.opt.watermark or 100)
  end
end

--- Ends a source that has had its -N events; true when no event of the run is left.
local function close(session, list, source)
  local open = false
  source.closed = true
  for _, event in ipairs(list) do
    local owner = event.owner
    while owner and not owner.closed do
      owner = owner.parent
    end
    if owner and not event.closed then
      event.closed = true
      C.session_close_class(session, event.class)
    end
    open = open or not event.closed
  end
  return not open
end

--- Branches that count the events of the sources with -N, and filter out those after the last one. ended()
--- is called when no event is left.
---@param session ffi.cdata*
---@param list Event[] of the run
---@param ended fun()
---@return Branch[]
function sources.limits(session, list, ended)
  local branches = {}
  for i, event in ipairs(list) do
    local bound, tests, counts, owner = {}, {}, {}, event.owner
    while owner do
      if owner.left then
        local name, source = ('source_%d_%d'):format(i, #tests + 1), owner -- each close_NAME has its own source
        bound[name] = source
        bound['close_' .. name] = function()
          if close(session, list, source) then ended() end
        end
        tests[#tests + 1] = name .. '.left == 0'
        counts[#counts + 1] = ('NAME.left = NAME.left - 1 if NAME.left == 0 then close_NAME() end'):gsub('NAME', name)
      end
      owner = owner.parent
    end
    if #tests > 0 then
      local code = ('if %s then e.class = %d else %s end'):format(table.concat(tests, ' or '), C.EVENT_FILTERED,
        table.concat(counts, '\n'))
      branches[#branches + 1] = { class = event.class, code = code, bound = bound }
    end
  end
  return branches
end

return sources
