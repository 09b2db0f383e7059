-- SPDX-License-Identifier: GPL-2.0-only
--- Whether events get lost: what the kernel counted against what arrived.
local native = require 'bindings.native'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_ROWS = 4096

return {
  summary = 'Whether events are lost or late: what was counted, delivered, lost',
  description = [[
Each event is recorded and counted at the same time; `missing` is what was counted and not delivered.
The last line says how much of it the kernel had no room for. The rest is without a word: some kernels
do not deliver what certain tasks do, and some events at the start and the end are on one side only.
Where threads are named their rings also tell of names and ends of tasks, which are no events but can be
lost. `late` came after a younger one.

  $ profscript event-lost -q -m 1 -e raw_syscalls:sys_enter -- find /usr -name x.y
  2026-11-22 11:29:44.126967
  event          counted    delivered      missing
  --------- ------------ ------------ ------------
  sys_enter       263095         3526       259569
  lost 259569, missing without a word 0, late 0]],
  examples = {
    { 'profscript event-lost -e sched:sched_wakeup,sched:sched_switch -m 64 --duration 10', 'with small rings' },
    { 'profscript event-lost -e raw_syscalls:sys_enter -- ls -R /usr', 'of a command' },
  },
  options = {
    perins = { type = 'flag', help = 'rows for each CPU or thread' },
    exit_n = { help = 'stop soon after this many events' },
  },

  start = function(opt, out, session)
    local list, twins = {}, {}
    for _, group in ipairs(opt.event) do
      for _, event in ipairs(group) do
        if event.freq then return nil, ('%s is sampled by time: it cannot be counted against'):format(event.name) end
        list[#list + 1] = event
        local filter, cpus = event.filter or opt.filter, event.attrs.cpus
        filter = filter and ('"%s"'):format(filter:gsub('["\\]', '\\%0')) or ''
        twins[#twins + 1] = ('%s/%s/%s'):format(event.name, filter, cpus and ('cpus=%s/'):format(cpus) or '')
      end
    end
    local counts = session.count(twins)
    local is_thread = counts.title == 'THREAD'
    local delivered = native.numbers((MAX_ROWS + 1) * #list)
    local keys, lost, last, late, left = native.keys(1, MAX_ROWS), 0, 0, 0, opt.exit_n or math.huge
    -- What a thread has started is counted with it: by thread, the named one that it comes from.
    local root, perins = opt.perins and is_thread and native.numbers(threads.MAX), opt.perins

    local handlers = {}
    for i, event in ipairs(list) do
      handlers[event] = function(ev)
        local id = 0
        if root then
          id = keys.id(root[ev._tid])
        elseif perins then
          id = keys.id(ev._cpu)
        end
        local at = id * #list + i - 1
        delivered[at] = delivered[at] + 1
        if ev._time < last then late = late + 1 end
        last, left = ev._time, left - 1
        if left == 0 then session.stop() end
      end
    end
    if root then
      function handlers.targets(tids)
        for _, tid in ipairs(tids) do root[tid] = tid end
      end
      function handlers.fork(ev) root[ev._tid] = root[ev._parent] end
    end
    handlers.lost = function(gap) lost = lost + gap.lost end

    local spec = tables.new('event-lost', {
      { name = 'instance', title = '[' .. counts.title .. ']', align = 'left', show = opt.perins },
      { name = 'event', align = 'left' },
      { name = 'counted', width = 12, align = 'right' },
      { name = 'delivered', width = 12, align = 'right' },
      { name = 'missing', width = 12, align = 'right', alert = true },
    })
    local function report()
      local rows, sums, missing = {}, {}, 0
      for row = 1, counts:rows() do
        local instance = counts:id(row)
        local id = perins and keys.id(instance) or 0
        for i, event in ipairs(list) do
          local n = counts:get(row, i)
          if n then
            local at = id * #list + i - 1
            local sum = not perins and sums[i]
            if not sum then
              sum = { instance = instance, event = event.alias, counted = 0, delivered = 0, missing = 0 }
              sums[i] = sum
              rows[#rows + 1] = sum
            end
            sum.counted, sum.delivered = sum.counted + n, sum.delivered + delivered[at]
            delivered[at] = 0
          end
        end
      end
      for _, row in ipairs(rows) do
        row.missing = row.counted - row.delivered
        missing = missing + row.missing
      end
      out:table(spec, rows)
      local others = lost > missing and (' (%d of them no events)'):format(lost - missing) or ''
      out:printf('lost %d%s, missing without a word %d, late %d\n', lost, others, math.max(0, missing - lost), late)
      lost, late = 0, 0
    end
    handlers.interval, handlers.stop = report, report
    return handlers
  end,
}
