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

local LEAST_STEM = 4 -- letters

--- The one name that goes on where the word ends, or ends where the word goes on: 'freq' for 'frequency'.
local function longer_or_shorter(word, names)
  local found
  word = word:lower()
  for _, name in ipairs(names) do
    local stem = name:lower():sub(1, #word)
    if #stem >= LEAST_STEM and word:sub(1, #stem) == stem then
      if found then return end
      found = name
    end
  end
  return found
end

--- Returns the candidate nearest to a word, ignoring case. On a tie it is the first one that begins like the word, or
--- else the first one.
---@param word string
---@param names string[] if there are very many, not all are searched
---@return string? name nil if more than a third of the word differs: such a suggestion would mislead
function nearest.find(word, names)
  local search, found = ffi.new 'struct nearest', nil
  C.nearest_start(search, word)
  local first = word:byte(1)
  for _, begins_alike in ipairs { true, false } do
    for _, name in ipairs(names) do
      if search.limit < 0 then return found end
      if (name:byte(1) == first) == begins_alike and C.nearest_try(search, name, #name) then found = name end
    end
  end
  return found or longer_or_shorter(word, names)
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
