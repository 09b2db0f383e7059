-- SPDX-License-Identifier: GPL-2.0-only
--- Utilization of CPUs or threads.
local ratios = require 'lib.ratios'
local reports = require 'lib.reports'
local sorted = require 'lib.sorted'

--- For one mode, user or kernel: no counter of the scheduler knows it, so the clock samples it.
---@return function read as in RatioSettings, as the other result
---@return table handlers
local function sampled(session)
  session.want { own_exit_n = true }
  local clock = session.event { 'cpu-clock', period = 1e6, exclude_idle = true }
  local id, busy = session.instance_field, {}
  local function sample(ev) busy[ev[id]] = (busy[ev[id]] or 0) + tonumber(ev._period) end
  return function(add)
    for _, instance in ipairs(sorted.keys(busy)) do
      add(instance, { busy[instance] }, 1)
      busy[instance] = 0 -- and stays a row
    end
  end, { [clock] = sample }
end

return {
  summary = 'Measure the utilization of CPUs or threads',
  description = [[
For CPUs, measures the time that tasks ran, as the scheduler accounts it. For
threads (-p, -t or a workload), measures the CPU time of each thread and its
descendants, which can exceed 100 %. With a hardware PMU, also prints cycles,
and cycles per busy ns (GHz). The cycles are tested with synthetic counts only.
--exclude-kernel and --exclude-user measure one mode, by samples every 1 ms.

  $ profscript cpu-util -i 500 -N 1
  2026-11-22 10:45:09.783788
  [CPU]  UTIL%   BUSY(ms)
  ----- ------ ----------
  [000]  101.0    505.117
  [001]  101.8    509.062]],
  examples = {
    { 'profscript cpu-util -i 1000', 'each CPU, every second' },
    { 'profscript cpu-util -- make -j4', 'a command and its children' },
    { 'profscript cpu-util --exclude-user', 'time in the kernel' },
  },
  unsupported = { 'event', 'ring', 'samples', 'modes' },
  options = reports.options { exclude_user = {}, exclude_kernel = {}, exclude_host = { own = true },
    exclude_guest = { own = true } },

  start = function(opt, out, session)
    for name, value in pairs { ['exclude-host'] = opt.exclude_host, ['exclude-guest'] = opt.exclude_guest } do
      if value then out:warn(('cpu-util: --%s has no effect: guests count as the tasks that run them'):format(name)) end
    end
    local read, handlers
    if opt.exclude_user or opt.exclude_kernel then read, handlers = sampled(session) end
    local has_cycles = not read and session.supports 'cycles'
    return ratios.start({
      name = 'cpu-util',
      events = { ratios.running(session), has_cycles and 'cycles' or nil },
      read = read, handlers = handlers,
      columns = {
        { name = 'util', title = 'UTIL%', format = '%.1f', width = 6 },
        { name = 'busy_ns', metric = 'counter', title = 'BUSY', unit = 'ns', width = 8 },
        { name = 'cycles', metric = 'counter', title = 'CYCLES', show = has_cycles },
        { name = 'ghz', title = 'GHz', format = '%.2f', show = has_cycles },
      },
      row = function(n, _, ns)
        local util, ghz = ratios.percent(n[1], ns), has_cycles and ratios.of(n[2], n[1]) or nil
        return { util = util, busy_ns = n[1], cycles = n[2], ghz = ghz }
      end,
    }, opt, out, session)
  end,
}
