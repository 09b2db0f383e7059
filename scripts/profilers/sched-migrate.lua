-- SPDX-License-Identifier: GPL-2.0-only
--- Task migrations, and whether they stay within a shared cache.
local array = require 'lib.array'
local flamegraph = require 'lib.flamegraph'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'
local threads = require 'lib.threads'

local MAX_CPU = threads.MAX_CPUS

--- Returns a cache number for each CPU, the same for CPUs that share a cache of this level; 0 if unknown.
local function cache_numbers(session, level)
  local sharers, number = session.cache_sharers(level), array.new(MAX_CPU)
  for cpu, first in pairs(sharers or {}) do number[cpu] = first + 1 end
  return number, sharers ~= nil
end

return {
  summary = 'Count task migrations, and those within a shared cache',
  description = [[
Counts task migrations (sched:sched_migrate_task), and those between CPUs that
share the last-level cache or the L2 cache, according to sysfs or the recording.
-p, -t and a workload select the tasks that are migrated, with new threads and
children.

  $ profscript sched-migrate -- sh -c 'perf bench sched messaging >/dev/null'
  2026-11-22 11:29:11.185559
       total   same LLC   hit%    same L2   hit%
  ---------- ---------- ------ ---------- ------
         975        975  100.0          0    0.0]],
  examples = {
    { 'profscript sched-migrate -i 1000', 'every second' },
    { 'profscript sched-migrate --detail -g -p 1', 'migrations of a process out of the last-level cache, with stacks' },
  },
  everywhere = true,
  unsupported = { 'event' },
  options = flamegraph.options {
    detail = { type = 'flag', help = 'print migrations out of the last-level cache' },
    call_graph = { help = 'record the stacks of the migrations that --detail prints' },
    filter = { own = true, help = 'only migrations that match this filter' },
    user_callchain = {},
    kernel_callchain = {},
  },

  start = function(opt, out, session)
    local ours = threads.new(session, opt)
    local llc, has_llc = cache_numbers(session, 3)
    local l2, has_l2 = cache_numbers(session, 2)
    if not has_llc then llc, has_llc = l2, has_l2 end
    local flame = flamegraph.new(opt, session, out, { title = 'task migrations', unit = 'migrations' })
    local total, same_llc, same_l2, detail = 0, 0, 0, opt.detail

    local function migrate(ev)
      local from, to = ev.orig_cpu, ev.dest_cpu
      if not ours.has(ev.pid) or from < 0 or from >= MAX_CPU or to < 0 or to >= MAX_CPU then return end
      total = total + 1
      local stays = llc[from] == llc[to] and llc[from] > 0
      if stays then same_llc = same_llc + 1 end
      if l2[from] == l2[to] and l2[from] > 0 then same_l2 = same_l2 + 1 end
      if flame then flame:add(ev, 1) end
      if detail and not stays then out:print_event(ev) end
    end

    local spec = tables.new('sched-migrate', {
      { name = 'total', metric = 'counter', width = 10 },
      { name = 'same_llc', metric = 'counter', title = 'same LLC', width = 10, show = has_llc },
      { name = 'llc_percent', title = 'hit%', width = 6, format = '%.1f', show = has_llc },
      { name = 'same_l2', metric = 'counter', title = 'same L2', width = 10, show = has_l2 },
      { name = 'l2_percent', title = 'hit%', width = 6, format = '%.1f', show = has_l2 },
    })
    local function print_counts()
      out:table(spec, {
        {
          total = total, same_llc = same_llc, same_l2 = same_l2,
          llc_percent = total > 0 and 100 * same_llc / total or 0,
          l2_percent = total > 0 and 100 * same_l2 / total or 0,
        },
      })
    end
    local function report()
      if flame and opt.interval then flame:interval() end
      print_counts()
      total, same_llc, same_l2 = 0, 0, 0
    end
    return ours.follow {
      [task_filter.select('sched:sched_migrate_task', opt.filter, ours.filter 'pid')] = migrate,
      draw = print_counts,
      interval = report,
      stop = function()
        report()
        if flame then flame:finish() end
      end,
    }
  end,
}
