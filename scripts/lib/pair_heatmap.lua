-- SPDX-License-Identifier: GPL-2.0-only
--- Heat maps of latencies, one for each kind of pair. See lib.heatmap.
local heatmap = require 'lib.heatmap'

local pair_heatmap = {}

--- The heat maps of a run.
---@class PairHeatmap
local PairHeatmap = {}
PairHeatmap.__index = PairHeatmap

--- Creates empty heat maps.
---@param path string the value of --heatmap
---@param kinds { start: string, stop: string }[] the kinds of pairs: latency.kinds()
---@param session Session
---@return PairHeatmap
function pair_heatmap.new(path, kinds, session)
  local self = setmetatable({ by_kind = {}, list = {}, session = session }, PairHeatmap)
  local by_name = {}
  for i, kind in ipairs(kinds) do
    local name = ('%s-%s'):format(kind.start, kind.stop)
    if not by_name[name] then
      local title = ('%s => %s'):format(kind.start, kind.stop)
      by_name[name] = heatmap.new { file = path, name = name, title = title }
      table.insert(self.list, by_name[name])
    end
    self.by_kind[i - 1] = by_name[name]
  end
  return self
end

--- Adds a pair.
---@param p Pair
function PairHeatmap:add(p)
  self.base = self.base or self.session.time_base()
  self.by_kind[p.kind]:add(self.base + p.second_time, p.ns)
end

--- Writes all files.
---@param out Output
function PairHeatmap:write(out)
  for _, map in ipairs(self.list) do
    map:write(out)
  end
end

return pair_heatmap
