-- SPDX-License-Identifier: GPL-2.0-only
--- Followers: what goes along with a run beside its script, such as an export or the metrics of its reports. Each is a
--- file in scripts/lib/followers/ (see bindings/options/plugins.lua), by whose name the run knows it. They are called
--- in the order of their names.
local failure = require 'bindings.base.failure'
local plugins = require 'bindings.options.plugins'

local followers = {}

--- Its functions are called in this order.
---@class Follower
---@field prepare? fun(self, taken: table<integer, string>) the script's events and handlers are known: it may refuse
--- the run. taken: by class, what this process does with an event, so that it must see it
---@field describe? fun(self): string a line for --dry-run
---@field open? fun(self) before the session starts
---@field start? fun(self) just before the first batch
---@field add_passes? fun(self, passes: Passes, run: Run) for each version of the script
---@field poll? fun(self): boolean? between batches; true ends the run
---@field interval? fun(self, time: number): boolean? in each report, after the script; true ends the run
---@field reported? fun(self, time: number) after each report
---@field report? fun(self) prints on SIGUSR2 what it has done
---@field ended? fun(self) the events have ended, and the script's `stop` has yet to be called
---@field stop? fun(self, time: number) in the last report, after the script
---@field close? fun(self, ok: boolean) at the end, also of a run that has failed
---
--- If another version of the script takes over, or events are opened again:
---@field leave? fun(self, time: number) another session follows
---@field again? fun(self, run: Run) this is the run of another version of the script, maybe in another session. A
--- follower without this function knows nothing about the script, and is created anew for another session
---@field only_session? string the option, if the follower cannot continue in another session
---@field of_version? boolean it belongs to one version of the script: another one needs another session

--- Creates the followers that the options ask for.
---@param run Run
---@param before? Follower[] those of the session before
---@return Follower[]
function followers.new(run, before)
  local list = {}
  for _, plugin in ipairs(plugins.list()) do
    local name = plugin.name
    local kept = before and before[name]
    if kept and kept.again then kept:again(run) else kept = plugin.new(run) end
    run[name], list[#list + 1] = kept, kept
  end
  return list
end

--- Returns those that another version of the script keeps.
---@param list Follower[]
---@return Follower[]
function followers.lasting(list)
  local lasting = {}
  for _, follower in ipairs(list) do
    if not follower.of_version then lasting[#lasting + 1] = follower end
  end
  return lasting
end

--- Calls a function of all followers that have it. Returns whether one of them wants the run to end.
---@param list Follower[]
---@param name string
---@param argument any the compiler does not know varargs
---@return boolean ends
function followers.call(list, name, argument)
  local ends = false
  for _, follower in ipairs(list) do
    local call = follower[name]
    if call and call(follower, argument) then ends = true end
  end
  return ends
end

--- Does the same, and calls the others even if one fails. Returns false and the first problem then.
---@param list Follower[]
---@param name string
---@return boolean ok
---@return any problem
function followers.call_all(list, name, ...)
  local all, first = true, nil
  for _, follower in ipairs(list) do
    if follower[name] then
      local ok, problem = xpcall(follower[name], failure.traceback, follower, ...)
      if all and not ok then all, first = false, problem end
    end
  end
  return all, first
end

return followers
