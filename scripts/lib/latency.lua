-- SPDX-License-Identifier: GPL-2.0-only
--- Latency tables of pairs: a row for each kind of pair, or for each key.
---
---   local latencies = latency.new { stages = stages, than = opt.than }
---   latencies:add(p)        -- in the function `pair` of lib.pairs
---   latencies:print(out)
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'

local MAX_KEYS = 65536 -- further keys share the row '(other)'

local latency = {}

--- A latency table.
---@class Latency
---@field hists HistSet without by_key: histograms by kind of pair, for `latencies` of lib.pairs, which replaces add()
local Latency = {}
Latency.__index = Latency

---@class LatencySettings
---@field stages? Event[][] the stages of the pairs
---@field kinds? { start: string, stop: string }[] instead of stages: names of the two events of each kind of pair
---@field than? number threshold in ns; longer latencies are counted
---@field variance? boolean print the mean, the standard deviation and the variance
---@field cycle? boolean the first stage follows the last
---@field by_key? { title: string, width: integer, value?: (fun(key: any): any), name?: (fun(key: any): string) } print
--- a row for each key; value: returns the printed key; name: returns the text of an additional column `comm`

--- Returns the kinds of pairs of some stages, in the order of `p.kind`.
---@param stages Event[][]
---@param cycle? boolean
---@return { start: string, stop: string }[]
function latency.kinds(stages, cycle)
  local kinds = {}
  for i, stage in ipairs(stages) do
    for _, first in ipairs(stage) do
      for _, second in ipairs(stages[i + 1] or cycle and stages[1] or {}) do
        kinds[#kinds + 1] = { start = first.alias, stop = second.alias }
      end
    end
  end
  return kinds
end

local function width_of(list, field, min)
  local width = min
  for _, pair in ipairs(list) do
    width = math.max(width, #pair[field])
  end
  return width
end

local function spec_of(self)
  local by_key = self.by_key
  return tables.new('latency', tables.latency_columns(self.than ~= nil, {
    {
      name = 'key',
      metric = 'label',
      title = by_key and by_key.title,
      width = by_key and by_key.width,
      align = 'left',
      show = by_key ~= nil,
    },
    { name = 'comm', width = 16, align = 'left', show = by_key ~= nil and by_key.name ~= nil },
    { name = 'start', width = width_of(self.pairs, 'start', 5), align = 'right' },
    { name = 'stop', title = 'end', width = width_of(self.pairs, 'stop', 3), align = 'left', sep = ' => ' },
  }, self.variance))
end

--- Creates an empty table.
---@param settings LatencySettings
---@return Latency
function latency.new(settings)
  local self = setmetatable({
    than = settings.than,
    variance = settings.variance,
    by_key = settings.by_key,
    keys = intern.new(1, MAX_KEYS),
    pairs = settings.kinds or latency.kinds(settings.stages, settings.cycle), -- by kind
  }, Latency)
  -- Indexed by key id * number of kinds + kind.
  self.hists = hist.set(#self.pairs * (self.by_key and MAX_KEYS + 1 or 1), settings.than)
  self.spec = spec_of(self)
  return self
end

--- Returns `rows` of lib.pairs, which replaces add().
---@return PairRows
function Latency:rows_by_key()
  return { by = { 'key' }, ids = self.keys, hists = self.hists, kinds = #self.pairs }
end

--- Adds a pair.
---@param p Pair
function Latency:add(p)
  local at = p.kind
  if self.by_key then at = self.keys.id(p.key + 0ULL) * #self.pairs + at end -- keys are unsigned
  self.hists:add(at, p.ns)
end

local function before(a, b)
  if a.key ~= b.key then return a.key < b.key end
  if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
  return a.order < b.order
end

--- Appends the rows of a key.
---@package
function Latency:rows_of(id, rows)
  for i, kind in ipairs(self.pairs) do
    local at = id * #self.pairs + i - 1
    local found = self.hists:get(at)
    if found and found:stats().count > 0 then
      local row = tables.latency_row({ start = kind.start, stop = kind.stop, key = 0, order = at }, found)
      if self.by_key then
        row.key = id == self.keys.max and math.huge or self.keys:part(id, 1)
        row.comm = self.by_key.name and self.by_key.name(row.key)
      end
      rows[#rows + 1] = row
    end
  end
end

--- Returns the sorted rows of the table.
---@return table[]
---@package
function Latency:rows()
  local rows = {}
  for id = 0, self.by_key and self.keys:count() - 1 or 0 do
    self:rows_of(id, rows)
  end
  if self.by_key and self.keys:overflow() > 0 then self:rows_of(self.keys.max, rows) end
  table.sort(rows, before)
  for _, row in ipairs(rows) do
    if row.key == math.huge then
      row.key = '(other)'
    elseif self.by_key and self.by_key.value then
      row.key = self.by_key.value(row.key)
    end
  end
  return rows
end

--- Prints the table unless it is empty.
---@param out Output
---@param only_over? number print only if a latency was longer than this (ns)
function Latency:print(out, only_over)
  local rows = self:rows()
  if only_over then
    local longest = 0
    for _, row in ipairs(rows) do
      longest = math.max(longest, tonumber(row.max_ns))
    end
    if longest <= only_over then return end
  end
  out:table(self.spec, rows)
end

--- Removes all latencies.
function Latency:clear()
  self.hists:clear()
  self.keys:clear()
end

return latency
