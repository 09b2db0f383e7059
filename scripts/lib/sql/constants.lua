-- SPDX-License-Identifier: GPL-2.0-only
--- Constants: what queries compare columns with, as a filter of the event. It holds for the same events: comparisons of
--- other fields, or with values that the field cannot have, are left to SQLite.
local ffi = require 'ffi'
local views = require 'bindings.view.views'

local C = ffi.C
local has = views.has
local constants = {}

local OPS = { ['='] = '==', ['<>'] = '!=', ['<'] = '<', ['<='] = '<=', ['>'] = '>', ['>='] = '>=' }
local MAX_PARTS = 16 -- of a filter, joined by ||
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

--- Returns the comparisons that all rows of a plan pass.
local function comparisons(tables, plan, columns)
  local constant, parts, i = ffi.new 'struct tables_constant', {}, 0
  while C.tables_constant(tables, plan, i, constant) do
    parts[#parts + 1] = comparison(columns[constant.column + 1], constant)
    i = i + 1
  end
  return parts
end

--- Returns whether all of some comparisons are among others: then what passes the others passes them.
local function are_among(some, others)
  local has_one = {}
  for _, part in ipairs(others) do has_one[part] = true end
  for _, part in ipairs(some) do
    if not has_one[part] then return false end
  end
  return true
end

--- Returns the filter that the rows of a table pass if any of its plans reads them; nil: none.
---@param tables ffi.cdata* struct tables *
---@param plans integer[] of all queries, of this table
---@param columns Column[]
---@return string?
function constants.filter(tables, plans, columns)
  local kept = {}
  for _, plan in ipairs(plans) do
    local own, others, is_implied = comparisons(tables, plan, columns), {}, false
    for _, other in ipairs(kept) do
      is_implied = is_implied or are_among(other, own)
      if not are_among(own, other) then others[#others + 1] = other end
    end
    if not is_implied then
      others[#others + 1] = own
      kept = others
    end
  end
  if #kept == 0 or #kept[1] == 0 or #kept > MAX_PARTS then return end
  for i, parts in ipairs(kept) do kept[i] = table.concat(parts, ' && ') end
  return #kept > 1 and '(' .. table.concat(kept, ') || (') .. ')' or kept[1]
end

return constants
