-- SPDX-License-Identifier: GPL-2.0-only
--- `profscript check FILE...`: loads scripts without starting them, which finds what depends on no event.
local lua_source = require 'bindings.base.lua_source'
local scripts = require 'bindings.options.scripts'
local sys = require 'bindings.base.sys'

local check_script = {}

--- Checks one script.
---@param given string name or path
---@return string? problem the lines of all mistakes found; nil: none
function check_script.problem(given)
  local script, message = scripts.new(sys, arg.data_dir):load(given)
  if message and message:find(scripts.MODULE, 1, true) then return end -- which scripts require
  return not script and (message:gsub('^profscript: ', '')) or nil
end

local INEXACT = 'warning: the sum is not exact beyond 2^53, so different keys may be the same number; compute it with '
  .. "64-bit integers, as in ev:u64 'dev' * 0x100000000 + ev.sector"
local LEAST = 2 ^ 31 -- a factor that makes room for another number of 32 bits
local APART = { [','] = true, ['('] = true, [')'] = true, ['['] = true, [']'] = true, ['='] = true, [';'] = true,
  ['then'] = true, ['return'] = true, ['end'] = true, ['do'] = true }

--- Returns the factor at `at`, such as 0x100000000 or 2 ^ 32; nil: it is an integer of 64 bits, or not a constant.
local function factor(source, at)
  local base, exponent = source:match('^%s*(%d[%w]*)%s*%^%s*(%d+)', at)
  if base then return (tonumber(base) or 0) ^ tonumber(exponent) end
  return tonumber(source:match('^%s*(%d[%w.]*)', at))
end

--- Returns warnings about a script: sums such as `ev.dev * 2 ^ 32 + ev.sector`, which put two numbers into one. Beyond
--- 2^53 it is not exact.
---@param file string name of the script
---@return string[] lines
function check_script.warnings(file)
  local f = io.open(file)
  local source = f and f:read '*a' or ''
  if f then f:close() end
  local lines, at, line = {}, 1, 1
  local product, has_sum, is_wide
  while at <= #source do
    local after, token = lua_source.next(source, at)
    token = token or ''
    if APART[token] then product, has_sum, is_wide = nil, false, false end
    if token == '*' and (factor(source, after) or 0) >= LEAST then product = line end
    has_sum, is_wide = has_sum or token == '+', is_wide or token == 'u64' or token:find '^%d.*[lL]$' ~= nil
    if product and has_sum and not is_wide then
      lines[#lines + 1] = ('%s:%d: %s'):format(file, product, INEXACT)
      product = nil
    end
    line = line + select(2, source:sub(at, after - 1):gsub('\n', ''))
    at = after
  end
  return lines
end

return check_script
