-- SPDX-License-Identifier: GPL-2.0-only
--- Registry: the metrics of a run, made of the rows that its profiler reports. Counts are added up from report to
--- report, gauges are those of the last report.
---
--- The number of series is bounded. When there is no room for another one, those that were not reported for a while are
--- forgotten; they begin anew if they come back. What has no room even then is dropped and counted.
local columns = require 'lib.serve.columns'
local ffi = require 'ffi'
local text = require 'bindings.base.text'

local C = ffi.C
local registry = {}

local MAX_SERIES = 10000
local FORGET_AFTER = 300 -- seconds without a report: what Prometheus, too, takes for gone
local MAX_LABEL = 256 -- bytes of a label's value

-- Upper bounds of histograms: the largest integers below powers of two, as the counts of a Hist are by power of two.
-- Times from 255 ns to 17 s, other numbers from 0 to 4 G.
local FIRST = { seconds = 8 }
local LAST = { seconds = 34 }
local DEFAULT_FIRST, DEFAULT_LAST = 0, 32

---@class MetricFamily
---@field name string
---@field type 'counter'|'gauge'|'histogram'
---@field help string
---@field unit? string
---@field divisor number of the values and sums, which are in the units of the profiler
---@field bounds? number[] of a histogram
---@field list MetricSeries[]
---@field by_labels table<string, MetricSeries>
---@field report integer number of the last report of its table

---@class MetricSeries
---@field labels { [1]: string, [2]: string }[] names and values
---@field key string the labels as text
---@field value? number
---@field counts? number[] of a histogram: by bucket, the last one without an upper bound
---@field sum? number
---@field count? number
---@field report integer number of its last report
---@field time number seconds: when that was
---@field since number seconds: from when on it counts

---@class Registry
---@field families MetricFamily[]
---@field dropped integer series that had no room
---@field replaced table<string, string> labels by table, if a report has several rows with the same ones: only the
--- gauges of the last row are kept
local Registry = {}
Registry.__index = Registry

---@param profiler string
---@param now fun(): number seconds
---@param max_series? integer
---@return Registry
function registry.new(profiler, now, max_series)
  return setmetatable({ profiler = profiler, now = now, max = max_series or MAX_SERIES, families = {}, by_name = {},
    tables = {}, replaced = {}, n = 0,
    dropped = 0, report = 1, purged = 0, start = now() }, Registry)
end

