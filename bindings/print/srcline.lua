-- SPDX-License-Identifier: GPL-2.0-only
--- Lines of source for the frames of stacks (--srcline), and the functions that were inlined there, which
--- become frames of their own. What was found is kept: stacks share most of their frames.
local ffi = require 'ffi'
local text = require 'bindings.base.text'

local C = ffi.C
local srcline = {}

local MAX_INLINED = 16 -- functions at one address
local MAX_KEPT = 65536 -- addresses

local function source(line)
  if line.path == nil then return nil end
  local path = text.safe(ffi.string(line.path))
  return ('%s:%d'):format(path:match '[^/]+$' or path, line.line)
end

--- What is known of an address: the functions inlined there, innermost first, and the line of each and of the
--- function they are in.
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

--- A function that adds a frame to a list, behind those that were inlined in it.
---@param session ffi.cdata*
---@return fun(list: Frame[], frame: Frame, file: integer, offset: ffi.cdata*)
function srcline.adder(session)
  local buffer = ffi.new('struct srcline[?]', MAX_INLINED)
  local kept, nr_kept = {}, 0
  local lines -- there is none before the session has started
  return function(list, frame, file, offset)
    lines = lines or C.session_srclines(session)
    local of_file = kept[file]
    if not of_file then
      of_file = {}
      kept[file] = of_file
    end
    local found = of_file[tonumber(offset)]
    if not found then
      if nr_kept == MAX_KEPT then
        of_file = {}
        kept, nr_kept = { [file] = of_file }, 0
      end
      found = lines ~= nil and file ~= 0 and find(lines, buffer, file, offset) or {}
      of_file[tonumber(offset)], nr_kept = found, nr_kept + 1
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
