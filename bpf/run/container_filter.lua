-- SPDX-License-Identifier: GPL-2.0-only
--- Container filter: what --container means for events that no program takes, and --cgroups, too, for those of a
--- recording.
local bit = require 'bit'
local cgroups = require 'bpf.groups.cgroups'
local dispatch = require 'bindings.view.dispatch'
local failure = require 'bindings.base.failure'
local ffi = require 'ffi'
local route = require 'bpf.plan.route'

local C = ffi.C
local container_filter = {}

--- Returns the branches that drop the samples of a recording from tasks in other groups.
local function of_recording(run, branches)
  local inside = setmetatable({}, { __index = function(known, id)
    local is_inside = cgroups.is_recorded_in(run.opt, id)
    known[id] = is_inside
    return is_inside
  end })
  for _, event in ipairs(run.events.list) do
    if event.request.record == 0 and not event.is_derived then
      branches[#branches + 1] = {
        class = event.class,
        code = ('if not inside[tonumber(part(e, %d))] then %s end'):format(C.PERF_SAMPLE_CGROUP,
          dispatch.reject 'target'),
        bound = { inside = inside, part = run.services.part },
      }
    end
  end
  return branches
end

--- Returns the branches that drop samples of perf from tasks in other containers than those of --container. They are of
--- all tasks, because perf has only groups that exist when they are opened. Programs have their own look.
---@param run Run
---@param branches? Branch[] that drop events of other threads
---@return Branch[]? branches these, and those
function container_filter.branches(run, branches)
  if run.is_recorded and run.opt.cgroups then return of_recording(run, branches or {}) end
  if not run.opt.container or run.everywhere then return branches end
  local part = run.services.part
  branches = branches or {}
  for _, event in ipairs(run.events.list) do
    local request, is_read = event.request, route.is_read(event.route) and not event.route.is_captured
    local is_sampled = is_read and request.counted == 0 and request.record == 0 and not event.machine
    if request.counted == 1 and #run.opt.cgroups == 0 then
      failure.unavailable('%s: no container %s: the kernel counts events only of containers that exist', run.name,
        table.concat(run.opt.container, ', '))
    elseif is_sampled and event.tracepoint and request.attr.sample_stack_user > 0 then
      failure.usage('%s: --call-graph with copied stacks does not work with --container', run.name)
    elseif is_sampled then
      request.everywhere, request.sample = 1, bit.bor(request.sample, C.PERF_SAMPLE_CGROUP)
      branches[#branches + 1] = {
        class = event.class,
        code = ('if not inside[tonumber(part(e, %d))] then %s end'):format(C.PERF_SAMPLE_CGROUP,
          dispatch.reject 'target'),
        bound = { inside = run.in_kernel:groups(), part = part },
      }
    end
  end
  return branches
end

--- Returns 1 if the samples of one of the events have the control group, else 0.
---@param list Event[]
---@return integer
function container_filter.reads_groups(list)
  for _, event in ipairs(list) do
    if bit.band(event.request.sample, C.PERF_SAMPLE_CGROUP) ~= 0 then return 1 end
  end
  return 0
end

return container_filter
