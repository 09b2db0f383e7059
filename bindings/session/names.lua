-- SPDX-License-Identifier: GPL-2.0-only
--- Names and properties of what events are about.
local caches = require 'bindings.session.caches'
local cgroups = require 'bpf.groups.cgroups'
local check = require 'bindings.base.check'
local countable = require 'bindings.base.countable'
local output = require 'bindings.print.output'
local sampling = require 'bindings.view.sampling'
local views = require 'bindings.view.views'

local names = {}

--- Adds the functions about control groups.
---@param api Session
local function add_groups(api)
  --- Returns the name of a control group of this machine.
  ---@param id number `ev._cgroup`
  ---@return string name its path from the root, '/' for the root; the id if the group is unknown or gone
  function api.cgroup_name(id)
    check.is(tonumber(id), 'number', 'session.cgroup_name takes the id of a control group (ev._cgroup)')
    return cgroups.name(tonumber(id))
  end

  --- Returns the container, pod or systemd unit whose tasks are in a control group of this machine.
  ---@param id number `ev._cgroup`
  ---@return string name the path of the group if it is none of these; the id if the group is unknown
  function api.container_name(id)
    check.is(tonumber(id), 'number', 'session.container_name takes the id of a control group (ev._cgroup)')
    return cgroups.container(id)
  end
end

--- Adds the functions.
---@param api Session
---@param of SessionParts
function names.add(api, of)
  local run, services, session = of.run, of.run.services, of.run.session

  --- Returns the last name of a thread, which may have exited.
  ---@param tid integer
  ---@return string name '<...>' if unknown
  function api.task_name(tid)
    check.is(tid, 'number', 'session.task_name takes a thread id')
    return output.safe(services.task_name(tid, math.huge))
  end

  --- Returns the name of a system call on this machine or the recording's. Those of x32 and i386 programs on x86-64
  --- begin with `x32:` and `i386:`. The numbers of i386 have bit 29 in `ev.id` if a BPF program takes the events; in
  --- perf's samples they are those of other calls.
  ---@param nr integer
  ---@return string name the number if it is unknown
  function api.syscall_name(nr)
    check.is(tonumber(nr), 'number', 'session.syscall_name takes the number of a system call')
    return services.expression_env.syscall_name(nr)
  end

  --- Returns the registers of a sample. Its event must have been requested with sample = { 'regs_user' } or
  --- { 'regs_intr' }.
  ---@param ev Ev
  ---@param part? 'regs_user'|'regs_intr' default: 'regs_user'
  ---@return { name: string, value: integer64 }[]? list in the kernel's order; nil if the sample has none, as for kernel
  --- threads
  function api.registers(ev, part)
    if part ~= nil and part ~= 'regs_user' and part ~= 'regs_intr' then
      error(("session.registers takes 'regs_user' or 'regs_intr', not %s"):format(check.shown(part)), 2)
    end
    return sampling.registers(session, views.event(ev, 'session.registers'), part)
  end

  --- Returns for each CPU the first CPU that shares its cache at a level, on this machine or the recording's.
  ---@param level integer from 1
  ---@return table<integer, integer>? first by CPU; nil if unknown
  function api.cache_sharers(level)
    check.is(level, 'number', 'session.cache_sharers takes a cache level')
    return caches.sharers(run, level)
  end
  add_groups(api)
  for _, text in ipairs { api.syscall_name, api.cgroup_name, api.container_name } do countable.add_text(text) end
end

return names
