-- SPDX-License-Identifier: GPL-2.0-only
--- CPU profiler: samples what the CPUs run, at a fixed rate.
local events = require 'lib.events'
local flamegraph = require 'lib.flamegraph'
local stacks = require 'lib.stacks'

local UNITS = { cycles = 'cpu-cycles', ['cpu-clock'] = 'ns', ['task-clock'] = 'ns' }
local RATE = events.RATE

return {
  summary = 'Sample what the CPUs run, as lines or as a flame graph',
  description = [[
Prints a line for each sample: the task, and the cycles that the sample stands
for (ns if sampled by cpu-clock). --than prints only samples of CPUs or threads
that are busy for more than PCT of a second. With a flame graph, lines are
printed only if --than is given.]],
  examples = {
    { 'profscript profile -F 997 -g --flame-graph cpu.svg -- make', 'flame graph of a command' },
    { 'profscript profile -F 99 -C 0-3 --exclude-user -g --flame-graph cpu -i 600000',
      'folded kernel stacks, every ten minutes' },
    { 'profscript profile -F 500 --than 90 -g', 'stacks of CPUs that are more than 90 % busy' },
    { 'profscript profile --input perf.data --flame-graph cpu.html', 'flame graph of a recording' },
    { 'profscript profile --input new.data --diff old.data --flame-graph diff.svg',
      'differential flame graph of two recordings' },
  },
  unsupported = { 'event' },
  options = flamegraph.options {
    freq = { default = nil, help = ('samples per second and CPU (default %d)'):format(RATE) },
    period = {},
    call_graph = {},
    srcline = {},
    user_callchain = {},
    kernel_callchain = {},
    filter = {},
    self = {},
    than = { type = 'number', needs = { 'live' }, min = 0, max = 100, unit = '%', argument = 'PCT',
      help = 'print only samples of CPUs (threads) that are busy for more than this share of a second' },
  },

  start = function(opt, out, session)
    if opt.than and opt.period then
      return nil, '--than needs a sampling frequency: it does not work with --period'
    end
    local list, name = events.cpu_samples(opt, out, session)
    if #list == 0 then return nil, 'the recording contains no samples of hardware or clock events' end
    local flame = flamegraph.new(opt, session, out, { title = ('profile: %s'):format(name) })
    local print_lines = not flame or opt.than ~= nil
    session.want { prints_events = print_lines and not opt.than }
    local enough = opt.than and math.ceil((opt.freq or RATE) * opt.than / 100) or 0
    local is_seen = (opt.serve or opt.prometheus or opt.otlp) and not opt.query
    local sums = is_seen and stacks.new(session, { 'samples' }) or nil -- for metrics and the page
    local since, count = {}, {} -- by CPU or thread: start of the current second, samples in it
    local instance = session.instance_field

    --- Whether the current second was already busy enough at this sample.
    local function is_busy(ev)
      local id = ev[instance]
      if not since[id] or ev._time - since[id] >= 1e9 then since[id], count[id] = ev._time, 0 end
      count[id] = count[id] + 1
      return count[id] > 1 and count[id] >= enough
    end

    local function sample(ev)
      if flame then flame:add(ev, 1) end
      if sums then sums:add(ev._stack, ev._comm, 1) end
      if print_lines and (not opt.than or is_busy(ev)) then out:print_event(ev, flame ~= nil) end
    end
    local function show_stacks()
      sums:offer(out)
      sums:clear()
    end
    return flamegraph.follow(flame, {
      [list] = sample,
      describe = function(ev)
        return ('profile: %d %s'):format(ev._period, UNITS[ev._event:match '^[^:]*'] or ev._event)
      end,
      interval = sums and show_stacks,
      stop = sums and show_stacks,
    })
  end,
}
