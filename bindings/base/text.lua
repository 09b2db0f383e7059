-- SPDX-License-Identifier: GPL-2.0-only
--- Escapes strings from outside, so that they can be printed (native/text.h). out does so by itself.
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

--- Escapes a cell or a field of a line: control bytes and invalid UTF-8 become \xNN. A clean string is returned as
--- it is, in about 5 ns.
---@param s string
---@return string
function text.safe(s)
  if C.text_clean(s, #s, C.TEXT_CELL) ~= 0 then return s end
  return escape(s, C.TEXT_CELL)
end

--- The same for whole lines: newlines and tabs stay.
---@param s string
---@return string
function text.lines(s)
  if C.text_clean(s, #s, C.TEXT_LINES) ~= 0 then return s end
  return escape(s, C.TEXT_LINES)
end

--- A JSON string with its quotes. Bytes that are not UTF-8 become \\xNN.
---@param s string
---@return string
function text.json(s)
  if C.text_clean(s, #s, C.TEXT_JSON) ~= 0 then return '"' .. s .. '"' end
  return '"' .. escape(s, C.TEXT_JSON) .. '"'
end

return text
