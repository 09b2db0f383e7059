-- SPDX-License-Identifier: GPL-2.0-only
local oneliner = require 'lib.engines.oneliner'
local repl = require 'lib.engines.repl'

describe('repl.parse', function()
  it('tells commands, questions and programs apart', function()
    assert.is_nil(repl.parse '  ')
    assert.same({ kind = 'show' }, repl.parse ' show ')
    assert.same({ kind = 'remove', number = 3 }, repl.parse 'remove 3')
    assert.same({ kind = 'explain', argument = 'sched_switch.prev_pid' }, repl.parse '? sched_switch.prev_pid')
    assert.same({ kind = 'explain', argument = '' }, repl.parse '?')
    assert.same({ kind = 'value', argument = ' most' }, repl.parse '= most')
    assert.same({ kind = 'add', argument = 'sched:sched_wakeup' }, repl.parse '+ sched:sched_wakeup')
    assert.same({ kind = 'program', argument = 'count(ev._comm)' }, repl.parse 'count(ev._comm)')
    assert.same({ kind = 'program', number = 2, argument = 'count()' }, repl.parse '2: count()')
    assert.same({ kind = 'program', event = 'sched:sched_switch', argument = 'count()' },
      repl.parse 'sched:sched_switch: count()')
  end)

  it('takes code that looks like a command as code', function()
    assert.equal('program', repl.parse('show = 1').kind)
    assert.equal('program', repl.parse('list[1] = ev._pid').kind)
    assert.equal('program', repl.parse('print(ev:u64 "addr")').kind)
    assert.equal('program', repl.parse('clear(1)').kind)
  end)
end)

describe('oneliner.load with shared variables', function()
  local function load_line(text, shared) return oneliner.load({ text }, setmetatable({}, { __index = _G }), shared) end

  it('lets one line read what another has assigned', function()
    local shared = {}
    local first = assert(load_line('n = (n or 0) + ev', shared))[1]
    local second = assert(load_line('return n', shared))[1]
    assert.is_nil(second())
    first(2)
    first(3)
    assert.equal(5, second())
    assert(load_line('n = nil', shared))[1]()
    assert.is_nil(second())
  end)

  it('refuses a name that no line assigns', function()
    local _, message = load_line('return m', { n = 1 })
    assert.matches("undeclared global 'm'", message)
  end)
end)
