-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript [NAME] -e EVENT help`: prints command lines that use the events, the valid attributes, and the fields of
--- the events.
local declarations = require 'bindings.options.declare'
local events = require 'bindings.select.events'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local instance = require 'bindings.run.instance'
local nearest = require 'bindings.base.nearest'
local options = require 'bindings.options.parser'
local sampling = require 'bindings.view.sampling'
local selector = require 'bindings.select.selector'
local runs = require 'bindings.run.run'
local sessions = require 'bindings.run.session'
local shell = require 'bindings.base.shell'
local tables = require 'bindings.base.table'
local views = require 'bindings.view.views'

local C = ffi.C
local explain = {}

local WIDTH = 100
local PLACEHOLDERS = { expr = 'EXPR', string = 'TEXT', int = 'N', cpulist = 'LIST' }

--- Returns the syntax of an attribute: "stack", "key=EXPR", "max-stack[=N]".
---@param name string
---@return string
function explain.attribute(name)
  local attribute = selector.attributes[name]
  local value = PLACEHOLDERS[attribute.kind]
  if not value then return name end
  return attribute.optional and ('%s[=%s]'):format(name, value) or name .. '=' .. value
end

--- Returns the option as on the command line.
local function flag_of(option) return option.short and '-' .. option.short or '--' .. option.long end

--- Returns the rest of a command line after the events: the options of some groups, except those given, and arguments.
local function tail(spec, own, groups, given)
  local parts = {}
  for _, option in ipairs(spec.list) do
    local is_listed = groups[option.group] and option.name ~= 'key' and not option.stands_for
    if is_listed or (option.name == 'key' and own.key) then
      local argument = declarations.argument(option)
      local name = flag_of(option)
      local syntax = name .. (argument and ' ' .. argument or '')
      if option.optional_value ~= nil then syntax = ('--%s[=%s]'):format(option.long, argument) end
      if not (given and given[name]) then parts[#parts + 1] = option.required and syntax or '[' .. syntax .. ']' end
    end
  end
  for _, option in ipairs(spec.positional) do
    local argument = declarations.argument(option)
    parts[#parts + 1] = option.required and argument or '[' .. argument .. ']'
  end
  return parts
end

--- Joins the parts of a command line, broken into lines.
---@return string lines, each with its newline
local function wrap(parts)
  local lines, line = {}, ' '
  for _, part in ipairs(parts) do
    if #line + 1 + #part > WIDTH and line:find '%S' then
      lines[#lines + 1] = line
      line = '     '
    end
    line = line .. ' ' .. part
  end
  lines[#lines + 1] = line
  return table.concat(lines, '\n') .. '\n'
end

---@class GivenEvents
---@field option string as on the command line: '-e', '--alloc'
---@field text string the selectors

--- Returns the event selectors that the user has given.
---@param spec opt.Spec
---@param opt table parsed options
---@return GivenEvents[]
function explain.given(spec, opt)
  local given = {}
  for _, option in ipairs(spec.list) do
    local texts = option.type == 'event' and opt[option.name]
    for _, text in ipairs(type(texts) == 'table' and texts or { texts or nil }) do
      given[#given + 1] = { option = flag_of(option), text = text }
    end
  end
  return given
end

--- Returns the command line of one profiler.
---@param script scripts.Script
---@param given GivenEvents[]
---@return string lines, each with its newline
function explain.command(script, given)
  local parts, used = { 'profscript', script.name }, {}
  for _, one in ipairs(given) do
    parts[#parts + 1] = one.option .. ' ' .. shell.quote(one.text)
    used[one.option] = true
  end
  for _, part in ipairs(tail(script.spec, events.known_attributes(script.profiler), { script = true }, used)) do
    parts[#parts + 1] = part
  end
  return wrap(parts)
end

--- Describes a profiler as a source: its summary, options and events.
---@param source Instance
---@return string lines, each with its newline
function explain.source(source)
  local script, names = source.script, {}
  for i, event in ipairs(source:events()) do
    names[i] = event.name
  end
  local parts = tail(script.spec, {}, { script = true, event = true })
  parts[#parts + 1] = "[-N N]/ATTRIBUTE/.../'"
  parts[1] = ("-e '%s/%s"):format(source.name, parts[1])
  return ('\n%s, a profiler as an event source: %s\n%s      events: %s\n'):format(source.name,
    script.profiler.summary, wrap(parts), table.concat(names, ', '))
end

--- Returns the attributes that a profiler reads, sorted.
---@param profiler { attributes?: string[] }
---@return string[] own
---@return string[] common
function explain.attributes(profiler)
  local own, common = {}, {}
  for _, name in ipairs(profiler.attributes or {}) do
    if not selector.attributes[name].common then own[#own + 1] = name end
  end
  for name, attribute in pairs(selector.attributes) do
    if attribute.common then common[#common + 1] = name end
  end
  table.sort(own)
  table.sort(common)
  return own, common
end

local function fields_table(format)
  return tables.new('fields', {
    { name = 'event', show = format ~= 'text' },
    { name = 'field', align = 'left' },
    { name = 'type', align = 'left' },
    { name = 'offset', align = 'right' },
    { name = 'size', align = 'right' },
    { name = 'what', align = 'left' },
  }, { stamp = false })
end

--- Returns the rows of one event's fields, its own before the common ones.
---@param event Event
---@return table[]
function explain.rows(event)
  local rows = {}
  for _, is_common in ipairs { false, true } do
    for _, field in ipairs(event.list) do
      if views.has(field, 'COMMON') == is_common then
        rows[#rows + 1] = {
          event = event.name,
          field = field.name,
          type = field.type,
          offset = field.offset,
          size = field.size,
          what = views.kind(field),
        }
      end
    end
  end
  return rows
end

local function print_event(out, event, print_fmt)
  if event.tracepoint then
    out:printf('\n%s: id %d\n', event.name, tonumber(event.request.attr.config))
  else
    out:printf('\n%s: type %d, config %s, %s%s\n', event.name, event.request.attr.type,
      tostring(event.request.attr.config):gsub('U?LL$', ''),
      sampling.describe(event), #event.list == 0 and '; it has no fields of its own' or '')
  end
  if #event.list == 0 then return end
  out:table(fields_table(out.format), explain.rows(event))
  if print_fmt then out:printf('print format: %s\n', print_fmt) end
end

local function print_attribute_help(out, names, intro)
  if #names == 0 then return end
  out:printf('\n%s\n', intro)
  for _, name in ipairs(names) do
    out:printf('  %-16s %s\n', explain.attribute(name), selector.attributes[name].help)
  end
end

--- Prints the help.
---@param out Output
---@param list scripts.Script[] the profilers to explain
---@param given GivenEvents[]
---@param found { event: Event, print_fmt: string }[]
---@param sources? Instance[] the profilers among the selectors
function explain.print(out, list, given, found, sources)
  local used = {}
  for i, script in ipairs(list) do
    if i > 1 then out:write '\n' end
    out:printf('%s: %s\n', script.name, script.profiler.summary)
    out:write(explain.command(script, given))
    local own = explain.attributes(script.profiler)
    local syntax = {}
    for j, name in ipairs(own) do
      syntax[j], used[name] = explain.attribute(name), true
    end
    if #own > 0 then out:printf('      attributes: %s\n', table.concat(syntax, ' ')) end
  end
  for _, source in ipairs(sources or {}) do
    out:write(explain.source(source))
  end
  local own = {}
  for name in pairs(used) do
    own[#own + 1] = name
  end
  table.sort(own)
  local _, common = explain.attributes {}
  local whose = #list == 1 and list[1].name or 'some profilers'
  local title = ('attributes of %s, after the filter: EVENT/FILTER/key=pid/'):format(whose)
  print_attribute_help(out, own, title)
  print_attribute_help(out, common, #own > 0 and 'attributes of all profilers'
    or 'attributes, after the filter: EVENT/FILTER/alias=wakeup/')
  out:printf('\nmembers of every event: %s\n', table.concat(views.SAMPLE_WORDS, ' '))
  local seen = {}
  for _, one in ipairs(found) do
    if not seen[one.event.name] then
      seen[one.event.name] = true
      print_event(out, one.event, one.print_fmt)
    end
  end
end

--- Returns whether a profiler reads all attributes given by the user.
local function takes(script, found)
  local option = script.spec.long.event
  if not option or option.type ~= 'event' then return false end
  local known = events.known_attributes(script.profiler)
  for _, event in ipairs(found) do
    for name in pairs(event.attrs) do
      if not known[name] then return false end
    end
  end
  return true
end

local function look_up(session, script, scripts, opt)
  local anything = { name = 'profscript', profiler = { attributes = nearest.keys(selector.attributes) } }
  local run = runs.new(session, script or anything, opt, {}, scripts)
  local set = instance.new(run, script or anything, opt).set
  local found, given = {}, explain.given(script and script.spec or options.explain_spec(), opt)
  for _, one in ipairs(given) do set:select(one.text) end
  for i, event in ipairs(set.list) do
    local tp = event.tracepoint
    found[i] = { event = event, print_fmt = event.print_fmt or tp and ffi.string(C.tracepoint_print_fmt(tp)) }
  end
  local list = script and { script } or {}
  for _, one in ipairs(script and {} or scripts:load_all()) do
    if takes(one, set.list) then list[#list + 1] = one end
  end
  explain.print(run.out, list, given, found, set.sources.list)
  local ok, message = run.out:flush()
  if not ok and message ~= 'EPIPE' then failure.raise('%s', message) end
  return 0
end

--- Looks the events up and prints the help.
---@param script? scripts.Script the profiler to explain; nil: all profilers that take the events
---@param scripts scripts.Scripts all profilers
---@param opt table parsed options
---@return integer exit code
function explain.run(script, scripts, opt)
  return sessions.with(opt, look_up, script, scripts, opt)
end

return explain
