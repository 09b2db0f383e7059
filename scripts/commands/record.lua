-- SPDX-License-Identifier: GPL-2.0-only
--- Writes events to a recording. The host does all the work (--record).
local events = require 'lib.events'

return {
  summary = 'Write events to a recording, for tests, --input and perf',
  description = [[
Writes a recording that --input, `profscript test` and perf read. A profiler
writes what it sees with --record FILE. With --input, events of a recording are
copied.]],
  examples = {
    { 'profscript record -e sched:sched_switch,sched:sched_wakeup -o sched.data -- ls', 'the events of a command' },
    { "profscript record -e 'syscalls:sys_exit_openat/ret < 0/' -o myscript.failed.data -- ls /x",
      'the case `failed` for `profscript test myscript.lua`' },
    { 'profscript record -e cpu-clock -F 99 -g -o cpu.data --duration 1', 'samples with stacks' },
  },
  -- The file is written before anybody counts events, so -N would not be exact.
  unsupported = { 'exit_n', 'output', 'format', 'json', 'csv', 'raw_fields', 'interval', 'push', 'export', 'query' },
  options = {
    record = { short = 'o', required = true, help = 'the file' },
  },

  start = function(opt)
    local function ignore() end
    local handlers = {}
    for _, event in ipairs(events.list(opt.event)) do handlers[event] = ignore end
    return handlers
  end,
}
