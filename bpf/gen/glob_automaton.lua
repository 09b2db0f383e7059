-- SPDX-License-Identifier: GPL-2.0-only
--- Globs as automata that need no loops and no memory of their own: a set of states is a 64-bit number, and state n
--- means that the first n elements of the pattern have matched.
local bit = require 'bit'
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local glob = {}

local MAX_ELEMENTS = 62

---@class GlobAutomaton
---@field table ffi.cdata* uint64_t[256]: for each byte, the states whose next element matches it
---@field stars ffi.cdata* uint64_t: the states whose next element is a star
---@field last integer the state that means a match

--- Returns the end of the bracket expression that starts at a position; nil if it is an ordinary character.
local function bracket_end(pattern, at)
  local stop = pattern:match('^%[[!^]?%]?()', at)
  while stop <= #pattern do
    local char = pattern:sub(stop, stop)
    if char == ']' then return stop end
    stop = stop + (char == '\\' and 2 or 1)
  end
end

--- Splits a pattern of fnmatch(3) into stars and patterns of one character.
local function elements(pattern)
  local list, at = {}, 1
  while at <= #pattern do
    local char, stop = pattern:sub(at, at), at
    if char == '\\' then
      if at == #pattern then return nil, 'the pattern ends with a backslash' end
      stop = at + 1
    elseif char == '[' then
      stop = bracket_end(pattern, at) or at
      if pattern:sub(at, stop):find '%[[:.=]' then return nil, 'character classes such as [:alpha:]' end
      if stop == at then char = nil end
    end
    if char ~= '*' or list[#list] ~= '*' then list[#list + 1] = char and pattern:sub(at, stop) or '\\[' end
    at = stop + 1
  end
  return list
end

--- Returns the automaton of a pattern of fnmatch(3).
---@param pattern string
---@return GlobAutomaton? automaton, string? reason why there is none
function glob.automaton(pattern)
  local list, why = elements(pattern)
  if not list then return nil, 'the glob: ' .. why end
  if #list > MAX_ELEMENTS then return nil, ('the glob has more than %d elements'):format(MAX_ELEMENTS) end
  local automaton = { table = ffi.new 'uint64_t[256]', stars = 0ULL, last = #list }
  for i, element in ipairs(list) do
    local state = bit.lshift(1ULL, i - 1)
    if element == '*' then
      automaton.stars = bit.bor(automaton.stars, state)
    else
      for byte = 1, 255 do
        if libc.fnmatch(element, string.char(byte), 0) == 0 then
          automaton.table[byte] = bit.bor(automaton.table[byte], state)
        end
      end
    end
  end
  return automaton
end

return glob
