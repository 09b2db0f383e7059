-- SPDX-License-Identifier: GPL-2.0-only
--- Constants: what queries compare columns with, as a filter of the event. It holds for the same events: comparisons of
--- other fields, or with values that the field cannot have, are left to SQLite.
local ffi = require 'ffi'
local views = require 'bindings.view.views'

local C = ffi.C
local has = views.has
local constants = {}

local OPS = { ['='] = '==', ['<>'] = '!=', ['<'] = '<', ['<='] = '<=', ['>'] = '>', ['>='] = '>=' }
local INTEGER, TEXT = tonumber(C.COLUMN_INTEGER), tonumber(C.COLUMN_TEXT)

--- Returns whether a field can have a value, so that C and SQL compare alike.
local function is_in_range(field, value)
  local bits = 8 * field.size
  if has(field, 'SIGNED') then return bits == 64 or value >= -2 ^ (bits - 1) and value < 2 ^ (bits - 1) end
  return bits < 64 and value >= 0 and value < 2 ^ bits
end

--- Returns a comparison in the language of filters; nil if it would not be the same.
local function comparison(column, constant)
  local field, op = column.field, OPS[ffi.string(constant.op)]
  if not field or field.name:match '^common_' then return end
  if column.type == INTEGER then
    local value = tonumber(constant.integer)
    if math.abs(value) >= 2 ^ 53 or not is_in_range(field, value) then return end
    return ('%s %s %d'):format(field.name, op, value)
  elseif column.type == TEXT and not has(field, 'DYNAMIC') and (op == '==' or op == '!=') then
    local text = ffi.string(constant.text)
    -- Filters of the kernel take * and ? as wildcards.
    if not text:match '^[%w_./:-]+$' or #text >= field.size then return end
    return ('%s %s "%s"'):format(field.name, op, text)
  end
end

--- Returns the filter that the rows of a table must pass in all queries; nil: none.
---@param tables ffi.cdata* struct tables *
---@param number integer of the table
---@param columns Column[]
---@return string?
function constants.filter(tables, number, columns)
  local constant, parts, i = ffi.new 'struct tables_constant', {}, 0
  while C.tables_constant(tables, number, i, constant) do
    parts[#parts + 1] = comparison(columns[constant.column + 1], constant)
    i = i + 1
  end
  return #parts > 0 and table.concat(parts, ' && ') or nil
end

return constants
