-- SPDX-License-Identifier: GPL-2.0-only
--- Source lines of frames (--srcline), and inlined functions as additional frames. Results are cached, because stacks
--- share most of their frames.
local ffi = require 'ffi'
local text = require 'bindings.base.text'

local C = ffi.C
local srcline = {}

local MAX_INLINED = 16 -- functions per address
local MAX_CACHED = 65536 -- addresses

local function source(line)
  if line.path == nil then return nil end
  local path = text.safe(ffi.string(line.path))
  return ('%s:%d'):format(path:match '[^/]+$' or path, line.line)
end

--- Returns the functions inlined at an address, innermost first, then the function that contains them, each with
--- its source line.
local function find(lines, buffer, file, offset)
  local found = {}
  for i = 0, C.srclines_find(lines, file, offset, buffer, MAX_INLINED) - 1 do
    local line = buffer[i]
    found[i + 1] = {
      symbol = line['function'] ~= nil and text.safe(ffi.string(line['function'])) or nil,
      source = source(line),
    }
  end
  return found
end

--- Returns a function that adds the functions inlined in a frame, then the frame, to a list.
---@param session ffi.cdata*
---@return fun(list: Frame[], frame: Frame, member: integer, file: integer, offset: ffi.cdata*)
function srcline.adder(session)
  local buffer = ffi.new('struct srcline[?]', MAX_INLINED)
  local cache, nr_cached = {}, 0
  local cached_member
  local lines -- NULL before the session has started
  return function(list, frame, member, file, offset)
    if member ~= cached_member then lines, cache, nr_cached, cached_member = nil, {}, 0, member end
    lines = lines or C.session_srclines(session, member)
    local by_offset = cache[file]
    if not by_offset then
      by_offset = {}
      cache[file] = by_offset
    end
    local found = by_offset[tonumber(offset)]
    if not found then
      if nr_cached == MAX_CACHED then
        by_offset = {}
        cache, nr_cached = { [file] = by_offset }, 0
      end
      found = lines ~= nil and file ~= 0 and find(lines, buffer, file, offset) or {}
      by_offset[tonumber(offset)], nr_cached = found, nr_cached + 1
    end
    for i = 1, #found - 1 do
      list[#list + 1] = {
        address = frame.address,
        symbol = found[i].symbol,
        symbol_offset = 0,
        dso = frame.dso,
        in_kernel = false,
        inlined = true,
        source = found[i].source,
      }
    end
    frame.source = found[#found] and found[#found].source
    list[#list + 1] = frame
  end
end

return srcline
