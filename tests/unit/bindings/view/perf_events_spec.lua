-- SPDX-License-Identifier: GPL-2.0-only
local perf_events = require 'bindings.view.perf_events'
local selector = require 'bindings.select.selector'

local D = perf_events.DEVICES .. '/'
local FILES = {
  [D .. 'cpu/type'] = '4\n',
  [D .. 'cpu/format/event'] = 'config:0-7,32-35\n',
  [D .. 'cpu/format/umask'] = 'config:8-15\n',
  [D .. 'cpu/format/edge'] = 'config:18\n',
  [D .. 'cpu/format/ldlat'] = 'config1:0-15\n',
  [D .. 'cpu/format/all'] = 'config2:0-63\n',
  [D .. 'cpu/format/odd'] = 'config:3-99\n',
  [D .. 'cpu/events/mem-loads'] = 'event=0xcd,umask=0x1,ldlat=3\n',
  [D .. 'cpu/events/mem-loads.scale'] = '1\n',
  [D .. 'cpu/events/loop'] = 'loop\n',
}
local FOLDERS = {
  [perf_events.DEVICES] = { 'cpu', 'software', 'uprobe' },
  [D .. 'cpu/format'] = { 'event', 'umask', 'edge', 'ldlat', 'all', 'odd' },
  [D .. 'cpu/events'] = { 'mem-loads', 'mem-loads.scale', 'loop' },
  [D .. 'uprobe/format'] = { 'retprobe' },
}
local fs = {
  read = function(path) return FILES[path] end,
  readdir = function(path)
    local names = FOLDERS[path]
    return names and { unpack(names) }
  end,
}
local cpu = perf_events.open_pmu('cpu', fs)

describe('events by name', function()
  local function numbers(name)
    local event = assert(perf_events.find(name))
    return ('%s %d:0x%x %s'):format(event.kind, event.type, event.config, event.freq or 'every ' .. event.period)
  end

  it('are those of perf', function()
    assert.equal('software 1:0x0 4000', numbers 'cpu-clock')
    assert.equal('software 1:0x1 4000', numbers 'task-clock')
    assert.equal('software 1:0x2 every 1', numbers 'page-faults')
    assert.equal('software 1:0x2 every 1', numbers 'faults')
    assert.equal('software 1:0x3 every 1', numbers 'cs')
    assert.equal('software 1:0x4 every 1', numbers 'migrations')
    assert.equal('software 1:0x6 every 1', numbers 'major-faults')
    assert.equal('software 1:0xb every 1', numbers 'cgroup-switches')
    assert.equal('hardware 0:0x0 4000', numbers 'cycles')
    assert.equal('hardware 0:0x1 4000', numbers 'instructions')
    assert.equal('hardware 0:0x9 4000', numbers 'ref-cycles')
    assert.equal('hw-cache 3:0x0 4000', numbers 'L1-dcache-loads')
    assert.equal('hw-cache 3:0x10002 4000', numbers 'LLC-load-misses')
    assert.equal('hw-cache 3:0x203 4000', numbers 'dTLB-prefetches')
    assert.equal('hw-cache 3:0x10104 4000', numbers 'iTLB-store-misses')
    assert.equal('raw 4:0x1a8 4000', numbers 'r1a8')
  end)

  it('contain nothing else', function()
    assert.is_nil(perf_events.find 'cycle')
    assert.is_nil(perf_events.find 'r')
    assert.is_nil(perf_events.find 'r11112222333344445')
  end)
end)

describe('a breakpoint', function()
  local CASES = {
    { 'mem:0x401000', '401000 4 3' },
    { 'mem:0x401000:w', '401000 4 2' },
    { 'mem:0x401000/8:rw', '401000 8 3' },
    { 'mem:0x401000/1:r', '401000 1 3' },
    { 'mem:4096/2:x', '1000 8 4' },
    { 'mem:0xffffffffc2cc004a:x', 'ffffffffc2cc004a 8 4' },
    { 'mem:x', "invalid address 'x'" },
    { 'mem:', "invalid address ''" },
    { 'mem:0x1/16', "invalid breakpoint length '16' (expected 1, 2, 4 or 8)" },
    { 'mem:0x401003/2:w', "misaligned address '0x401003' of a breakpoint of 2 bytes (the aligned one is 0x401002)" },
    { 'mem:0xffffffffc2cc004a', "misaligned address '0xffffffffc2cc004a' of a breakpoint of 4 bytes "
      .. '(the aligned one is 0xffffffffc2cc0048)' },
    { 'mem:0x401003/1:w', '401003 1 2' },
    { 'mem:0x1:q', "invalid breakpoint access 'q' (expected r, w, rw or x)" },
    { 'mem:0x1:', "invalid breakpoint access ':' (expected r, w, rw or x)" },
  }
  for _, case in ipairs(CASES) do
    it(case[1], function()
      local event, message = perf_events.breakpoint(case[1])
      assert.equal(case[2], event and ('%x %d %d'):format(event.config1, event.config2, event.bp_type) or message)
    end)
  end
end)

