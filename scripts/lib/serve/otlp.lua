-- SPDX-License-Identifier: GPL-2.0-only
--- Metrics as OTLP: the message ExportMetricsServiceRequest of opentelemetry-proto 1.x.
local ffi = require 'ffi'

local C = ffi.C
local otlp = { TYPE = 'application/x-protobuf' }

local CUMULATIVE = 2
local UNITS = { seconds = 's', bytes = 'By', ratio = '1' }

local function put_text(b, field, text) C.proto_text(b, field, text, #text) end

--- Writes KeyValue { key = 1, value = 2 { string_value = 1 } }.
local function put_attribute(b, field, name, value)
  local at = C.proto_open(b, field)
  put_text(b, 1, name)
  local inner = C.proto_open(b, 2)
  put_text(b, 1, value)
  C.proto_close(b, inner)
  C.proto_close(b, at)
end

local function ns(seconds) return ffi.cast('uint64_t', math.floor(seconds * 1e6)) * 1000 end

local function put_times(b, series, time)
  C.proto_fixed64(b, 2, ns(series.since))
  C.proto_fixed64(b, 3, ns(time))
end

local function put_packed(b, field, values, size)
  local at = C.proto_open(b, field)
  C.bytes_put(b, values, size)
  C.proto_close(b, at)
end

local function put_number(b, family, series, time)
  local at = C.proto_open(b, 1) -- NumberDataPoint
  put_times(b, series, time)
  C.proto_double(b, 4, series.value / family.divisor)
  for _, label in ipairs(series.labels) do put_attribute(b, 7, label[1], label[2]) end
  C.proto_close(b, at)
end

local function put_histogram(b, family, series, time)
  local n = #family.bounds
  local counts, bounds = ffi.new('uint64_t[?]', n + 1), ffi.new('double[?]', n)
  for i = 1, n + 1 do counts[i - 1] = series.counts[i] end
  for i = 1, n do bounds[i - 1] = family.bounds[i] end
  local at = C.proto_open(b, 1) -- HistogramDataPoint
  put_times(b, series, time)
  C.proto_fixed64(b, 4, series.count)
  C.proto_double(b, 5, series.sum / family.divisor)
  put_packed(b, 6, counts, 8 * (n + 1))
  put_packed(b, 7, bounds, 8 * n)
  for _, label in ipairs(series.labels) do put_attribute(b, 9, label[1], label[2]) end
  C.proto_close(b, at)
end

local KIND_FIELD = { gauge = 5, counter = 7, histogram = 9 }

local function put_metric(b, family, list, time)
  local at = C.proto_open(b, 2)
  put_text(b, 1, family.name)
  put_text(b, 2, family.help)
  put_text(b, 3, UNITS[family.unit] or '1')
  local data = C.proto_open(b, KIND_FIELD[family.type])
  for _, series in ipairs(list) do
    local put = family.type == 'histogram' and put_histogram or put_number
    put(b, family, series, time)
  end
  if family.type ~= 'gauge' then C.proto_uint(b, 2, CUMULATIVE) end
  if family.type == 'counter' then C.proto_uint(b, 3, 1) end -- it is monotonic
  C.proto_close(b, data)
  C.proto_close(b, at)
end

--- Writes all metrics.
---@param b ffi.cdata* struct bytes *
---@param registry Registry
---@param time number seconds since the epoch
---@param resource { [1]: string, [2]: string }[] attributes of the sender
---@param version string
function otlp.put(b, registry, time, resource, version)
  local all = C.proto_open(b, 1) -- ResourceMetrics
  local at = C.proto_open(b, 1)
  for _, attribute in ipairs(resource) do put_attribute(b, 1, attribute[1], attribute[2]) end
  C.proto_close(b, at)
  local of_scope = C.proto_open(b, 2) -- ScopeMetrics
  at = C.proto_open(b, 1)
  put_text(b, 1, 'profscript')
  put_text(b, 2, version)
  C.proto_close(b, at)
  for _, family in ipairs(registry.families) do
    local list = registry.valid(family)
    if #list > 0 then put_metric(b, family, list, time) end
  end
  C.proto_close(b, of_scope)
  C.proto_close(b, all)
end

return otlp
