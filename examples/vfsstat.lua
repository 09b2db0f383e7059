-- SPDX-License-Identifier: GPL-2.0-only
--- Prints how many file operations there are, by the system calls for them. The kernel counts; no event is recorded.
---
---   profscript examples/vfsstat.lua -i 1s
local OPERATIONS = { 'read', 'write', 'pread64', 'pwrite64', 'openat', 'close', 'fsync', 'newfstatat' }

local counters = {}
for _, name in ipairs(OPERATIONS) do counters[name] = 'counter' end

return {
  summary = 'Print the number of file operations',
  unsupported = { 'samples' },
  metrics = { row = counters },
  start = function(_, out, session)
    local events = {}
    for i, name in ipairs(OPERATIONS) do events[i] = 'syscalls:sys_enter_' .. name end
    local counts = session.count(events)
    local function report()
      local line = {}
      for i, name in ipairs(OPERATIONS) do line[2 * i - 1], line[2 * i] = name, 0 end
      counts:each(function(_, i, n) line[2 * i] = line[2 * i] + n end) -- of all CPUs
      out:row(line)
    end
    return { interval = report, stop = report }
  end,
}