describe('terms of a PMU', function()
  it('are put where the formats say', function()
    local event = assert(perf_events.parse(cpu, 'event=0x3c,umask=0x1'))
    assert.equal('cpu/event=0x3c,umask=0x1/', event.name)
    assert.equal(4, event.type)
    assert.equal(0x13cULL, event.config)
    assert.equal(4000, event.freq)
    assert.equal(0xf000000ffULL, perf_events.parse(cpu, 'event=0xfff').config)
    assert.equal(0x40000ULL, perf_events.parse(cpu, 'edge').config)
    assert.equal(0xffffffffffffffffULL, perf_events.parse(cpu, 'all=0xffffffffffffffff').config2)
  end)

  it('may be perf\'s own words', function()
    local event = assert(perf_events.parse(cpu, ' config=0x10 , config1=2,period=100000,name=mine'))
    assert.same({ 'mine', 0x10ULL, 2ULL, 100000 }, { event.name, event.config, event.config1, event.period })
    assert.is_nil(event.freq)
  end)

  it('may be the name of an event', function()
    local event = assert(perf_events.parse(cpu, 'mem-loads,ldlat=30'))
    assert.equal(0x1cdULL, event.config)
    assert.equal(31ULL, event.config1) -- the bits of 3 and of 30
  end)

  it('are refused with their place', function()
    local function refusal(terms)
      local event, message, column = perf_events.parse(cpu, terms)
      assert.is_nil(event)
      return ('%d: %s'):format(column, message)
    end
    assert.equal("9: PMU cpu has no term 'umsak'; did you mean 'umask'?", refusal 'event=1,umsak=1')
    assert.equal("1: term 'umask' has only 8 bits: value too large", refusal 'umask=0x100')
    assert.equal("1: invalid number 'x'", refusal 'umask=x')
    assert.equal("1: term 'config' needs a value", refusal 'config')
    assert.equal("1: 'freq' must be greater than 0", refusal 'freq=0')
    assert.equal("1: term 'odd' has an unsupported format 'config:3-99'", refusal 'odd=1')
    assert.equal("1: invalid term '../type'", refusal '../type')
    assert.equal("1: PMU cpu has no term 'loop'", refusal 'loop')
  end)

  it('are listed', function()
    assert.same({ 'loop', 'mem-loads' }, perf_events.named(cpu))
    assert.same({ 'all', 'config', 'config1', 'config2', 'edge', 'event', 'freq', 'ldlat', 'loop', 'mem-loads', 'name',
      'odd', 'period', 'umask' }, perf_events.term_names(cpu))
    assert.same({ cpu = true }, perf_events.pmus(fs))
  end)
end)

describe('a selector', function()
  local function parse(text)
    local list, err = selector.parse(text, { cpu = true })
    return list or selector.caret(err)
  end

  it('keeps the commas between the terms of a PMU', function()
    local list = parse 'cpu/event=0x3c,umask=0x1/stack/,sched:a,cpu/config=1'
    assert.same({ 'pmu', 'event', 'pmu' }, { list[1].kind, list[2].kind, list[3].kind })
    assert.equal('event=0x3c,umask=0x1', list[1].filter)
    assert.equal('stack', list[1].attrs[1].name)
    assert.equal('config=1', list[3].filter)
  end)

  it('distinguishes a PMU from a profiler', function()
    assert.equal('profiler', parse('gpu/a=1/')[1].kind)
  end)

  it('has a period or a frequency', function()
    assert.equal(1000000, parse('cycles//period=1000000/')[1].attrs[1].value)
    assert.equal([[
bad event 'cycles//freq=0/': '0' is not an integer >= 1 at column 14
  cycles//freq=0/
               ^]], parse 'cycles//freq=0/')
  end)
end)
