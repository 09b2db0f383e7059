-- SPDX-License-Identifier: GPL-2.0-only
--- Lua source: its tokens, for what changes or reads scripts as text, and whose it is.
local lua_source = {}

lua_source.KEY_CHECK = '__profscript_key' -- the function around the keys of a script, see options/wide_keys.lua

--- Returns whether a function's source, as in debug.getinfo(), is the host and not a script or a library.
---@param source string
---@return boolean
function lua_source.is_host(source)
  return source:match '^[@=]?bindings[/.]' ~= nil or source:match '^[@=]?bpf/' ~= nil
end

--- Returns the position after the token at `at`, and the token if it is a word or a sign. For comments, strings and
--- white space the token is nil.
---@param source string
---@param at integer
---@return integer after
---@return string? token
function lua_source.next(source, at)
  local level = source:match('^%-%-%[(=*)%[', at) or source:match('^%[(=*)%[', at)
  if level then
    local _, stop = source:find(']' .. level .. ']', at, true)
    return (stop or #source) + 1
  end
  local _, stop = source:find('^%-%-[^\n]*', at)
  if not stop then _, stop = source:find('^%s+', at) end
  if stop then return stop + 1 end
  local quote = source:match('^[\'"]', at)
  if quote then
    stop = at + 1
    while stop <= #source and source:sub(stop, stop) ~= quote do
      stop = stop + (source:sub(stop, stop) == '\\' and 2 or 1)
    end
    return stop + 1
  end
  local token = source:match('^[%a_][%w_]*', at) or source:match('^%d[%w_.]*', at) or source:sub(at, at)
  return at + #token, token
end

return lua_source
