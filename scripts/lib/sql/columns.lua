-- SPDX-License-Identifier: GPL-2.0-only
--- Columns: what the tables of events look like. The names are those of perf-prof.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local nearest = require 'bindings.base.nearest'
local views = require 'bindings.view.views'

local C = ffi.C
local has = views.has
local columns = {}

local SAMPLE = {
  { '_pid', C.COLUMN_PID }, { '_tid', C.COLUMN_TID }, { '_time', C.COLUMN_TIME }, { '_cpu', C.COLUMN_CPU },
  { '_period', C.COLUMN_PERIOD },
}
local IS_INTEGER = { [1] = true, [2] = true, [4] = true, [8] = true }
local TYPE_NAMES = { [tonumber(C.COLUMN_INTEGER)] = 'INTEGER', [tonumber(C.COLUMN_TEXT)] = 'TEXT',
  [tonumber(C.COLUMN_BLOB)] = 'BLOB' }

---@class Column
---@field name string
---@field kind integer enum column_kind
---@field type integer enum column_type
---@field field? Field

local function type_of(field)
  if has(field, 'STRING') then return C.COLUMN_TEXT end
  if has(field, 'ARRAY') or has(field, 'DYNAMIC') or not IS_INTEGER[field.size] then return C.COLUMN_BLOB end
  return C.COLUMN_INTEGER
end

--- Returns the columns of an event's table.
---@param event Event
---@param has_machines boolean events of other machines are taken, too
---@return Column[]
function columns.of(event, has_machines)
  local list, seen = {}, {}
  local function add(name, kind, type, field)
    local unique, n = name, 1
    while seen[unique:lower()] do -- SQL ignores case
      n = n + 1
      unique = name .. '_' .. n
    end
    seen[unique:lower()] = true
    list[#list + 1] = { name = unique, kind = tonumber(kind), type = tonumber(type), field = field }
  end
  for _, one in ipairs(SAMPLE) do add(one[1], one[2], C.COLUMN_INTEGER) end
  for _, field in ipairs(event.view.list) do
    if field.name ~= 'common_type' then add(field.name, C.COLUMN_FIELD, type_of(field), field) end
  end
  add('_comm', C.COLUMN_COMM, C.COLUMN_TEXT)
  if has_machines then add('_machine', C.COLUMN_MACHINE, C.COLUMN_INTEGER) end
  return list
end

--- Returns the column of the attribute index=.
---@param event Event
---@param list Column[]
---@return Column?
function columns.indexed(event, list)
  local name = event.attrs.index
  if not name then return end
  local names = {}
  for i, column in ipairs(list) do
    if column.name == name and column.type ~= tonumber(C.COLUMN_BLOB) then return column end
    names[i] = column.name
  end
  failure.usage("sql: %s has no integer or text '%s' for index=%s", event.name, name, nearest.hint(name, names))
end

--- Returns the columns that statements mention, and _time, by which rows are sorted.
---@param list Column[]
---@param sql string
---@return Column[]
function columns.mentioned(list, sql)
  local text, found = sql:lower():gsub('%(%s*%*%s*%)', ''), {} -- count(*)
  local has_all = text:find('*', 1, true) or text:find('natural', 1, true)
  for _, column in ipairs(list) do
    if has_all or column.name == '_time' or text:find(column.name:lower(), 1, true) then found[#found + 1] = column end
  end
  return found
end

--- Returns the definition of a column in SQL.
---@param column Column
---@param quoted fun(name: string): string
function columns.definition(column, quoted) return quoted(column.name) .. ' ' .. TYPE_NAMES[column.type] end

--- Adds the columns to a table.
---@param tables ffi.cdata* struct tables *
---@param table_number integer
---@param list Column[]
---@param indexed? Column
---@param tasks ffi.cdata* struct tasks *
function columns.add(tables, table_number, list, indexed, tasks)
  for _, column in ipairs(list) do
    local one, field = ffi.new 'struct column', column.field
    local name = ffi.new('char[?]', #column.name + 1, column.name)
    one.name, one.kind, one.type = name, column.kind, column.type
    one.has_index = column == indexed and 1 or 0
    if field then one.offset, one.size, one.flags = field.offset, field.size, field.flags end
    if column.kind == tonumber(C.COLUMN_COMM) then one.tasks = tasks end
    if C.tables_add_column(tables, table_number, one) < 0 then
      failure.raise('sql: the table of %s has too many columns', column.name)
    end
  end
end

return columns
