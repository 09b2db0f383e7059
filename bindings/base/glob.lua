-- SPDX-License-Identifier: GPL-2.0-only
--- Shell patterns of *, ? and [...].
local glob = {}

local WILD = { ['*'] = '.*', ['?'] = '.' }

--- The Lua pattern that matches the same whole names. A '[' without its ']' stands for itself.
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

--- A function that tells whether a name matches: as a whole if the text has wildcards, else whether the text is a
--- part of it.
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
