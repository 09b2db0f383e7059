-- SPDX-License-Identifier: GPL-2.0-only
--- New scripts (profscript new): a script that counts some events by task and runs at once. Its comments list the
--- fields of the events of this kernel or recording.
local event_fields = require 'lib.engines.event_fields'
local fs = require 'lib.fs'
local invocation = require 'lib.command.invocation'
local stubs = require 'lib.engines.stubs'

local new_script = {}

local MAX_EVENTS = 8

local HEAD = [[
-- $NAME.lua
--   sudo profscript ./$NAME.lua -i 1s --top 5
local counter = require 'lib.counter'

---@type Profiler
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
    ---@type Handlers
    return {
]]
local HANDLER = [[
      -- $TEXT:
$FIELDS$PARAM      [$KEY] = function(ev)
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

--- Returns what the script gets from a field.
local function value_of(event, field)
  local unit = field.unit
  if field.kind == 'array' or field.kind == 'bytes' then
    local what = field.kind == 'array' and ('array of %d'):format(field.count) or 'bytes'
    return what .. (unit and ': ' .. unit or '')
  end
  if field.kind == 'address' and event.name:find '^syscalls:' and field.type:find 'char%s*%*' then
    return ("address: ev:string '%s' is the text"):format(field.name)
  end
  if field.kind == 'address' then return 'address: use lib.map for keys' end
  return field.kind == 'number' and unit or field.kind
end

local function fields_text(event)
  local lines, width = {}, 0
  for _, field in ipairs(event.fields) do width = math.max(width, #field.name) end
  local line = '      --   ev.%-' .. width .. 's  %s (%s)\n'
  for i, field in ipairs(event.fields) do lines[i] = line:format(field.name, value_of(event, field), field.type) end
  return table.concat(lines)
end

local function quoted(text) return text:find "'" and ('%q'):format(text) or "'" .. text .. "'" end

--- Returns the text of the script.
local function text_of(name, events)
  local names, parts = {}, {}
  for i, event in ipairs(events) do
    names[i] = event.name
    parts[i] = fill(HANDLER, {
      TEXT = #event.fields > 0 and 'the fields of ' .. event.name or event.name .. ' has no fields of its own',
      FIELDS = fields_text(event),
      PARAM = event.filter and ('      ---@param ev %s\n'):format(stubs.class(event.name)) or '',
      KEY = quoted(event.name .. (event.filter and ('/%s/'):format(event.filter) or '')),
      ALIAS = event.alias,
    })
  end
  local values = { NAME = name:match '[^/]*$', EVENTS = table.concat(names, ', ') }
  return fill(HEAD, values) .. table.concat(parts) .. TAIL
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
  if fs.exists(path) then return nil, path .. ' exists already' end
  local text = text_of(name, event_fields.of(texts, { name = 'new', max = MAX_EVENTS, input = input }))
  local file, message = io.open(path, 'w')
  if not file then return nil, message end
  file:write(text)
  file:close()
  return path
end

--- Returns the command that runs a script.
---@param path string
---@return string
function new_script.command(path)
  return ('%s %s -i 1s'):format(invocation.tracing(), path:find '/' and path or './' .. path)
end

return new_script
