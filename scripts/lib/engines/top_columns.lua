-- SPDX-License-Identifier: GPL-2.0-only
--- The keys and columns of top: of the combinations of key=, comm=, top-by=, top-add= and top-variance= that events
--- may have.
local units = require 'lib.units'

local top_columns = {}

local KINDS = { ['top-by'] = true, ['top-add'] = true, ['top-variance'] = true } -- attributes that add a column

--- Returns true and the first events with a key and with comm=; nil and a message if they do not fit together.
---@param list Event[]
---@param opt table key and only_comm
---@param out Output
---@return boolean? ok
---@return Event|string? keyed or the message
---@return Event? named
function top_columns.check(list, opt, out)
  local keyed, named
  for _, event in ipairs(list) do
    keyed = keyed or (event.attrs.key or opt.key) and event
    named = named or event.attrs.comm and event
  end
  local key = keyed and (keyed.attrs.key or opt.key)
  for _, event in ipairs(list) do
    if keyed and not (event.attrs.key or opt.key) and not key:match '[pt]id$' then
      out:warn(('top: %s has no key= and is counted by thread, but %s by %s'):format(event.name, keyed.name, key))
    end
    if opt.only_comm and (keyed or named) and not event.attrs.comm then
      return nil, ('--only-comm: %s has no comm='):format(event.name)
    end
  end
  if opt.only_comm and keyed and not named then return nil, '--only-comm: no event has comm=' end
  return true, keyed, named
end

--- Returns the columns of values, in the order of the command line, and for each event its columns.
---@param list Event[]
---@return { at: integer, title: string, value?: string, first: boolean, is_variance?: boolean }[] columns
---@return table<Event, table[]> of_event
function top_columns.values(list)
  local columns, added = {}, {}
  local function add(event, text, is_first, is_variance)
    local title = #added[event] == 0 and event.attrs.alias or text or event.alias
    if is_variance then title = ('var(%s)'):format(title) end
    columns[#columns + 1] = { at = #columns, title = title:upper(), value = text, first = is_first,
      is_variance = is_variance }
    table.insert(added[event], columns[#columns])
  end
  for _, event in ipairs(list) do
    added[event] = {}
    for _, attr in ipairs(event.given) do
      if KINDS[attr.name] then add(event, attr.value, attr.name ~= 'top-add', attr.name == 'top-variance') end
    end
    if #added[event] == 0 then add(event, nil, false) end
  end
  return columns, added
end

--- Returns a unique name for a column, for JSON and CSV.
local function unique(names, wanted)
  local name, n = wanted:lower(), 1
  while names[name] or name == 'table' or name == 'time' do
    n = n + 1
    name = ('%s#%d'):format(wanted:lower(), n)
  end
  names[name] = true
  return name
end

--- Returns the columns of the table, whose values get names, and the names of the columns of the key and of the comm.
---@param columns table[] of top_columns.values()
---@param keyed? Event of top_columns.check()
---@param named? Event
---@param opt table
---@return TableColumn[] shown
---@return string key_name
---@return string comm_name
function top_columns.shown(columns, keyed, named, opt)
  local comm_title = named and named.attrs.comm or 'comm'
  local key_text, taken = keyed and (keyed.attrs.key or opt.key) or 'pid', {}
  local key_name, comm_name = unique(taken, key_text), unique(taken, comm_title)
  local shown = {
    { name = key_name, title = key_text:upper(), width = 8, align = 'right', show = not opt.only_comm,
      metric = 'label' },
  }
  for i, column in ipairs(columns) do
    column.name = unique(taken, column.title)
    shown[i + 1] = { name = column.name, title = column.title, width = math.max(12, #column.title), align = 'right',
      metric = column.is_variance and 'gauge' or 'counter',
      unit = not column.is_variance and column.value and units.of_field(column.value) or nil }
  end
  shown[#shown + 1] = {
    name = comm_name, title = comm_title:upper(), align = 'left', show = opt.only_comm or not keyed or named ~= nil,
  }
  return shown, key_name, comm_name
end

--- Returns the names of the columns to sort by: those of top-by= and top-variance=, then the others.
---@param columns table[] of top_columns.values()
---@return string[]
function top_columns.order(columns)
  local order = {}
  for _, first in ipairs { true, false } do
    for _, column in ipairs(columns) do
      if column.first == first then order[#order + 1] = column.name end
    end
  end
  return order
end

return top_columns
