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

describe('completion', function()
  it('of the profiler', function()
    assert.equal('words: list trace waits', at 'profscript ')
    assert.equal('words: trace', at 'profscript -v tr')
    assert.equal('words: --check', at 'profscript --c')
    assert.equal('files: ', at 'profscript ./my')
    assert.equal('words: ', at 'profscript nothing --')
    assert.equal('words: trace', at 'profscript help tr')
  end)

  it('of options', function()
    assert.equal('words: --interval', at 'profscript trace --inter')
    assert.equal('open: --by=', at 'profscript waits --b')
    assert.equal('words: all comm', at 'profscript waits --by=')
    assert.equal('words: comm', at 'profscript waits --by c')
    assert.equal('words: java javac', at 'profscript waits -p ja')
    assert.equal('words: 12,bash', at 'profscript waits --pids 12,b')
    assert.equal('words: --by=comm', at('profscript waits --by=c', ''))
    assert.equal('words: samecpu samepid', at 'profscript waits --detail=')
    assert.equal('words: samecpu,samepid', at 'profscript waits --detail=samecpu,samep')
    assert.equal('files: ', at 'profscript trace -qo fi')
    assert.equal('words: ', at 'profscript trace -N 5')
  end)

  it('of events, in two steps', function()
    assert.equal('open: cpu-clock cpu/ cs irq: sched: trace/ waits/', at 'profscript trace -e ')
    assert.equal('open: cpu-clock cpu/', at 'profscript trace -e cp')
    assert.equal('open: sched:sched_switch sched:sched_wakeup sched:sched_wakeup_new', at 'profscript trace -e sch')
    assert.equal('open: sched_wakeup sched_wakeup_new', at 'profscript trace -e sched:sched_wa')
    assert.equal('open: sched:sched_wakeup sched:sched_wakeup_new', at('profscript trace -e sched:sched_wa', ''))
    assert.equal('open: sched_switch', at 'profscript trace --event cs,sched:sched_s')
  end)

  it('of events by a part of the name, if that loses nothing', function()
    assert.equal('open: sched:sched_wakeup sched:sched_wakeup_new', at 'profscript trace -e wakeup')
    assert.equal('open: irq:irq_handler_entry', at 'profscript trace -e handler')
    assert.equal('open: ', at 'profscript trace -e nothing')
  end)

  it('of fields in filters and expressions', function()
    assert.equal('open: sched_switch/prev_pid sched_switch/prev_comm', at 'profscript trace -e sched:sched_switch/pr')
    assert.equal('open: sched:sched_switch/a==1 && next_pid', at "profscript trace -e 'sched:sched_switch/a==1 && n")
    assert.equal('open: next_pid', at 'profscript waits -e sched:sched_switch//key=n')
    assert.equal('open: _cpu _comm', at 'profscript waits -e sched:sched_switch//key=_c')
    assert.equal('open: ', at 'profscript waits -e sched:sched_switch//alias=n')
    assert.equal('open: next_pid', at 'profscript waits -e sched:sched_switch -k n')
  end)

  it('of attributes that the profiler reads', function()
    assert.equal('open: sched_switch//alias= sched_switch//cpus= sched_switch//exec= sched_switch//freq='
      .. ' sched_switch//max-stack= sched_switch//period='
      .. ' sched_switch//pull= sched_switch//push= sched_switch//stack/ sched_switch//vm=',
      at 'profscript trace -e sched:sched_switch//')
    assert.equal('open: sched_switch//stack/key=', at 'profscript waits -e sched:sched_switch//stack/k')
    assert.equal('open: ', at 'profscript trace -e sched:sched_switch//key')
  end)

  it('of the terms of a PMU', function()
    assert.equal('open: cpu/cpu-cycles cpu/event= cpu/umask=', at 'profscript trace -e cpu/')
    assert.equal('open: 1,umask=', at 'profscript trace -e cpu/event=1,u')
  end)

  it('of profilers as sources, and of their options', function()
    assert.equal('open: cs,waits/', at 'profscript trace -e cs,wa')
    assert.equal('open: waits/--by=', at 'profscript trace -e waits/--b')
    assert.equal('open: cs,waits/-g --by=comm', at("profscript trace -e 'cs,waits/-g --by=c", ''))
    assert.equal('open: waits/--by all waits/--by comm', at "profscript trace -e 'waits/--by ")
    assert.equal('open: waits/-e sched:sched_switch', at "profscript trace -e 'waits/-e sched:sched_s")
    assert.equal('open: waits/-C 0,1 --interval', at "profscript trace -e 'waits/-C 0,1 --interv")
    assert.equal('open: ', at "profscript trace -e 'waits/--dur")
    assert.equal('open: waits/-N 3/alias=', at "profscript trace -e 'waits/-N 3/al")
    assert.equal('open: ', at "profscript trace -e 'waits/-N 3/key")
  end)

  it('of the rest', function()
    assert.equal('commands: help', at 'profscript trace -e cs ')
    assert.equal('commands: ', at 'profscript trace -e cs ls -')
    assert.equal('commands: ', at 'profscript trace -e cs -- ')
    assert.equal('words: bash zsh', at 'profscript list ')
    assert.equal('words: ', at 'profscript list bash ')
    assert.equal('open: cpu-clock cpu/', at 'profscript -e cp')
  end)
end)
