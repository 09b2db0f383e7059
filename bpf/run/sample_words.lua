-- SPDX-License-Identifier: GPL-2.0-only
--- Parts of samples that scripts ask for by reading them, such as `ev._cgroup`: the kernel writes them only if they are
--- requested when the events are opened.
local failure = require 'bindings.base.failure'
local mentions = require 'bpf.handlers.mentions'

local sample_words = {}

local function is_group(text)
  return text:find('_cgroup', 1, true) ~= nil and text:find '%f[%w_]_cgroup%f[^%w_]' ~= nil
    or text:find('_container', 1, true) ~= nil and text:find '%f[%w_]_container%f[^%w_]' ~= nil
end

--- Returns whether a script or its options read the control groups of tasks.
---@param script scripts.Script
---@param opt table
---@return boolean
function sample_words.reads_groups(script, opt)
  if opt.input and opt.cgroups and script.profiler.everywhere then
    failure.usage('--%s is not for recordings of switches: they have only the group of the current task',
      opt.container and 'container' or 'cgroups')
  end
  if opt.input and opt.cgroups or mentions.option(opt, is_group) then return true end
  return not script.is_shipped and mentions.any({ script.profiler.start }, is_group, nil, mentions.is_library())
end

return sample_words
