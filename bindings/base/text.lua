-- SPDX-License-Identifier: GPL-2.0-only
--- Escapes of outside strings (native/text.h): what every writer of text sends them through.
local ffi = require 'ffi'
local C = ffi.C

local text = {}

local room, scratch = 0, nil

local function escape(s, mode)
  if 6 * #s > room then
    room = 6 * #s
    scratch = ffi.new('char[?]', room)
  end
  return ffi.string(scratch, C.text_escape(scratch, s, #s, mode))
end

--- For one cell or field of a line: control bytes and invalid UTF-8 become \xNN. A clean string is
--- returned as it is, for about 5 ns.
---@param s string
---@return string
function text.safe(s)
  if C.text_clean(s, #s, C.TEXT_CELL) ~= 0 then return s end
  return escape(s, C.TEXT_CELL)
end

--- The same for whole lines: newline and tab stay.
---@param s string
---@return string
function text.lines(s)
  if C.text_clean(s, #s, C.TEXT_LINES) ~= 0 then return s end
  return escape(s, C.TEXT_LINES)
end

--- A JSON string, with its quotes. Bytes that are no UTF-8 become \\xNN.
---@param s string
---@return string
function text.json(s)
  if C.text_clean(s, #s, C.TEXT_JSON) ~= 0 then return '"' .. s .. '"' end
  return '"' .. escape(s, C.TEXT_JSON) .. '"'
end

return text
