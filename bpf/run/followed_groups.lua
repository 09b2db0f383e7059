-- SPDX-License-Identifier: GPL-2.0-only
--- The control groups that --cgroups or --container names, as programs know them. Programs follow groups that are made
--- later; those of containers that are started later are looked for.
local cgroups = require 'bpf.groups.cgroups'
local program = require 'bpf.gen.program'

local followed_groups = {}

---@class FollowedGroups
---@field ids table<number, boolean> the groups' ids, as keys
---@field package _run Run
---@field package _of Targets
---@field package _made number groups that were made when they were last looked for
local FollowedGroups = {}
FollowedGroups.__index = FollowedGroups

--- Adds the groups that the run names to those that programs know, and marks the threads that are in them now.
---@return boolean any
---@return string[] others containers that have other names
local function find(self)
  local opt, of, ids, directories = self._run.opt, self._of, {}, {}
  local function add(id, directory)
    ids[#ids + 1], directories[#directories + 1], self.ids[id] = id, directory, true
  end
  self._made = of.groups.made[0]
  local any, others = true, {}
  if opt.container then any, others = cgroups.of_containers(opt.container, add) else cgroups.all(opt.cgroups, add) end
  of:add(ids)
  for _, directory in ipairs(of.mark and directories or {}) do of:mark(cgroups.threads(directory)) end
  return any, others
end

--- Makes programs follow the groups. They run before the groups are looked for, so none is missing.
---@param run Run
---@param of Targets targets.group_tasks() or targets.group_threads()
---@return FollowedGroups
function followed_groups.new(run, of)
  local self = setmetatable({ ids = {}, _run = run, _of = of }, FollowedGroups)
  if not program.is_dry() then of:attach() end
  local any, others = find(self)
  if not any then
    run.out:warn(('%s: no container %s yet%s'):format(run.name, table.concat(run.opt.container, ', '),
      others[1] and '; there are ' .. table.concat(others, ', ') or ''))
  end
  return self
end

--- Looks for containers that have been made since.
function FollowedGroups:poll()
  if self._run.opt.container and self._of.groups.made[0] ~= self._made then find(self) end
end

return followed_groups
