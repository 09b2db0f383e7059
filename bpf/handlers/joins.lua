-- SPDX-License-Identifier: GPL-2.0-only
--- The joins of scripts (lib.join), and those in which no key matched: their results are empty, which no counter shows.
local joins = {}

--- What a join has found.
---@class JoinFound
---@field found boolean any start
---@field starts number without an end
---@field ends number without a start

local known = setmetatable({}, { __mode = 'k' })

--- Adds a join.
---@param join table
---@param found fun(join: table): JoinFound
function joins.add(join, found) known[join] = found end

--- Returns a line about a join in which no key matched; nil: one did, or none could.
---@param n JoinFound
---@return string?
function joins.difference(n)
  if n.found or n.starts == 0 or n.ends == 0 then return end
  return ('lib.join: none of %d finish() had the key of one of %d start() before it'):format(n.ends, n.starts)
end

--- Returns lines about the joins in which no key matched.
---@return string[]
function joins.differences()
  local lines = {}
  if next(known) then collectgarbage() end -- those of an earlier version of the script
  for join, found in pairs(known) do lines[#lines + 1] = joins.difference(found(join)) end
  return lines
end

return joins
