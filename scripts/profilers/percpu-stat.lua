-- SPDX-License-Identifier: GPL-2.0-only
--- A fixed panel of kernel activity per CPU. Longer than most profilers because the panel is a list of twenty events.
-- luacheck: ignore 631 (the help shows a wide table)
local events = require 'lib.events'
local reports = require 'lib.reports'
local tables = require 'lib.table'

-- The columns of the table. gap: a new group of columns; half: the event happens at entry and exit.
local PANEL = {
  { 'raw_syscalls:sys_enter', 'syscalls', title = 'SYSCALLS', only = 'syscalls' },
  { 'context-switches', 'csw', title = 'SOFT csw' },
  { 'cpu-migrations', 'cpu_mig', title = 'cpu-mig' },
  { 'minor-faults', 'minflt' },
  { 'major-faults', 'majflt' },

  { 'irq:irq_handler_entry', 'hardirq', gap = true },
  { 'irq:softirq_entry', 'softirq' },
  { 'timer:hrtimer_expire_entry', 'hrtimer' },
  { 'workqueue:workqueue_execute_start', 'workqueue' },
  { 'kvm:kvm_exit', 'kvm_exit', title = 'KVM exit', gap = true },
  { 'net:netif_receive_skb', 'recv', title = 'NET recv', gap = true },
  { 'net:net_dev_xmit', 'xmit' },
  { 'net:napi_gro_receive_entry', 'gro' },
  { 'kmem:mm_page_alloc', 'alloc', title = 'MM alloc', gap = true },
  { 'compaction:mm_compaction_migratepages', 'compact' },
  { 'vmscan:mm_vmscan_direct_reclaim_begin', 'reclaim' },
  { 'migrate:mm_migrate_pages', 'migrate' },
  { 'filemap:mm_filemap_add_to_page_cache', 'cache', title = 'PAGE cache', gap = true },
  { 'writeback:wbc_writepage', 'pages', title = 'WB pages', gap = true },
  { 'power:cpu_idle', 'idle', gap = true, half = true },
}

local LEAST = 6 -- characters of a column of counts

--- Returns tables below each other that are as wide as a terminal, each with the column of CPUs or threads.
local function in_parts(columns, width, rows)
  local parts, part, used = {}, {}, 0
  local first = #columns[1].title + 1 + LEAST
  for i = 2, #columns do
    local size = math.max(#(columns[i].title or columns[i].name), LEAST) + #columns[i].sep
    if #part == 0 or used + size > width then
      part, used = { columns[1] }, first
      parts[#parts + 1] = part
    end
    part[#part + 1], used = columns[i], used + size
  end
  for i, list in ipairs(parts) do
    parts[i] = tables.render({ name = 'percpu-stat', columns = list }, rows, true, width)
  end
  return table.concat(parts, '\n')
end

return {
  summary = 'Count kernel activity per CPU: scheduling, IRQs, memory, I/O',
  description = [[
Counts scheduling, faults, interrupts, timers, KVM, network, memory, page cache
and idle periods in one table; the row [ALL] is the sum. Events that this kernel
lacks are reported once and have no column.

  $ profscript percpu-stat -q -i 1000 -N 1
  2026-11-22 10:45:10.995969
  [CPU] SOFT csw cpu-mig minflt majflt  hardirq softirq hrtimer workqueue  KVM exit  NET recv xmit gro  MM alloc compact reclaim migrate  PAGE cache  WB pages  idle
  ----- -------- ------- ------ ------  ------- ------- ------- ---------  --------  -------- ---- ---  -------- ------- ------- -------  ----------  --------  ----
  [000]   143698       0      0      0        0     276     253         4         0         0    0   0         0       0       0       0           0         0     0
  [001]      859      19  20490     15       54     425     433        31         0         0    0   0     20516       0       0       0         409         0     0
  [ALL]   144557      19  20490     15       54     701     686        35         0         0    0   0     20516       0       0       0         409         0     0]],
  examples = {
    { 'profscript percpu-stat', 'every second, all CPUs' },
    { 'profscript percpu-stat -C 0 -i 100 --syscalls', 'CPU 0 every 100 ms, with system calls' },
  },
  unsupported = { 'event', 'ring', 'samples' },
  options = reports.options { syscalls = { type = 'flag', help = 'also count system calls' } },

  start = function(opt, out, session)
    local wanted = {}
    for _, column in ipairs(PANEL) do
      if not column.only or opt[column.only] then wanted[#wanted + 1] = column end
    end
    local panel, message = events.existing(wanted, function(column) return column[1] end, 'percpu-stat', out, session,
      'their columns are left out')
    if message then return nil, message end
    local names, columns = {}, {}
    for i, column in ipairs(panel) do names[i] = column[1] end
    local counts = session.count(names)
    columns[1] = {
      name = counts.title == 'CPU' and 'cpu' or 'tid',
      title = ('[%s]'):format(counts.title),
      text = function(row)
        return row[1] == 'ALL' and '[ALL]' or (counts.title == 'CPU' and '[%03d]' or '[%6d]'):format(row[1])
      end,
    }
    for _, column in ipairs(panel) do
      local sep = column.gap and '  ' or ' '
      columns[#columns + 1] = { name = column[2], title = column.title, sep = sep, align = 'right', metric = 'counter' }
    end
    local spec = tables.new('percpu-stat', columns)
    return reports.handlers(opt, session, function()
      local rows, all = {}, { 'ALL', [columns[1].name] = 'ALL', is_total = true }
      for _, column in ipairs(panel) do all[column[2]] = 0 end
      for row = 1, counts:rows() do
        rows[row] = { counts:id(row), [columns[1].name] = counts:id(row) }
        for i, column in ipairs(panel) do
          local count = counts:get(row, i)
          count = column.half and math.floor(count / 2) or count
          rows[row][column[2]] = count
          all[column[2]] = all[column[2]] + count
        end
      end
      rows[#rows + 1] = all
      out:table(spec, rows, nil, out:columns() and function(width)
        return in_parts(columns, width, out.sort and tables.sorted(spec, rows, out.sort) or rows)
      end or nil)
    end)
  end,
}
