-- SPDX-License-Identifier: GPL-2.0-only
--- Writes the events of a recording to a file for another program. The host does all the work (--export).
local events = require 'lib.events'

return {
  summary = 'Convert a recording for another program',
  description = [[
Writes the events and stacks of a recording to FILE, which is compressed if its name ends in .gz. To
export what a profiler sees, such as pairs of events, use its option --export.]],
  examples = {
    { 'profscript export perf.data -o trace.pftrace', 'everything, for ui.perfetto.dev' },
    { "profscript export perf.data -e 'sched:*' -o chrome:sched.json.gz", 'scheduling, for chrome://tracing' },
    { 'profscript export perf.data -e cpu-clock -o cpu.pb.gz', 'a CPU profile, for pprof' },
  },
  unsupported = { 'attach', 'ring', 'samples', 'output', 'format', 'json', 'csv', 'raw_fields', 'input', 'push',
    'secret', 'remote_slack', 'interval', 'usage_self', 'allow_exec', 'period' },
  options = {
    export = { short = 'o', required = true },
    srcline = {},
  },
  positional = {
    { name = 'input', argument = 'RECORDING', help = 'recording of perf (-: stdin)' },
  },

  start = function(opt, _, session)
    session.want { stacks = true }
    local function ignore() end
    local handlers = {}
    for _, event in ipairs(events.list(opt.event)) do handlers[event] = ignore end
    return handlers
  end,
}
