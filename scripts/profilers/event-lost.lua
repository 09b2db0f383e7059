-- SPDX-License-Identifier: GPL-2.0-only
--- Whether events get lost: what the kernel counted against what arrived.
local native = require 'bindings.native'
local tables = require 'lib.table'

local MAX_ROWS = 4096

return {
  summary = 'Whether events are lost or late: what was counted, delivered, lost',
  description = [[
Each event is recorded and counted at the same time; `missing` is what was counted and not delivered.
The last line says how much of it the kernel had no room for. The rest is without a word: some kernels
do not deliver what certain tasks do, and some events at the start and the end are on one side only.
`late` came after a younger one.

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
  options = { perins = { type = 'flag', help = 'rows for each CPU or thread' } },

  start = function(opt, out, session)
    local list, twins = {}, {}
    for _, group in ipairs(opt.event) do
      for _, event in ipairs(group) do
        if event.freq then return nil, ('%s is sampled by time: it cannot be counted against'):format(event.name) end
        list[#list + 1] = event
        local filter = event.filter or opt.filter
        twins[#twins + 1] = filter and ('%s/"%s"/'):format(event.name, filter:gsub('["\\]', '\\%0')) or event.name
      end
    end
    local counts = session.count(twins)
    local is_thread = counts.title == 'THREAD'
    local delivered, last, late = native.numbers((MAX_ROWS + 1) * #list), native.numbers(MAX_ROWS + 1), 0
    local keys, lost = native.keys(1, MAX_ROWS), 0

    local handlers = {}
    for i, event in ipairs(list) do
      handlers[event] = function(ev)
        local id
        if is_thread then id = keys.id(ev._tid) else id = keys.id(ev._cpu) end
        local at = id * #list + i - 1
        delivered[at] = delivered[at] + 1
        if ev._time < last[id] then late = late + 1 end
        last[id] = ev._time
      end
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
        local id = keys.id(instance)
        for i, event in ipairs(list) do
          local n = counts:get(row, i)
          if n then
            local at = id * #list + i - 1
            local sum = not opt.perins and sums[i]
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
      out:printf('lost %d, missing without a word %d, late %d\n', lost, missing - lost, late)
      lost, late = 0, 0
    end
    handlers.interval, handlers.stop = report, report
    return handlers
  end,
}
