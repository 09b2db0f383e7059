-- SPDX-License-Identifier: GPL-2.0-only
--- Refuses 64-bit integers as keys of a script's tables. Lua compares them by identity, so each one is a new key, and
--- no read finds it: a script that forgets this prints wrong numbers and nothing else. Numbers that are not exact are
--- refused, too: different keys would be the same one.
---
--- A table cannot refuse a key, so the source is changed before it is loaded: each `[KEY]` becomes `[check(KEY)]`. In
--- Lua every '[' that does not begin a long string encloses a key. Compiled code knows the type of the key, so the
--- check costs nothing there.
local ffi = require 'ffi'
local exact_key = require('bindings.base.check').exact_key
local lua_source = require 'bindings.base.lua_source'

local wide_keys = {}

local NAME = lua_source.KEY_CHECK
local INT64, UINT64 = ffi.typeof 'int64_t', ffi.typeof 'uint64_t'
local type, istype = type, ffi.istype

local function refuse(key)
  if not istype(INT64, key) and not istype(UINT64, key) then return end
  error(('the 64-bit integer %s cannot be the key of a table, because no other one is equal to it: use lib.map,'
    .. ' lib.counter or lib.intern'):format((tostring(key):gsub('U?LL$', ''))), 3)
end

local function check(key)
  local kind = type(key)
  if kind == 'number' then exact_key(key, 2) elseif kind == 'cdata' then refuse(key) end
  return key
end

--- Returns the position of the ']' after a key that is one number or string; nil for any other key.
local function end_of_constant(source, at)
  at = source:match('^%s*()', at)
  if not source:find('^[%d\'"]', at) then return end
  local after, number = lua_source.next(source, at)
  if number and number:find '[lL]$' then return end -- 1ULL
  return source:match('^%s*()%]', after)
end

--- Returns the source with all keys checked, except constants. Line numbers stay the same.
local function guarded(source)
  local parts, copied, at = {}, 1, 1
  while at <= #source do
    local after, token = lua_source.next(source, at)
    local constant = token == '[' and end_of_constant(source, after)
    if constant then
      after = constant + 1
    elseif token == '[' then
      parts[#parts + 1] = source:sub(copied, at) .. NAME .. '('
      copied = after
    elseif token == ']' then
      parts[#parts + 1] = source:sub(copied, at - 1) .. ')'
      copied = at
    end
    at = after
  end
  return table.concat(parts) .. source:sub(copied)
end

--- Loads source text as load() does, with checked keys.
---@param source string
---@param chunk string
---@param mode 't'
---@param env table
---@return function?, string? message
function wide_keys.load(source, chunk, mode, env)
  local plain, message = load(source, chunk, mode, env)
  if not plain then return nil, message end
  -- A function can have too many upvalues for one more.
  local make = load(('local %s = ... return function(...) %s\nend'):format(NAME, guarded(source)), chunk, mode, env)
  return make and make(check) or plain
end

return wide_keys
