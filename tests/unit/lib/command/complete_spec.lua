-- SPDX-License-Identifier: GPL-2.0-only
local complete = require 'lib.command.complete'
local options = require 'bindings.options.parser'

local profilers = {
  trace = { summary = 'Print events' },
  waits = {
    summary = 'Measure waits',
    attributes = { 'key', 'untraced' },
    options = { by = { type = 'enum', values = { 'all', 'comm' }, help = 'rows' },
      detail = { type = 'string', values = { 'samecpu', 'samepid' }, optional_value = '', help = 'events' } },
  },
  list = {
    summary = 'List',
    unsupported = { 'event', 'attach', 'run', 'ring' },
    positional = { { name = 'shell', type = 'enum', values = { 'bash', 'zsh' }, help = 'which' } },
  },
}

local world = {
  profilers = function() return { 'list', 'trace', 'waits' } end,
  sources = function() return { 'trace', 'waits' } end,
  load = function(name)
    local profiler = profilers[name]
    return profiler and { name = name, profiler = profiler, spec = assert(options.declare(profiler)) }
  end,
  events = function()
    return { 'irq:irq_handler_entry', 'sched:sched_switch', 'sched:sched_wakeup', 'sched:sched_wakeup_new',
      'cpu-clock', 'cs' }
  end,
  pmus = { cpu = true },
  processes = function() return { 'bash', 'java', 'javac' } end,
  terms = function(pmu) return { pmu .. '-cycles', 'event=', 'umask=' } end,
  fields = function(event)
    return event == 'sched:sched_switch' and { 'prev_pid', 'prev_comm', 'next_pid' } or {}
  end,
}

local BASH = ' \t\n"\'><=;|&(:'

--- The result in one line: "mode: candidate candidate".
local function at(line, breaks)
  local result = complete.run(line, breaks or BASH, world)
  return result.mode .. ': ' .. table.concat(result.list, ' ')
end

--- Compares lines with their results.
local function are(cases)
  for _, case in ipairs(cases) do assert.equal(case[2], at(case[1]), case[1]) end
end

describe('completion', function()
  it('of the profiler', function()
    are {
      { 'profscript ', 'words: list trace waits' },
      { 'profscript -v tr', 'words: trace' },
      { 'profscript --c', 'words: --check' },
      { 'profscript ./my', 'files: ' },
      { 'profscript nothing --', 'words: ' },
      { 'profscript help tr', 'words: trace' },
    }
  end)

  it('of options', function()
    are {
      { 'profscript trace --inter', 'words: --interval' },
      { 'profscript waits --b', 'open: --by=' },
      { 'profscript waits --by=', 'words: all comm' },
      { 'profscript waits --by c', 'words: comm' },
      { 'profscript waits -p ja', 'words: java javac' },
      { 'profscript waits --pids 12,b', 'words: 12,bash' },
    }
    assert.equal('words: --by=comm', at('profscript waits --by=c', ''))
    are {
      { 'profscript waits --detail=', 'words: samecpu samepid' },
      { 'profscript waits --detail=samecpu,samep', 'words: samecpu,samepid' },
      { 'profscript trace -qo fi', 'files: ' },
      { 'profscript trace -N 5', 'words: ' },
    }
  end)

  it('of events, in two steps', function()
    are {
      { 'profscript trace -e ', 'open: cpu-clock cpu/ cs irq: sched: trace/ waits/' },
      { 'profscript trace -e cp', 'open: cpu-clock cpu/' },
      { 'profscript trace -e sch', 'open: sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new' },
      { 'profscript trace -e sched:sched_wa', 'open: sched_wakeup sched_wakeup_new' },
    }
    assert.equal('open: sched:sched_wakeup sched:sched_wakeup_new', at('profscript trace -e sched:sched_wa', ''))
    assert.equal('open: sched_switch', at 'profscript trace --event cs,sched:sched_s')
  end)

  it('of events by a part of the name, if that loses nothing', function()
    are {
      { 'profscript trace -e wakeup', 'open: sched:sched_wakeup sched:sched_wakeup_new' },
      { 'profscript trace -e handler', 'open: irq:irq_handler_entry' },
      { 'profscript trace -e nothing', 'open: ' },
    }
  end)

  it('of fields in filters and expressions', function()
    are {
      { 'profscript trace -e sched:sched_switch/pr', 'open: sched_switch/prev_pid sched_switch/prev_comm' },
      { "profscript trace -e 'sched:sched_switch/a==1 && n", 'open: sched:sched_switch/a==1 && next_pid' },
      { 'profscript waits -e sched:sched_switch//key=n', 'open: next_pid' },
      { 'profscript waits -e sched:sched_switch//key=_c', 'open: _cpu _comm' },
      { 'profscript waits -e sched:sched_switch//alias=n', 'open: ' },
      { 'profscript waits -e sched:sched_switch -k n', 'open: next_pid' },
    }
  end)

  it('of attributes that the profiler reads', function()
    assert.equal('open: sched_switch//alias= sched_switch//cpus= sched_switch//exec= sched_switch//freq='
      .. ' sched_switch//max-stack= sched_switch//period='
      .. ' sched_switch//pull= sched_switch//push= sched_switch//stack/ sched_switch//vm=',
      at 'profscript trace -e sched:sched_switch//')
    are {
      { 'profscript waits -e sched:sched_switch//stack/k', 'open: sched_switch//stack/key=' },
      { 'profscript trace -e sched:sched_switch//key', 'open: ' },
    }
  end)

  it('of the terms of a PMU', function()
    are {
      { 'profscript trace -e cpu/', 'open: cpu/cpu-cycles cpu/event= cpu/umask=' },
      { 'profscript trace -e cpu/event=1,u', 'open: 1,umask=' },
    }
  end)

  it('of profilers as sources, and of their options', function()
    are {
      { 'profscript trace -e cs,wa', 'open: cs,waits/' },
      { 'profscript trace -e waits/--b', 'open: waits/--by=' },
    }
    assert.equal('open: cs,waits/-g --by=comm', at("profscript trace -e 'cs,waits/-g --by=c", ''))
    are {
      { "profscript trace -e 'waits/--by ", 'open: waits/--by all waits/--by comm' },
      { "profscript trace -e 'waits/-e sched:sched_s", 'open: waits/-e sched:sched_switch' },
      { "profscript trace -e 'waits/-C 0,1 --interv", 'open: waits/-C 0,1 --interval' },
      { "profscript trace -e 'waits/--dur", 'open: ' },
      { "profscript trace -e 'waits/-N 3/al", 'open: waits/-N 3/alias=' },
      { "profscript trace -e 'waits/-N 3/key", 'open: ' },
    }
  end)

  it('of the rest', function()
    are {
      { 'profscript trace -e cs ', 'commands: help' },
      { 'profscript trace -e cs ls -', 'commands: ' },
      { 'profscript trace -e cs -- ', 'commands: ' },
      { 'profscript list ', 'words: bash zsh' },
      { 'profscript list bash ', 'words: ' },
      { 'profscript -e cp', 'open: cpu-clock cpu/' },
    }
  end)
end)
