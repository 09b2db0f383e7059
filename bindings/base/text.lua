-- SPDX-License-Identifier: GPL-2.0-only
--- Escapes untrusted strings for printing (native/text.h). The methods of `out` do this themselves.
local ffi = require 'ffi'
local C = ffi.C

local text = {}

local capacity, scratch = 0, nil

local function escape(s, mode)
  if 6 * #s > capacity then
    capacity = 6 * #s
    scratch = ffi.new('char[?]', capacity)
  end
  return ffi.string(scratch, C.text_escape(scratch, s, #s, mode))
end

--- Escapes a table cell or a field of a line: control bytes and invalid UTF-8 become \xNN. A clean string is returned
--- unchanged, in about 5 ns.
---@param s string
---@return string
function text.safe(s)
  if C.text_clean(s, #s, C.TEXT_CELL) ~= 0 then return s end
  return escape(s, C.TEXT_CELL)
end

--- Escapes whole lines: the same, but newlines and tabs stay.
---@param s string
---@return string
function text.lines(s)
  if C.text_clean(s, #s, C.TEXT_LINES) ~= 0 then return s end
  return escape(s, C.TEXT_LINES)
end

--- Returns the lines of a text that ends with a newline.
---@param s string
---@return string[]
function text.split(s)
  local lines = {}
  for line in s:gmatch '([^\n]*)\n' do lines[#lines + 1] = line end
  return lines
end

--- Returns a JSON string with its quotes. Bytes that are not UTF-8 become \\xNN.
---@param s string
---@return string
function text.json(s)
  if C.text_clean(s, #s, C.TEXT_JSON) ~= 0 then return '"' .. s .. '"' end
  return '"' .. escape(s, C.TEXT_JSON) .. '"'
end

return text
