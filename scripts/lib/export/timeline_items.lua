-- SPDX-License-Identifier: GPL-2.0-only
--- The items of a timeline page, of one kind: a bounded number of slices or ticks in columns.
local ffi = require 'ffi'

local C = ffi.C
local items = {}

items.MAX = 2 ^ 18 -- 8 MB of the page
local FIRST_MINIMUM = 1000 -- ns
local PIECE = 3 * 2 ^ 14 -- bytes that become Base64 at once

--- Items of one kind, in columns.
---@class TimelineItems
---@field n integer
---@field minimum number ns: shorter ones are left out
---@field left_out integer
---@field from ffi.cdata* double[]
---@field to ffi.cdata* double[]: the end; of counts, the value; of events, the number of the stack (0: none)
---@field what ffi.cdata* int32_t[]: the number of a name or thread
---@field row ffi.cdata* int32_t[]
local Items = {}
Items.__index = Items

local COLUMNS = { { 'from', 'double' }, { 'to', 'double' }, { 'what', 'int32_t' }, { 'row', 'int32_t' } }
local types = {}
for _, column in ipairs(COLUMNS) do types[column[1]] = ffi.typeof(column[2] .. '[?]') end

--- Items of which those are left out, if there are too many, that are short, or close to the one before them.
---@param thins 'slices'|'ticks'
---@return TimelineItems
function items.new(thins)
  return setmetatable({ n = 0, minimum = 0, left_out = 0, _room = 0, _thins = thins, _last = {} }, Items)
end

function Items:_grow()
  local room = math.min(math.max(1024, self._room * 2), items.MAX)
  for name, type in pairs(types) do
    local column = type(room)
    if self.n > 0 then ffi.copy(column, self[name], self.n * ffi.sizeof(self[name]) / self._room) end
    self[name] = column
  end
  self._room = room
end

--- Whether an item is too short; of ticks, whether it is too close to the one before it on its row.
function Items:_is_small(from, to, what, row)
  if self._thins == 'slices' then return to - from < self.minimum end
  local key = row * 65536 + what
  local last = self._last[key]
  if last and from - last < self.minimum then return true end
  self._last[key] = from
  return false
end

--- Doubles the minimum until half of the items are left out.
function Items:_thin()
  local before = self.n
  while self.n > items.MAX / 2 do
    self.minimum = math.max(self.minimum * 2, FIRST_MINIMUM)
    local n = 0
    self._last = {}
    for i = 0, self.n - 1 do
      local from, to, what, row = self.from[i], self.to[i], self.what[i], self.row[i]
      if not self:_is_small(from, to, what, row) then
        self.from[n], self.to[n], self.what[n], self.row[n] = from, to, what, row
        n = n + 1
      end
    end
    self.n = n
  end
  self.left_out = self.left_out + before - self.n
end

function Items:add(from, to, what, row)
  local n = self.n
  if self.minimum > 0 and self:_is_small(from, to, what, row) then
    self.left_out = self.left_out + 1
    return
  end
  if n == items.MAX then
    self:_thin()
    return self:add(from, to, what, row)
  elseif n == self._room then
    self:_grow()
  end
  self.from[n], self.to[n], self.what[n], self.row[n] = from, to, what, row
  self.n = n + 1
end

--- Writes the items as JSON, the columns in Base64.
---@param file ExportFile
function Items:write(file)
  file:put(('{"n":%d,"minimum":%.0f,"leftOut":%d'):format(self.n, self.minimum, self.left_out))
  for _, column in ipairs(COLUMNS) do
    file:put((',"%s":"'):format(column[1]))
    local bytes, size = ffi.cast('const uint8_t *', self[column[1]]), self.n * ffi.sizeof(column[2])
    for at = 0, size - 1, PIECE do
      C.bytes_base64(file.bytes, bytes + at, math.min(PIECE, size - at))
      file:poll()
    end
    file:put '"'
  end
  file:put '}'
end

return items
