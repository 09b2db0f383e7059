-- SPDX-License-Identifier: GPL-2.0-only
--- Kernel memory, read from /proc/kcore. This is a little-endian 64-bit ELF core file whose segments are the mappings.
local kcore = {}

local PT_LOAD = 1
local HEADER = 64 -- bytes of an ELF header; a program header has 56

--- Reads an unsigned little-endian integer from a string.
---@param text string
---@param at integer position, from 1
---@param size integer bytes, 1 to 8
---@return integer64
function kcore.integer(text, at, size)
  local value = 0ULL
  for i = at + size - 1, at, -1 do value = value * 256 + text:byte(i) end
  return value
end

--- An open core file.
---@class Kcore
local Kcore = {}
Kcore.__index = Kcore

--- Opens a core file.
---@param path string
---@return Kcore? core nil: see message
---@return string? message
function kcore.open(path)
  local file, message = io.open(path, 'rb')
  if not file then return nil, message end
  file:setvbuf 'no' -- reading ahead beyond the end of a segment would fail
  local head = file:read(HEADER)
  if not head or #head < HEADER or head:sub(1, 6) ~= '\127ELF\2\1' then
    return nil, path .. ': not a 64-bit ELF file'
  end
  local at, size = tonumber(kcore.integer(head, 33, 8)), tonumber(kcore.integer(head, 55, 2))
  local segments = {}
  file:seek('set', at)
  for _ = 1, tonumber(kcore.integer(head, 57, 2)) do
    local entry = file:read(size)
    if not entry or #entry < 56 then return nil, path .. ': cut off inside its program headers' end
    if kcore.integer(entry, 1, 4) == PT_LOAD then
      segments[#segments + 1] = {
        offset = tonumber(kcore.integer(entry, 9, 8)),
        from = kcore.integer(entry, 17, 8),
        size = kcore.integer(entry, 41, 8), -- in memory
      }
    end
  end
  return setmetatable({ file = file, segments = segments }, Kcore)
end

--- Reads memory.
---@param address integer64
---@param n integer bytes
---@return string? bytes fewer than n at the end of a mapping; nil: not mapped
function Kcore:read(address, n)
  for _, segment in ipairs(self.segments) do
    local offset = address - segment.from -- unsigned: huge if the address is below the segment
    if offset < segment.size then
      if segment.size - offset < n then n = tonumber(segment.size - offset) end
      return self.file:seek('set', segment.offset + tonumber(offset)) and self.file:read(n)
    end
  end
end

--- Closes the file.
function Kcore:close() self.file:close() end

return kcore
