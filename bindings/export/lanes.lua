-- SPDX-License-Identifier: GPL-2.0-only
--- Places slices on tracks so that no two slices of a track overlap: a track for each key, and for the keys beyond the
--- first ones tracks that they share.
local lanes = {}

local MAX_KEYS, MAX_SHARED = 1000, 256

---@class Lane
---@field key? number nil: shared by several keys
---@field number integer from 1, of the shared ones
---@field last number end of its last slice, ns

--- Returns a function that finds the track of a slice. Slices come in the order of their ends.
---@return fun(key: number, from: number, to: number): Lane? find nil: no track is free
function lanes.new()
  local by_key, keys, shared = {}, 0, {}
  local function share(from, to)
    for i = 1, #shared do
      local lane = shared[i]
      if lane.last <= from then
        lane.last = to
        return lane
      end
    end
    if #shared == MAX_SHARED then return nil end
    shared[#shared + 1] = { number = #shared + 1, last = to }
    return shared[#shared]
  end
  return function(key, from, to)
    local lane = by_key[key]
    if not lane then
      if keys == MAX_KEYS then return share(from, to) end
      lane = { key = key, number = 0, last = -math.huge }
      by_key[key], keys = lane, keys + 1
    end
    if from < lane.last then return share(from, to) end
    lane.last = to
    return lane
  end
end

return lanes
