-- SPDX-License-Identifier: GPL-2.0-only
--- Heat maps of the latencies of pairs: one for each two events, see lib.heatmap.
local heatmap = require 'lib.heatmap'

local heat = {}

---@class Heat
local Heat = {}
Heat.__index = Heat

---@param path string as --heatmap says
---@param stages Event[][]
---@param cycle? boolean
---@param session table
---@return Heat
function heat.new(path, stages, cycle, session)
  local self = setmetatable({ by_kind = {}, list = {}, session = session }, Heat)
  local by_name, kind = {}, 0
  for i, stage in ipairs(stages) do
    for _, first in ipairs(stage) do
      for _, second in ipairs(stages[i + 1] or cycle and stages[1] or {}) do
        local name = ('%s-%s'):format(first.alias, second.alias)
        if not by_name[name] then
          local title = ('%s => %s'):format(first.alias, second.alias)
          by_name[name] = heatmap.new { file = path, name = name, title = title }
          table.insert(self.list, by_name[name])
        end
        self.by_kind[kind] = by_name[name]
        kind = kind + 1
      end
    end
  end
  return self
end

---@param p any struct pair
function Heat:add(p)
  self.base = self.base or self.session.time_base()
  self.by_kind[p.kind]:add(self.base + p.second_time, p.ns)
end

--- Writes all files.
---@param out Output
function Heat:write(out)
  for _, map in ipairs(self.list) do
    map:write(out)
  end
end

return heat
