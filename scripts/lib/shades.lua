-- SPDX-License-Identifier: GPL-2.0-only
--- Heat maps on a terminal: a cell for each number. Its color shows how large the number is; with $NO_COLOR, a
--- character does.
local shades = {}

-- Of the 256 colors of terminals, from few to many. Brightness follows the number, too.
local COLORS = { 52, 88, 124, 160, 196, 202, 208, 214, 220, 226, 229, 231 }
local CHARACTERS = '.:-=+*#%@'

local function is_plain() return (os.getenv 'NO_COLOR' or '') ~= '' end

--- Returns a line of cells.
---@param numbers number[] 0 is an empty cell
---@param max number the number of the strongest shade
---@return string
function shades.line(numbers, max)
  local parts, plain, before = {}, is_plain(), 0
  for i, n in ipairs(numbers) do
    -- The square root tells small numbers apart.
    local share = n > 0 and math.min(1, math.sqrt(n / max)) or 0
    if plain then
      local at = math.ceil(share * #CHARACTERS)
      parts[i] = at > 0 and CHARACTERS:sub(at, at) or ' '
    else
      local at = math.ceil(share * #COLORS)
      local code = at == before and '' or at > 0 and ('\27[48;5;%dm'):format(COLORS[at]) or '\27[m'
      parts[i], before = code .. ' ', at
    end
  end
  return table.concat(parts) .. (before > 0 and '\27[m' or '')
end

return shades
