-- SPDX-License-Identifier: GPL-2.0-only
--- Metrics in the text format of Prometheus, version 0.0.4.
local units = require 'bindings.base.units'

local prometheus = { TYPE = 'text/plain; version=0.0.4; charset=utf-8' }

local function number(value)
  if value == math.huge then return '+Inf' end
  if value == -math.huge then return '-Inf' end
  return units.number(value)
end

local function put_histogram(lines, family, series)
  local prefix = series.key == '' and '' or series.key .. ','
  local sum = 0
  for i, bound in ipairs(family.bounds) do
    sum = sum + series.counts[i]
    lines[#lines + 1] = ('%s_bucket{%sle="%s"} %s\n'):format(family.name, prefix, number(bound), number(sum))
  end
  lines[#lines + 1] = ('%s_bucket{%sle="+Inf"} %s\n'):format(family.name, prefix, number(series.count))
  local labels = series.key == '' and '' or '{' .. series.key .. '}'
  lines[#lines + 1] = ('%s_sum%s %s\n'):format(family.name, labels, number(series.sum / family.divisor))
  lines[#lines + 1] = ('%s_count%s %s\n'):format(family.name, labels, number(series.count))
end

--- Returns all metrics.
---@param registry Registry
---@return string
function prometheus.text(registry)
  local lines = {}
  for _, family in ipairs(registry.families) do
    local list = registry.valid(family)
    if #list > 0 then
      lines[#lines + 1] = ('# HELP %s %s\n# TYPE %s %s\n'):format(family.name,
        family.help:gsub('\\', '\\\\'):gsub('\n', ' '), family.name, family.type)
    end
    for _, series in ipairs(list) do
      if family.type == 'histogram' then
        put_histogram(lines, family, series)
      else
        lines[#lines + 1] = ('%s%s %s\n'):format(family.name, series.key == '' and '' or '{' .. series.key .. '}',
          number(series.value / family.divisor))
      end
    end
  end
  return table.concat(lines)
end

return prometheus
