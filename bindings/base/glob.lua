-- SPDX-License-Identifier: GPL-2.0-only
--- Names by shell patterns of *, ? and [...], or by a part of them.
local glob = {}

local WILD = { ['*'] = '.*', ['?'] = '.' }

--- A Lua pattern for a whole name. A '[' without its ']' stands for itself.
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

--- A function(name): whether the pattern matches all of the name, or the text is a part of it.
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
