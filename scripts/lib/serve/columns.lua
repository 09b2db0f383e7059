-- SPDX-License-Identifier: GPL-2.0-only
--- What the columns of a table are as metrics: labels, counters, gauges or histograms, with the names and units that
--- Prometheus asks for. A column says so itself (`metric`), or its values and its name tell.
local units = require 'bindings.base.units'

local columns = {}

-- Numbers that tell what a row is about.
local IDS = {}
for name in ('pid tid tgid ppid cpu node key thread instance id nr fd port sport dport sector prio priority gen level '
  .. 'device signal sig line'):gmatch '%S+' do IDS[name] = true end

local NS = 1e9 -- in a second

-- What the exposition format reserves.
local RESERVED_LABELS = { le = true, quantile = true }
local RESERVED_ENDINGS = { '_total', '_count', '_sum', '_bucket', '_info', '_created' }

--- A column as a part of metrics.
---@class MetricColumn
---@field field string of the rows
---@field title string heading of the column in text
---@field kind 'label'|'counter'|'gauge'|'histogram'|'none'
---@field label? string its name as a label
---@field name? string of the metric
---@field unit? 'seconds'|'bytes'|'ratio'
---@field divisor? number of the values
---@field help? string
---@field factor? number of the values of a histogram that are numbers of other units than its buckets
---@field adds_up? boolean rows of a report with the same labels
---@field of_histogram? boolean the row's histogram says the same

--- Returns a name made of the characters that names may have.
local function word(text)
  local clean = text:gsub('[^%w]+', '_'):gsub('^_+', ''):gsub('_+$', ''):lower()
  return clean == '' and 'value' or clean:match '^%d' and '_' .. clean or clean
end

--- Returns the name without its unit, the base unit and the divisor.
local function unit_of(column)
  local unit, rest = units.of(column)
  if column.unit then -- which its name may say, too
    local said, without = units.of { name = column.name }
    rest = said == unit and without or nil
  end
  local known = units.get(unit)
  if not known or not known.base then return word(column.name), nil, 1 end
  return rest == '' and '' or word(rest or column.name), known.base, known.divisor
end

--- Returns the beginning of the names of a table's metrics.
local function prefix_of(profiler, table_name)
  local script, name = word(profiler), word(table_name)
  if name == script or name == 'row' then return 'profscript_' .. script end
  if name:sub(1, #script + 1) == script .. '_' then return 'profscript_' .. name end
  return ('profscript_%s_%s'):format(script, name)
end

local function name_of(prefix, column, kind)
  local base, unit, divisor = unit_of(column)
  local name = prefix
  -- "value" says nothing, nor does "total" of seconds, and the table's name may say it already.
  local is_said = kind == 'histogram' and base == 'value' or kind == 'counter' and unit and base == 'total'
    or prefix:sub(-#base - 1) == '_' .. base
  if base ~= '' and not is_said then name = name .. '_' .. base end
  if unit and name:sub(-#unit - 1) ~= '_' .. unit then name = name .. '_' .. unit end
  if kind == 'counter' then
    name = name:gsub('_total$', '') .. '_total'
  else
    for _, ending in ipairs(RESERVED_ENDINGS) do
      if name:sub(-#ending) == ending then return name .. '_value', unit, divisor end
    end
  end
  return name, unit, divisor
end

--- Returns the kind of a column that does not say it; nil if all of its values are nil.
local function kind_of(name, rows)
  for _, row in ipairs(rows) do
    local value = row[name]
    if type(value) == 'table' then return 'none' end
    if type(value) == 'string' or type(value) == 'boolean' then return 'label' end
    if value ~= nil then return IDS[name:lower():match '([^_]*)$'] and 'label' or 'gauge' end
  end
end

local function is_number(name, rows)
  for _, row in ipairs(rows) do
    if row[name] ~= nil then return type(row[name]) == 'number' end
  end
  return false
end

local HELP = {
  counter = "%s of %s's table %s, added up since the start.",
  gauge = "%s of %s's table %s, in its last report.",
  histogram = "%s of %s's table %s, since the start.",
}

--- Returns a column as a part of metrics; nil while nothing tells what it is.
---@param profiler string
---@param spec TableSpec
---@param column TableColumn
---@param rows table[]
---@return MetricColumn?
function columns.of(profiler, spec, column, rows)
  local kind = column.metric or kind_of(column.name, rows)
  if not kind then return end
  local one = { field = column.name, title = column.title or column.name, kind = kind }
  if kind == 'label' then
    one.label = word(column.name)
    if RESERVED_LABELS[one.label] then one.label = one.label .. '_' end
  elseif kind ~= 'none' then
    one.name, one.unit, one.divisor = name_of(prefix_of(profiler, spec.name), column, kind)
    one.help = HELP[kind]:format(column.name, profiler, spec.name)
    -- The buckets of times are those of ns. Only a Hist has its own, which cannot be changed.
    if kind == 'histogram' and one.unit == 'seconds' and is_number(column.name, rows) then
      one.factor, one.divisor = NS / one.divisor, NS
    end
    one.of_histogram, one.adds_up = column.of_histogram, column.adds_up
  end
  return one
end

return columns
