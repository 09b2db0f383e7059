-- SPDX-License-Identifier: GPL-2.0-only
--- The nearest valid name to a misspelt one, for "did you mean" in messages (runtime/nearest.h).
local ffi = require 'ffi'

local C = ffi.C
local nearest = {}

--- The string keys of a table in alphabetical order, as candidates for find().
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

--- The candidate closest to word, case ignored; nil when more than a third of word would have to
--- change, because then the proposal would mislead. The first of several equally close ones wins.
---@param word string
---@param names string[]
---@return string?
function nearest.find(word, names)
  local search, found = ffi.new 'struct nearest', nil
  C.nearest_start(search, word)
  for _, name in ipairs(names) do
    if C.nearest_try(search, name, #name) then found = name end
  end
  return found
end

--- The tail of an error message: "; did you mean 'NAME'?", or nothing when no name is near.
---@param word string
---@param names string[]
---@return string
function nearest.hint(word, names)
  local name = nearest.find(word, names)
  return name and ("; did you mean '%s'?"):format(name) or ''
end

return nearest
