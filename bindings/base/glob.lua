-- SPDX-License-Identifier: GPL-2.0-only
--- Shell patterns: *, ? and [...].
local glob = {}

local WILD = { ['*'] = '.*', ['?'] = '.' }

--- Converts a shell pattern to a Lua pattern that matches whole names. A '[' without ']' is a plain character.
---@param text string
---@return string
function glob.pattern(text)
  local parts, at = {}, 1
  while at <= #text do
    local negation, set, stop = text:match('^%[(!?)([^%]]+)%]()', at)
    if set then
      parts[#parts + 1] = ('[%s%s]'):format(negation == '!' and '^' or '', set:gsub('[%%^]', '%%%0'))
    else
      local char = text:sub(at, at)
      parts[#parts + 1] = WILD[char] or char:gsub('%W', '%%%0')
      stop = at + 1
    end
    at = stop
  end
  return '^' .. table.concat(parts) .. '$'
end

--- Returns a function that matches names: a text with wildcards matches whole names, any other text matches
--- substrings.
---@param text string
---@return fun(name: string): boolean
function glob.matcher(text)
  if not text:find '[*?[]' then
    return function(name) return name:find(text, 1, true) ~= nil end
  end
  local pattern = glob.pattern(text)
  return function(name) return name:match(pattern) ~= nil end
end

return glob
