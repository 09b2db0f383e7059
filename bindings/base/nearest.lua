-- SPDX-License-Identifier: GPL-2.0-only
--- Finds the valid name nearest to a misspelled one, for "did you mean" in messages (runtime/nearest.h).
local ffi = require 'ffi'

local C = ffi.C
local nearest = {}

--- Returns the string keys of a table, sorted, as candidates for find().
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

--- Returns the candidate nearest to a word, ignoring case; the first one on a tie.
---@param word string
---@param names string[]
---@return string? name nil if more than a third of the word differs: such a suggestion would mislead
function nearest.find(word, names)
  local search, found = ffi.new 'struct nearest', nil
  C.nearest_start(search, word)
  for _, name in ipairs(names) do
    if C.nearest_try(search, name, #name) then found = name end
  end
  return found
end

--- Returns the end of an error message: "; did you mean 'NAME'?", or "" if no name is near.
---@param word string
---@param names string[]
---@return string
function nearest.hint(word, names)
  local name = nearest.find(word, names)
  return name and ("; did you mean '%s'?"):format(name) or ''
end

return nearest
