-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript new NAME -e EVENTS`: writes a script that counts these events by task and runs at once. Its comments
--- list the fields of the events of this kernel or recording.
local failure = require 'bindings.base.failure'
local instance = require 'bindings.run.instance'
local options = require 'bindings.options.parser'
local runs = require 'bindings.run.run'
local scripts = require 'bindings.options.scripts'
local sessions = require 'bindings.run.session'
local sys = require 'bindings.base.sys'
local views = require 'bindings.view.views'

local new_script = {}

local MAX_EVENTS = 8

--- Units of fields by a part of their name.
local UNITS = {
  { '^runtime$', 'ns' }, { '^vruntime$', 'ns' }, { '^delay$', 'ns' }, { 'latency', 'ns' }, { '_ns$', 'ns' },
  { '^bytes', 'bytes' }, { '^nr_sector', 'sectors of 512 bytes' }, { '^sector$', 'number of a sector of 512 bytes' },
  { '^prev_state$', 'bits of a state' },
  { '^oldstate$', 'TCP state, see lib.names' },
  { '^newstate$', 'TCP state, see lib.names' },
  { '^ret$', 'result; negative: an error, see lib.names' },
  { '^sig$', 'signal, see lib.names' }, { '^[sd]addr', 'IP address, see lib.names' },
}

--- Returns what the script gets from a field.
local function value_of(field)
  local unit
  for _, one in ipairs(UNITS) do
    if not unit and field.name:find(one[1]) then unit = one[2] end
  end
  if views.has(field, 'STRING') then return 'string' end
  if views.has(field, 'ARRAY') then
    local kind = views.has(field, 'DYNAMIC') and 'bytes' or ('array of %d'):format(field.count)
    return kind .. (unit and ': ' .. unit or '')
  end
  if field.type:find('*', 1, true) then return 'address: use lib.map for keys' end
  return unit or 'number'
end

local function fields_text(event)
  local lines, width = {}, 0
  for _, field in ipairs(event.list) do
    if not views.has(field, 'COMMON') then width = math.max(width, #field.name) end
  end
  local line = '      --   ev.%-' .. width .. 's  %s (%s)\n'
  for _, field in ipairs(event.list) do
    if not views.has(field, 'COMMON') then
      lines[#lines + 1] = line:format(field.name, value_of(field), field.type)
    end
  end
  return table.concat(lines)
end

local HEAD = [[
-- $NAME.lua
--   sudo profscript ./$NAME.lua -i 1s --top 5
local counter = require 'lib.counter'

return {
  summary = 'Count $EVENTS by task',

  -- Options of this script, which --help prints; opt.top is the value. -p, -i and the like need no declaration.
  options = {
    top = { type = 'integer', default = 10, min = 1, help = 'rows to print' },
  },

  start = function(opt, out)
    local count = counter.new { 'event', 'comm' }

    local function report()
      count:print(out, { limit = opt.top })
      count:clear()
    end

    -- All events have ev._time (ns since the start), ev._cpu, ev._pid, ev._tid, ev._comm, ev._event and, with -g,
    -- ev._stack. An event is valid in its handler; ev:keep() returns a copy that lasts.
    return {
]]
local HANDLER = [[
      -- $TEXT:
$FIELDS      [$KEY] = function(ev)
        count:add(1, '$ALIAS', ev._comm)
        -- out:print_event(ev)
      end,

]]
local TAIL = [[
      interval = report, -- at the end of each -i
      stop = report, -- at the end of the run
    }
  end,
}
]]

local function fill(text, values) return (text:gsub('%$(%u+)', values)) end

--- Returns the text of the script.
local function text_of(name, list)
  local names, parts = {}, {}
  for i, event in ipairs(list) do
    names[i] = event.name
    local filter = event.filter and ('/%s/'):format(event.filter) or ''
    parts[i] = fill(HANDLER, {
      TEXT = #event.list > 0 and 'the fields of ' .. event.name or event.name .. ' has no fields of its own',
      FIELDS = fields_text(event), KEY = ('%q'):format(event.name .. filter):gsub('^"(.*)"$', function(plain)
        return plain:find "'" and '"' .. plain .. '"' or "'" .. plain .. "'"
      end), ALIAS = event.alias,
    })
  end
  local stem = name:match '[^/]*$'
  return fill(HEAD, { NAME = stem, EVENTS = table.concat(names, ', ') }) .. table.concat(parts) .. TAIL
end

local function look_up(session, name, opt, texts)
  local nobody, found = { name = 'new', profiler = {} }, scripts.new(sys, arg.data_dir)
  local set = instance.new(runs.new(session, nobody, opt, {}, found), nobody, opt).set
  for i, text in ipairs(texts) do set:select(text, i) end
  if #set.list > MAX_EVENTS then
    failure.usage('new: %d events are too many for one script: select at most %d', #set.list, MAX_EVENTS)
  end
  return text_of(name, set.list)
end

--- Writes a new script.
---@param given string its name, or path, with or without ".lua"
---@param texts string[] the events, as -e takes them
---@param input? string recording with the events
---@return string? path of the script
---@return string? message if it cannot be written
function new_script.write(given, texts, input)
  local name = given:gsub('%.lua$', '')
  local path = name .. '.lua'
  if not name:match '[^/]*$':find '^[%w_-]+$' then
    return nil, ("'%s' is not a name: use letters, digits, _ and -"):format(given)
  end
  if #texts == 0 then return nil, "no events; select some with -e, such as -e sched:sched_switch" end
  if sys.stat(path) then return nil, path .. ' exists already' end
  local words = input and { '--input', input } or {}
  local opt = assert(options.parse(options.explain_spec, nil, words))
  local text = sessions.with(input, nil, look_up, name, opt, texts)
  local file, message = io.open(path, 'w')
  if not file then return nil, message end
  file:write(text)
  file:close()
  return path
end

return new_script
