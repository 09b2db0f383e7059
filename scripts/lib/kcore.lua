-- SPDX-License-Identifier: GPL-2.0-only
--- The kernel's memory, read from /proc/kcore: an ELF core file (64 bits, little endian) whose segments are what is
--- mapped.
local kcore = {}

local PT_LOAD = 1
local HEADER = 64 -- bytes of an ELF header, 56 of each program header

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
---@return Kcore? core nil: message says why
---@return string? message
function kcore.open(path)
  local file, message = io.open(path, 'rb')
  if not file then return nil, message end
  file:setvbuf 'no' -- what is behind the end of a segment cannot be read
  local head = file:read(HEADER)
  if not head or #head < HEADER or head:sub(1, 6) ~= '\127ELF\2\1' then
    return nil, path .. ': it is no ELF file of 64 bits'
  end
  local at, size = tonumber(kcore.integer(head, 33, 8)), tonumber(kcore.integer(head, 55, 2))
  local segments = {}
  file:seek('set', at)
  for _ = 1, tonumber(kcore.integer(head, 57, 2)) do
    local entry = file:read(size)
    if not entry or #entry < 56 then return nil, path .. ': its program headers are cut off' end
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
---@return string? bytes fewer than n where the mapping ends; nil where nothing is mapped
function Kcore:read(address, n)
  for _, segment in ipairs(self.segments) do
    local into = address - segment.from -- beyond the size also where the address lies below
    if into < segment.size then
      if segment.size - into < n then n = tonumber(segment.size - into) end
      return self.file:seek('set', segment.offset + tonumber(into)) and self.file:read(n)
    end
  end
end

--- Closes the file.
function Kcore:close() self.file:close() end

return kcore
