-- SPDX-License-Identifier: GPL-2.0-only
--- The valid name that is nearest to a misspelled one, for "did you mean" in messages.
local nearest = {}

--- The edit distance, in which swapped neighbors are one edit (optimal string alignment).
---@param a string
---@param b string
---@return integer
function nearest.distance(a, b)
  local before, above, row = {}, {}, {}
  for j = 0, #b do above[j] = j end
  for i = 1, #a do
    row[0] = i
    for j = 1, #b do
      local differ = a:byte(i) ~= b:byte(j)
      local best = math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (differ and 1 or 0))
      if differ and i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        best = math.min(best, before[j - 2] + 1)
      end
      row[j] = best
    end
    before, above, row = above, row, before
  end
  return above[#b]
end

--- The string keys of a table, sorted, as candidates for find().
---@param t table
---@return string[]
function nearest.keys(t)
  local names = {}
  for key in pairs(t) do
    if type(key) == 'string' then names[#names + 1] = key end
  end
  table.sort(names)
  return names
end

--- The candidate that is nearest to a word; upper and lower case are the same. Of several equally near ones the
--- first.
---@param word string
---@param names string[]
---@return string? name nil where more than a third of the word would have to change: such a proposal would mislead
function nearest.find(word, names)
  local lower = word:lower()
  local limit = math.floor(math.max(#word, 3) / 3)
  local found
  for _, name in ipairs(names) do
    if math.abs(#name - #word) <= limit then
      local distance = nearest.distance(lower, name:lower())
      if distance < limit or (distance == limit and not found) then
        found, limit = name, distance
      end
    end
  end
  return found
end

--- The end of an error message: "; did you mean 'NAME'?", or "" where no name is near.
---@param word string
---@param names string[]
---@return string
function nearest.hint(word, names)
  local name = nearest.find(word, names)
  return name and ("; did you mean '%s'?"):format(name) or ''
end

return nearest
