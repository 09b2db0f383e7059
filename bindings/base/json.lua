-- SPDX-License-Identifier: GPL-2.0-only
--- Encodes values as JSON.
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local json = {}

local MAX_EXACT = 2 ^ 53 -- integers above it are no longer exact as a double

--- Encodes a value. 64-bit integers from 2^53 on are strings: most readers of JSON round numbers to a double.
--- Infinities and NaN become null.
---@param value any
---@return string
function json.value(value)
  local kind = type(value)
  if kind == 'string' then return text.json(value) end
  if kind == 'number' then return math.abs(value) < math.huge and units.number(value) or 'null' end
  local rounded = kind == 'cdata' and tonumber(value)
  if rounded then return math.abs(rounded) < MAX_EXACT and units.number(value) or '"' .. units.number(value) .. '"' end
  if kind == 'boolean' then return tostring(value) end
  if kind == 'nil' then return 'null' end
  if kind ~= 'table' then return text.json(tostring(value)) end
  local parts = {}
  for i, item in ipairs(value) do parts[i] = json.value(item) end
  return '[' .. table.concat(parts, ',') .. ']'
end

--- Returns an object with the members of a list of { name, encoded value }.
---@param members string[][]
---@return string
function json.object(members)
  local parts = {}
  for i, member in ipairs(members) do parts[i] = text.json(member[1]) .. ':' .. member[2] end
  return '{' .. table.concat(parts, ',') .. '}'
end

return json
