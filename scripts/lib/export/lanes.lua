-- SPDX-License-Identifier: GPL-2.0-only
--- Places slices on tracks so that no two slices of a track overlap: a track for each key, or several if its slices are
--- nested, and for the keys beyond the first ones tracks that they share.
local lanes = {}

local MAX_KEYS, MAX_SHARED = 1000, 256
lanes.NESTED = 32 -- tracks of a key with nested slices

---@class Lane
---@field key? number nil: shared by several keys
---@field number integer from 1, of the shared ones
---@field last number end of its last slice, ns

--- Returns a function that finds the track of a slice. Slices come in the order of their ends.
---@param depth? integer tracks of a key; default: 1
---@return fun(key: number, from: number, to: number): Lane? find nil: no track is free
function lanes.new(depth)
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
    local own = by_key[key]
    if not own then
      if keys == MAX_KEYS then return share(from, to) end
      own = { { key = key, number = 0, last = -math.huge } }
      by_key[key], keys = own, keys + 1
    end
    for i = 1, #own do
      if own[i].last <= from then
        own[i].last = to
        return own[i]
      end
    end
    if #own == (depth or 1) then return share(from, to) end
    own[#own + 1] = { key = key, number = 0, last = to }
    return own[#own]
  end
end

return lanes