--- Returns the family of a name.
---@param name string
---@param kind string
---@param help string
---@param unit? string
---@param divisor? number
---@return MetricFamily? family nil if another kind of metric has this name
function Registry:family(name, kind, help, unit, divisor)
  local family = self.by_name[name]
  if family then return family.type == kind and family or nil end
  family = { name = name, type = kind, help = help, unit = unit, divisor = divisor or 1, list = {},
    by_labels = {}, report = self.report }
  if kind == 'histogram' then
    family.first, family.last = FIRST[unit] or DEFAULT_FIRST, LAST[unit] or DEFAULT_LAST
    family.bounds = {}
    for exponent = family.first, family.last do
      family.bounds[#family.bounds + 1] = (2 ^ exponent - 1) / family.divisor
    end
  end
  self.families[#self.families + 1], self.by_name[name] = family, family
  return family
end

--- Forgets the series that were not reported for a while.
function Registry:purge()
  self.purged = self.report
  local oldest, n = self.now() - FORGET_AFTER, 0
  for _, family in ipairs(self.families) do
    local kept = {}
    for _, series in ipairs(family.list) do
      if series.time >= oldest and (family.type ~= 'gauge' or series.report == family.report) then
        kept[#kept + 1] = series
      else
        family.by_labels[series.key] = nil
      end
    end
    family.list, n = kept, n + #kept
  end
  self.n = n
end

--- Returns the series of some labels; nil if there is no room for it.
---@param family MetricFamily
---@param labels { [1]: string, [2]: string }[]
---@param key string
---@return MetricSeries?
function Registry:series(family, labels, key)
  local series = family.by_labels[key]
  if not series then
    if self.n >= self.max and self.purged < self.report then self:purge() end
    if self.n >= self.max then
      self.dropped = self.dropped + 1
      return
    end
    series = { labels = labels, key = key, since = self.purged > 0 and self.now() or self.start }
    family.list[#family.list + 1], family.by_labels[key] = series, series
    self.n = self.n + 1
  end
  series.report, series.time = self.report, self.now()
  return series
end

--- Sets a metric without a table.
---@param name string
---@param kind 'counter'|'gauge'
---@param help string
---@param value number
---@param labels? { [1]: string, [2]: string }[]
function Registry:set(name, kind, help, value, labels)
  local family = self:family(name, kind, help)
  family.report = self.report
  local series = self:series(family, labels or {}, registry.key(labels or {}))
  if series then series.value = value end
end

local ESCAPES = { ['\\'] = '\\\\', ['"'] = '\\"', ['\n'] = '\\n' }

--- Returns labels as text: `pid="1",comm="a \"b\""`.
---@param labels { [1]: string, [2]: string }[]
---@return string
function registry.key(labels)
  local parts = {}
  for i, label in ipairs(labels) do parts[i] = ('%s="%s"'):format(label[1], (label[2]:gsub('[\\"\n]', ESCAPES))) end
  return table.concat(parts, ',')
end

local function label_text(value)
  if type(value) == 'number' and value == math.floor(value) then return ('%d'):format(value) end
  local shown = type(value) == 'cdata' and tostring(value):gsub('U?LL$', '') or tostring(value)
  if #shown > MAX_LABEL then shown = shown:sub(1, MAX_LABEL) .. '...' end
  return text.safe(shown)
end

local LOG2_ROWS = tonumber(C.HIST_LOG2_ROWS)
local log2 = ffi.new('uint64_t[?]', C.HIST_LOG2_ROWS)
local stats = ffi.new 'struct hist_stats'

--- Adds values of at most 2^exponent - 1 to those of a series.
local function add_counts(family, series, exponent, count)
  local at = math.min(math.max(exponent - family.first + 1, 1), #family.bounds + 1)
  series.counts[at] = series.counts[at] + count
end

--- Adds a value, those of a Hist, or those of { positive = Hist, negative = Hist } to those of a series.
local function add_values(family, series, hist)
  if not series.counts then
    series.counts, series.sum, series.count = {}, 0, 0
    for i = 1, #family.bounds + 1 do series.counts[i] = 0 end
  end
  if type(hist) == 'number' then
    local fraction, exponent = math.frexp(math.max(hist, 0) + 1)
    add_counts(family, series, fraction == 0.5 and exponent - 1 or exponent, 1)
    series.sum, series.count = series.sum + hist, series.count + 1
    return
  end
  if type(hist) == 'table' then
    if hist.negative then
      local below = hist.negative:stats()
      series.counts[1] = series.counts[1] + below.count
      series.sum, series.count = series.sum - tonumber(below.sum), series.count + below.count
    end
    hist = hist.positive
    if not hist then return end
  end
  C.hist_log2(hist, log2)
  C.hist_read(hist, stats)
  for row = 0, LOG2_ROWS - 1 do
    local count = tonumber(log2[row])
    if count > 0 then
      -- Row 2 + e has the values from 2^e to 2^(e + 1) - 1, which is the bound of the exponent e + 1.
      add_counts(family, series, math.max(row - 1, 0), count)
    end
  end
  series.sum = series.sum + tonumber(stats.sum)
  series.count = series.count + tonumber(stats.count)
end

--- Returns the columns of a table as far as they are known.
local function columns_of(self, spec, rows)
  local names = { spec.name }
  for _, column in ipairs(spec.columns) do names[#names + 1] = column.name end
  local key = table.concat(names, '\n')
  local known = self.tables[key]
  if not known then
    known = { list = {}, pending = {}, n_labels = 0, kinds = {} }
    for _, list in ipairs { spec.columns, spec.histograms or {} } do
      for _, column in ipairs(list) do known.pending[#known.pending + 1] = column end
    end
    known.has_histogram = #(spec.histograms or {}) > 0
    self.tables[key] = known
  end
  local pending = known.pending
  known.pending = {}
  for _, column in ipairs(pending) do
    local one = columns.of(self.profiler, spec, column, rows)
    known.kinds[column.name] = one and one.kind
    if not one then
      known.pending[#known.pending + 1] = column
    elseif one.kind == 'label' then
      known.n_labels = known.n_labels + 1
      table.insert(known.list, known.n_labels, one) -- before all values
    elseif one.name and not (one.of_histogram and known.has_histogram) then
      one.family = self:family(one.name, one.kind, one.help, one.unit, one.divisor)
      if one.family then known.list[#known.list + 1] = one end
    end
  end
  return known.list, known.kinds
end

--- Returns whether a row has the series already in this report, and would replace it.
local function is_replaced(self, column, key)
  if column.kind ~= 'gauge' or column.adds_up then return false end
  local known = column.family.by_labels[key]
  return known ~= nil and known.report == self.report and known.value ~= nil
end

local function add_value(self, column, labels, key, value)
  local family, is_hist = column.family, column.kind == 'histogram'
  if not (is_hist and (type(value) == 'table' or type(value) == 'cdata' and not tonumber(value))) then
    value = tonumber(value)
    if not value or value ~= value or is_hist and math.abs(value) == math.huge then return end
    value = value * (column.factor or 1)
  end
  local known = family.by_labels[key]
  local before = column.adds_up and known and known.report == self.report and known.value or 0
  local series = self:series(family, labels, key)
  if not series then return end
  if is_hist then
    add_values(family, series, value)
  elseif column.kind == 'counter' then
    series.value = (series.value or 0) + value
  else
    series.value = before + value
  end
end

local function label_names(labels)
  local names = {}
  for i, label in ipairs(labels) do names[i] = label[1] end
  return table.concat(names, ', ')
end

--- Takes the rows of a table.
---@param spec TableSpec
---@param rows table[]
---@param is_event? boolean they are printed for an event: the next one may replace them
---@return table<string, string> kinds of the columns that are known
function Registry:table(spec, rows, is_event)
  local list, kinds = columns_of(self, spec, rows)
  for _, column in ipairs(list) do
    if column.family then column.family.report = self.report end
  end
  for _, row in ipairs(rows) do
    local labels, key
    if not row.is_total then
      for _, column in ipairs(list) do
        local value = row[column.field]
        if column.kind == 'label' then
          labels = labels or {}
          if value ~= nil then labels[#labels + 1] = { column.label, label_text(value) } end
        elseif value ~= nil then
          key = key or registry.key(labels or {})
          -- Rows with stacks may have the same labels.
          if not is_event and kinds.stack ~= 'none' and is_replaced(self, column, key) then
            self.replaced[spec.name] = label_names(labels or {})
          end
          add_value(self, column, labels or {}, key, value)
        end
      end
    end
  end
  return kinds
end

--- Ends a report: what comes next is of the next one.
function Registry:next_report() self.report = self.report + 1 end

--- Returns the series of a family that are valid now.
---@param family MetricFamily
---@return MetricSeries[]
function Registry.valid(family)
  if family.type ~= 'gauge' then return family.list end
  local valid = {}
  for _, series in ipairs(family.list) do
    if series.report == family.report and series.value then valid[#valid + 1] = series end
  end
  return valid
end

return registry
