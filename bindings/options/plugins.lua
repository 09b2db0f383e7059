-- SPDX-License-Identifier: GPL-2.0-only
--- Finds what goes along with a run by its place: each file in scripts/lib/followers/ returns a table. The files are
--- read at the start of every run, so they are small: what does the work is a module that `new` loads.
local sys = require 'bindings.base.sys'

local plugins = {}

---@class Plugin
---@field name? string that of the file, set here
---@field new fun(run: Run): Follower? creates the follower; nil if the options do not ask for it

local FOLDER, ROOM = arg.data_dir .. '/scripts/lib/followers', 'lib.followers.'
local list

--- Returns all of them, in the order of their names.
---@return Plugin[]
function plugins.list()
  if list then return list end
  local names = {}
  for _, file in ipairs(sys.readdir(FOLDER) or {}) do names[#names + 1] = file:match '^([%l_]+)%.lua$' end
  table.sort(names)
  list = {}
  for i, name in ipairs(names) do
    list[i] = require(ROOM .. name)
    list[i].name = name
  end
  return list
end

return plugins
