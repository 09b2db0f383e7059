-- SPDX-License-Identifier: GPL-2.0-only
--- Utilization of CPUs or threads.
local ratios = require 'lib.ratios'
local tables = require 'lib.table'

local SAMPLE_EVERY = 1e6 -- ns

--- Returns the handlers for one mode, user or kernel: no counter of the scheduler knows it, so the clock samples it.
local function sampled(opt, out, session)
  session.want { own_exit_n = true }
  local clock = session.event { 'cpu-clock', period = SAMPLE_EVERY, exclude_idle = true }
  local id, title, format = '_cpu', '[CPU]', '[%03d]'
  if session.per_thread then id, title, format = '_tid', '[THREAD]', '[%6d]' end
  local spec = tables.new('cpu-util', {
    { name = id:sub(2), title = title, format = format, align = 'right' },
    { name = 'util', title = 'UTIL%', format = '%.1f', width = 6, align = 'right' },
    { name = 'busy_ns', metric = 'counter', title = 'BUSY(ms)', format = '%.3f', scale = 1e6, width = 10,
      align = 'right' },
  })
  local busy, before, left = {}, 0, opt.exit_n or math.huge
  local function report(time)
    if left == 0 then return end
    local rows = {}
    for number, ns in pairs(busy) do
      rows[#rows + 1] = { [id:sub(2)] = number, busy_ns = ns, util = ratios.percent(ns, time - before) }
      busy[number] = 0 -- and stays a row
    end
    table.sort(rows, function(a, b) return a[id:sub(2)] < b[id:sub(2)] end)
    out:table(spec, rows)
    before, left = time, left - 1
    if left == 0 then session.stop() end
  end
  return {
    [clock] = function(ev) busy[ev[id]] = (busy[ev[id]] or 0) + tonumber(ev._period) end,
    interval = report,
    stop = report,
  }
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
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' }, exclude_user = {},
    exclude_kernel = {}, exclude_host = { own = true }, exclude_guest = { own = true } },

  start = function(opt, out, session)
    for name, value in pairs { ['exclude-host'] = opt.exclude_host, ['exclude-guest'] = opt.exclude_guest } do
      if value then out:warn(('cpu-util: --%s has no effect: guests count as the tasks that run them'):format(name)) end
    end
    if opt.exclude_user or opt.exclude_kernel then return sampled(opt, out, session) end
    local has_cycles = session.supports 'cycles'
    local busy = session.per_thread and 'task-clock' or 'sched:sched_stat_runtime'
    return ratios.start({
      name = 'cpu-util',
      events = has_cycles and { busy, 'cycles' } or { busy },
      columns = {
        { name = 'util', title = 'UTIL%', format = '%.1f', width = 6 },
        { name = 'busy_ns', metric = 'counter', title = 'BUSY(ms)', format = '%.3f', scale = 1e6, width = 10 },
        { name = 'cycles', metric = 'counter', title = 'CYCLES', show = has_cycles },
        { name = 'ghz', title = 'GHz', format = '%.2f', show = has_cycles },
      },
      row = function(n, _, ns)
        local ghz = n[2] and n[1] > 0 and n[2] / n[1] or nil
        return { util = ratios.percent(n[1], ns), busy_ns = n[1], cycles = n[2], ghz = ghz }
      end,
    }, opt, out, session)
  end,
}
