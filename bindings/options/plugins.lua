-- SPDX-License-Identifier: GPL-2.0-only
--- Finds plug-ins by their place: the files of a folder in scripts/lib/, in the order of their names.
---
--- Those in followers/ go along with a run. They are read at the start of every command, so they are small: what does
--- the work is a module that `new` loads.
local sys = require 'bindings.base.sys'

local plugins = {}

---@class Plugin
---@field name? string that of the file, set here
---@field options? opt.Option[] see bindings/options/declare.lua
---@field after? string the common option that these follow in help; nil: the last one of their group
---@field new fun(run: Run): Follower? creates the follower; nil if the options do not ask for it

local followers

--- Returns the names of the modules in a folder.
---@param folder string in scripts/lib/
---@return string[]
function plugins.names(folder)
  local names = {}
  for _, file in ipairs(sys.readdir(('%s/scripts/lib/%s'):format(arg.data_dir, folder)) or {}) do
    names[#names + 1] = file:match '^([%l_]+)%.lua$'
  end
  table.sort(names)
  return names
end

--- Returns the followers.
---@return Plugin[]
function plugins.list()
  if followers then return followers end
  followers = {}
  for i, name in ipairs(plugins.names 'followers') do
    followers[i] = require(('lib.followers.%s'):format(name))
    followers[i].name = name
  end
  return followers
end

--- Adds the options of the followers to the common ones, each at its place.
---@param options opt.Option[]
function plugins.add_options(options)
  local waiting = {}
  local function place(plugin)
    local after
    for at, option in ipairs(options) do
      local is_it = option.name == plugin.after or not plugin.after and option.group == plugin.options[1].group
      after = is_it and at or after
    end
    if not after then
      waiting[#waiting + 1] = plugin -- its options follow those of another follower
      return
    end
    for i, own in ipairs(plugin.options) do table.insert(options, after + i, own) end
  end
  for _, plugin in ipairs(plugins.list()) do
    if plugin.options then place(plugin) end
  end
  while #waiting > 0 do
    local last = waiting
    waiting = {}
    for _, plugin in ipairs(last) do place(plugin) end
    assert(#waiting < #last, 'a follower has its options after one that does not exist')
  end
end

return plugins
