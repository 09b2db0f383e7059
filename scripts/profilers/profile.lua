-- SPDX-License-Identifier: GPL-2.0-only
--- Where the CPUs spend their time: samples what runs so many times a second.
local flamegraph = require 'lib.flamegraph'

local RATE = 997 -- Hz; not a divisor of what runs every ms

--- The events to sample by, with their name: cycles, or time where the machine has no counter for them; of
--- a recording all that perf sampled by.
local function samples(opt, out, session)
  local recorded, list = session.recorded(), {}
  for i, name in ipairs(recorded or {}) do list[i] = session.event { name } end
  if recorded then return list, 'samples' end
  local name = session.supports 'cycles' and 'cycles' or 'cpu-clock'
  if name == 'cpu-clock' then
    out:warn 'profile: this machine has no cycles to count (no hardware PMU): sampling by cpu-clock'
  end
  list[1] = session.event { name, freq = not opt.period and (opt.freq or RATE) or nil, exclude_idle = true }
  return list, name
end

return {
  summary = 'Sample what the CPUs run, as lines or as a flame graph',
  description = [[
Each sample is a line: the task, and how many cycles (of cpu-clock: ns) it stands for. With --than only
the samples of a CPU, or thread, are printed that is busier than so many percent of a second. With a
flame graph no lines are printed, unless --than asks for some.]],
  examples = {
    { 'profscript profile -F 997 -g --flame-graph cpu.svg -- make', 'flame graph of a command' },
    { 'profscript profile -F 99 -C 0-3 --exclude-user -g --flame-graph cpu -i 600000',
      'folded stacks of the kernel, every ten minutes' },
    { 'profscript profile -F 500 --than 90 -g', 'stacks of CPUs that are more than 90 % busy' },
    { 'profscript profile --input perf.data --flame-graph cpu.html', 'of a recording' },
    { 'profscript profile --input new.data --diff old.data --flame-graph diff.svg',
      'what is different from another one' },
  },
  unsupported = { 'event' },
  options = flamegraph.options {
    freq = { default = nil, help = ('samples a second and CPU (default %d)'):format(RATE) },
    period = {},
    call_graph = {},
    srcline = {},
    user_callchain = {},
    kernel_callchain = {},
    filter = {},
    self = {},
    than = { type = 'number', min = 0, max = 100, unit = '%', argument = 'PCT',
      help = 'print only samples of CPUs (threads) that are busier than this within a second' },
  },

  start = function(opt, out, session)
    if opt.than and (opt.period or opt.input) then
      return nil, '--than counts samples a second: it goes with -F, not with --period or a recording'
    end
    local events, name = samples(opt, out, session)
    if #events == 0 then return nil, 'the recording contains no samples of hardware or clock events' end
    local flame = flamegraph.new(opt, session, out, { title = ('profile: %s'):format(name) })
    local print_lines = not flame or opt.than ~= nil
    local enough = opt.than and math.ceil((opt.freq or RATE) * opt.than / 100) or 0
    local since, count = {}, {} -- of each CPU or thread: start of its second, samples in it
    local per_thread = session.per_thread

    --- Whether this sample belongs to a second that was busy enough before it.
    local function is_busy(ev)
      local where = per_thread and ev._tid or ev._cpu
      if not since[where] or ev._time - since[where] >= 1e9 then since[where], count[where] = ev._time, 0 end
      count[where] = count[where] + 1
      return count[where] > 1 and count[where] >= enough
    end

    local function sample(ev)
      if flame then flame:add(ev, 1) end
      if print_lines and (not opt.than or is_busy(ev)) then out:print_event(ev, flame ~= nil) end
    end
    return {
      [events] = sample,
      describe = function(ev) return ('profile: %d cpu-cycles'):format(ev._period) end,
      interval = flame and function() flame:interval() end,
      stop = flame and function() flame:finish() end,
    }
  end,
}
