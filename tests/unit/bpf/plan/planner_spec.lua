-- SPDX-License-Identifier: GPL-2.0-only
-- Plans: the way of each event for given facts. No kernel is asked, so these run without root.
local costs = require 'bpf.plan.costs'
local declarations = require 'bindings.options.declare'
local needs = require 'bpf.plan.needs'
local planner = require 'bpf.plan.planner'
local route = require 'bpf.plan.route'
local ways = require 'bpf.ways.list'

local SPEC = assert(declarations.declare {
  options = { overwrite = { type = 'flag', help = 'h', needs = { 'newest', 'whole_run' } } },
  attributes = { 'key' },
})

--- Facts about an event that programs can have.
local function event(name, more)
  local one = {
    name = name, attrs = {}, is_tracepoint = true, is_derived = false, of_source = false, is_counted = false,
    is_everywhere = false, has_stack = false, has_user_stack = false, has_stack_copy = false, has_strings = false,
    has_program = false, has_parts = false, is_rare = false, has_user_filter = false, is_call = false, is_known = true,
    is_exact = true, is_exact_other = true, guards = 0,
  }
  for key, value in pairs(more or {}) do one[key] = value end
  return one
end

--- Facts about an offer of all events of a list.
local function offer(way, events, more)
  local one = { way = way, events = {}, attrs = {}, known = {}, shared = {}, asks = {}, sends = {}, shows = {},
    keeps = {} }
  for i, of in ipairs(events) do one.events[i], one.attrs[i] = i, of.attrs end
  for key, value in pairs(more or {}) do one[key] = value end
  return one
end

--- The facts of a run with these options.
local function facts(opt, events, offers)
  local run = { capture = opt.capture or 'auto', interval = opt.interval or 0, verbose = opt.verbose or 0,
    is_stored = opt.input ~= nil, per_thread = opt.tids ~= nil, thread_rings = opt.tids ~= nil,
    needs = needs.of(SPEC.list, opt) }
  return { run = run, kernel = { release = 6.018, foreign_pids = false }, events = events, offers = offers or {},
    refusals = {} }
end

local function plan(...) return planner.plan(facts(...), ways) end

--- "WAY LEVEL" of each event of a plan.
local function ways_of(made)
  local list = {}
  for i, one in ipairs(made.routes) do list[i] = one.way .. (one.level and ' ' .. one.level or '') end
  return table.concat(list, ', ')
end

local CALL, SWITCH = 'raw_syscalls:sys_enter', 'sched:sched_switch'
local CLOCK = { is_tracepoint = false, is_known = false, is_rare = true }
local TAKEN = { 'count', 'pair', 'outliers', 'states' }

describe('a plan', function()
  it('captures what nobody needs otherwise, and leaves the rest to perf', function()
    local made = plan({}, { event(CALL), event('cpu-clock', CLOCK), event('kmem:kmalloc', { is_known = false }) })
    assert.equal('capture all, sample, sample', ways_of(made))
    assert.same({ { way = 'capture', reason = 'cpu-clock is not a tracepoint of this machine' } }, made.routes[2].why)
    assert.equal('programs do not know the arguments of kmem:kmalloc', route.refusal(made.routes[3], true))
    assert.same({ 'BPF', 'perf', 'perf' }, { made.routes[1].by, made.routes[2].by, made.routes[3].by })
  end)

  it('prefers an offer', function()
    for _, way in ipairs(TAKEN) do
      local list = { event(CALL), event(SWITCH) }
      local made = plan({}, list, { offer(way, list) })
      assert.equal(way .. ', ' .. way, ways_of(made))
      assert.equal(ways[way].does, made.routes[1].does)
      assert.is_nil(made.offers[1].refusal)
    end
  end)

  it('takes all events of an offer or none', function()
    local list = { event(CALL), event(SWITCH, { has_stack = true }) }
    local made = plan({}, list, { offer('count', list) })
    assert.equal('capture all, capture all', ways_of(made))
    assert.equal('stacks are recorded', made.offers[1].refusal)
    assert.same({ { way = 'count', reason = 'stacks are recorded' } }, made.routes[1].why)
  end)

  it('keeps events outside the stages for details', function()
    local list = { event(CALL), event(SWITCH) }
    local made = plan({}, list, { offer('outliers', list, { keeps = { 2 } }) })
    assert.equal('outliers, keep', ways_of(made))
    assert.equal('kept', made.routes[2].does)
  end)

  it('says why a handler runs in Lua, and why nothing better was possible', function()
    local made = plan({ prio = '0-99' }, { event(CALL, { handler = 'line 3 calls out:print_event()' }) })
    assert.same({ { way = 'count', reason = 'line 3 calls out:print_event()', is_handler = true },
      { way = 'capture', reason = '--prio' } }, made.routes[1].why)
    assert.is_nil(route.refusal(made.routes[1], false))
    assert.equal('--prio', route.refusal(made.routes[1], true))
  end)

  it('knows other sources of events', function()
    assert.equal('recording', ways_of(plan({ input = 'x' }, { event(CALL) })))
    assert.equal('machine', ways_of(plan({}, { event(CALL, { machine = '1.2.3.4' }) })))
    assert.equal('perf_count', ways_of(plan({}, { event(CALL, { is_counted = true }) })))
  end)

  it('leaves events that are not opened', function()
    local made = plan({}, { event(CALL, { is_derived = true }), event(SWITCH) })
    assert.equal('sample, capture all', ways_of(made))
    assert.same({}, made.routes[1].why)
    assert.is_nil((planner.why_perf(made)))
  end)

  it('is the same for the same facts', function()
    local list = { event(CALL), event(SWITCH), event('cpu-clock', CLOCK) }
    local known = facts({ exit_n = 1, sched_policy = 1 }, list, { offer('count', { list[1] }) })
    assert.same(planner.plan(known, ways), planner.plan(known, ways))
  end)
end)

describe('an option', function()
  -- What an option makes of an event that could be captured, and of one that an offer could take.
  local OPTIONS = {
    { 'capture', 'perf', 'sample', 'sample', 'as --capture says' },
    { 'input', 'x', 'recording', 'recording', 'they are not those of this machine now' },
    { 'interval', 5e7, 'capture all', 'capture all', 'the interval is less than 100 ms' },
    { 'verbose', 2, 'capture all', 'capture all', '-vv prints them' },
    { 'serve', '9', 'capture all', 'TAKEN' },
    { 'duration', 1, 'capture all', 'TAKEN' },
  }
  for _, name in ipairs { 'freq', 'period', 'irqs_disabled', 'tif_need_resched', 'nr_running_min', 'nr_running_max',
    'exclude_pid', 'sched_policy', 'prio', 'exclude_user', 'exclude_kernel', 'exclude_host', 'exclude_guest',
    'perfeval_cpus', 'perfeval_pids', 'record' } do
    OPTIONS[#OPTIONS + 1] = { name, 1, 'sample', 'sample', '--' .. name:gsub('_', '-') }
  end
  for _, name in ipairs { 'exit_n', 'export', 'watch', 'overwrite', 'sampling_limit' } do
    OPTIONS[#OPTIONS + 1] = { name, 1, 'capture all', 'capture all', '--' .. name:gsub('_', '-') }
  end

  for _, one in ipairs(OPTIONS) do
    local name, value, captured, taken, reason = unpack(one, 1, 5)
    it(name .. ' of a single event', function()
      assert.equal(captured, ways_of(plan({ [name] = value }, { event(CALL) })))
    end)
    for _, way in ipairs(TAKEN) do
      it(('%s, where the way is %s'):format(name, way), function()
        local list = { event(CALL) }
        local made = plan({ [name] = value }, list, { offer(way, list) })
        assert.equal(taken == 'TAKEN' and way or taken, ways_of(made))
        assert.equal(reason, made.offers[1].refusal)
      end)
    end
  end

  it('that selects tasks is understood by all, and one that selects events by all but states', function()
    for _, name in ipairs { 'filter', 'cgroups' } do
      for _, way in ipairs(TAKEN) do
        local list = { event(CALL) }
        local made = plan({ [name] = { 'x' } }, list, { offer(way, list) })
        assert.equal(way == 'states' and name == 'filter' and 'capture all' or way, ways_of(made))
      end
    end
  end)

  it('-C leaves sums of states to programs', function()
    local list = { event(SWITCH) }
    assert.equal('states', ways_of(plan({ cpus = '0-1' }, list, { offer('states', list) })))
  end)

  it('that counts events of the analysis leaves those to programs that a gate does not pass on', function()
    for _, name in ipairs { 'exit_n', 'export', 'watch', 'overwrite' } do
      local list = { event(CALL, { of_source = true }) }
      local made = plan({ [name] = 1 }, list, { offer('outliers', list, { gate = 'irq-off', passes = true }) })
      assert.equal((name == 'exit_n' or name == 'export') and 'outliers' or 'capture all', ways_of(made), name)
    end
  end)

  it('--prio is the same as --sched-policy', function()
    local list = { event(CALL), event('cpu-clock', CLOCK) }
    assert.equal(ways_of(plan({ sched_policy = 1 }, list)), ways_of(plan({ prio = '0-99' }, list)))
  end)

  it('--overwrite keeps the newest events of each thread', function()
    local list = { event(CALL) }
    assert.equal('sample', ways_of(plan({ overwrite = true, tids = { 1 } }, list)))
    assert.equal('capture all', ways_of(plan({ overwrite = true, tids = { 1 }, capture = 'bpf' }, list)))
  end)
end)

describe('an event', function()
  local NO_CAPTURE = { 'is_counted', 'has_program', 'has_parts', 'is_rare' }
  for _, name in ipairs(NO_CAPTURE) do
    it(name .. ' is not captured', function()
      assert.is_nil(ways_of(plan({}, { event(CALL, { [name] = true }) })):match 'capture')
    end)
  end

  it('with an attribute stays with perf, or with whom knows it', function()
    local list = { event(CALL, { attrs = { 'alias', 'key' } }) }
    assert.equal('count has the attribute', (plan({}, list, { offer('count', list) }).offers[1].refusal
      :gsub('raw_syscalls:sys_enter', 'count'):gsub(' key=', '')))
    assert.equal('pair', ways_of(plan({}, list, { offer('pair', list, { known = { key = true } }) })))
    assert.equal('sample', ways_of(plan({}, { event(CALL, { attrs = { 'cpus' } }) })))
  end)

  it('whose flags programs do not know is captured if nobody reads them', function()
    local wakeup = event('sched:sched_wakeup', { is_exact = false })
    local known = facts({}, { wakeup })
    assert.equal('capture all', ways_of(planner.plan(known, ways)))
    known.run.shows_flags = true
    assert.equal('sample', ways_of(planner.plan(known, ways)))
    known.offers = { offer('outliers', known.events, { sends = { { event = 1, is_other = true } } }) }
    assert.equal('outliers', ways_of(planner.plan(known, ways)))
    known.offers[1].sends[1].is_other = false
    assert.equal('sample', ways_of(planner.plan(known, ways)))
    known.offers[1].sends, known.offers[1].shows = {}, { { event = 1, only_details = true } }
    assert.equal('outliers', ways_of(planner.plan(known, ways)))
  end)

  it('with a stack', function()
    local function of(more, opt)
      more.has_stack = true
      return ways_of(plan(opt or {}, { event(SWITCH, more) }))
    end
    assert.equal('capture all', of {})
    assert.equal('sample', of { has_user_stack = true })
    assert.equal('capture all', of({ has_user_stack = true }, { capture = 'bpf' }))
    assert.equal('sample', of { has_stack_copy = true })
    assert.equal('sample', of { is_call = true })
    local faults = event('exceptions:page_fault_kernel')
    assert.equal('sample, capture all', ways_of(plan({}, { event(SWITCH, { has_stack = true }), faults })))
  end)

  it('of threads that kernels tell differently', function()
    assert.equal('sample, capture all', ways_of(plan({ tids = { 1 } }, { event 'sched:sched_wakeup', event(SWITCH) })))
  end)

  it('that is read in all tasks keeps programs away', function()
    local made = plan({}, { event(CALL, { is_everywhere = true }), event(SWITCH) })
    assert.equal('sample, sample', ways_of(made))
    assert.equal('raw_syscalls:sys_enter is read in all tasks', planner.why_perf(made))
  end)

  it('of system calls: not too many', function()
    local list = {}
    for i = 1, 65 do list[i] = event('syscalls:sys_enter_' .. i, { is_call = true }) end
    assert.equal('there are too many events of system calls', route.refusal(plan({}, list).routes[1], true))
    local first = offer('count', { list[1] })
    assert.equal('capture all', ways_of(plan({}, list, { first })):match ', (.-),')
  end)

  it('that somebody else sees, too, is offered in vain', function()
    local list = { event(CALL) }
    assert.equal('raw_syscalls:sys_enter has several handlers',
      plan({}, list, { offer('count', list, { shared = { true } }) }).offers[1].refusal)
  end)

  it('with conditions of its handler', function()
    local list = { event(CALL, { guards = 1, has_user_filter = true }) }
    assert.equal('capture guards', ways_of(plan({}, list)))
    for _, opt in ipairs { { exit_n = 1 }, { serve = '9' }, { watch = true }, { verbose = 2 }, { prometheus = '9' } } do
      assert.equal('capture all', ways_of(plan(opt, list)))
    end
  end)
end)

describe('measured load', function()
  local function dear(name)
    local known = facts({}, { event(SWITCH), event('syscalls:sys_enter_read', { is_call = true }) })
    known.kernel.shares = { measured = {}, [name] = true }
    return ways_of(planner.plan(known, ways))
  end
  it('leaves events of other tasks to perf', function() assert.equal('sample, sample', dear 'are_events_dear') end)
  it('leaves single system calls to perf', function() assert.equal('capture all, sample', dear 'are_calls_dear') end)
end)

describe('what a kernel refuses', function()
  it('becomes a fact, and the plan another one', function()
    local list = { event(CALL, { guards = 1, has_user_filter = true }), event(SWITCH) }
    local known = facts({}, list, { offer('count', list) })
    assert.equal('count, count', ways_of(planner.plan(known, ways)))
    known.refusals[planner.key('offer', 1)] = 'the kernel rejects the BPF program: R1 unbounded memory access'
    local made = planner.plan(known, ways)
    assert.equal('capture guards, capture all', ways_of(made))
    assert.equal('the kernel rejects the BPF program: R1 unbounded memory access', route.refusal(made.routes[1], false))
    known.refusals[planner.key('guards', 1)] = 'no'
    assert.equal('capture all, capture all', ways_of(planner.plan(known, ways)))
    known.refusals[planner.key('all', 1)] = 'no'
    assert.equal('capture kernel, capture all', ways_of(planner.plan(known, ways)))
    known.refusals[planner.key('kernel', 1)] = 'Cannot allocate memory'
    made = planner.plan(known, ways)
    assert.equal('sample, capture all', ways_of(made))
    assert.equal('Cannot allocate memory', route.refusal(made.routes[1], true))
    known.refusals[planner.key('all', 2)] = 'no'
    assert.equal('sample, sample', ways_of(planner.plan(known, ways)))
  end)

  it('is all of it, without privileges', function()
    local list = { event(CALL) }
    local known = facts({}, list, { offer('pair', list) })
    known.kernel.bpf = 'Operation not permitted'
    local made = planner.plan(known, ways)
    assert.equal('sample', ways_of(made))
    assert.same({ { way = 'pair', reason = 'Operation not permitted' },
      { way = 'capture', reason = 'Operation not permitted' } }, made.routes[1].why)
    assert.equal('Operation not permitted', planner.why_samples(made))
  end)

  it('on older kernels, exits may come too early', function()
    local list = { event(CALL) }
    local known = facts({}, list, { offer('outliers', list, { exit = 'last' }) })
    assert.equal('outliers', ways_of(planner.plan(known, ways)))
    known.kernel.release = 6.001
    assert.equal('perf may report an exit before a program sees it', planner.plan(known, ways).offers[1].refusal)
    known.offers[1].passes = true
    assert.is_nil(planner.plan(known, ways).offers[1].refusal)
    known.offers[1].exit = 'first'
    assert.equal('exit is not captured', planner.plan(known, ways).offers[1].refusal)
  end)
end)

describe('what an offer asks for', function()
  it('is refused in its order', function()
    local list = { event(CALL) }
    for _, way in ipairs(TAKEN) do
      local made = plan({}, list, { offer(way, list, { asks = { 'details are printed', 'x' } }) })
      assert.equal('details are printed', made.offers[1].refusal)
    end
    assert.equal('its events are gone', plan({}, list, { offer('pair', list, { gate = 'x',
      gate_refusal = 'its events are gone' }) }).offers[1].refusal)
  end)
end)

describe('the reason for --capture=bpf and -v', function()
  it('is that of known events first, and not of cpus= beside others', function()
    local other = event('kmem:kmalloc', { is_known = false })
    local why, is_news = planner.why_perf(plan({}, { other, event(CALL, { is_rare = true }) }))
    assert.equal('not every raw_syscalls:sys_enter is sampled', why)
    assert.is_true(is_news)
    why, is_news = planner.why_perf(plan({}, { other }))
    assert.equal('programs do not know the arguments of kmem:kmalloc', why)
    assert.is_false(is_news)
    local bound = event(CALL, { attrs = { 'cpus' } })
    assert.is_nil((planner.why_perf(plan({}, { bound, event(SWITCH) }))))
    assert.equal('raw_syscalls:sys_enter has the attribute cpus=', (planner.why_perf(plan({}, { bound }))))
  end)
end)

describe('costs', function()
  it('are those of the way', function()
    local list = { event(CALL), event(SWITCH) }
    local sampled, captured = plan({ capture = 'perf' }, list), plan({}, list)
    local counted = plan({}, list, { offer('count', list) })
    for i in ipairs(list) do
      assert(counted.routes[i].cost <= captured.routes[i].cost and captured.routes[i].cost < sampled.routes[i].cost)
    end
    assert.equal(557, sampled.routes[1].cost)
    assert.is_nil(plan({}, { event('cpu-clock', CLOCK) }).routes[1].cost)
    assert.is_nil(costs.of('recording', list[1]))
    local switch = event(SWITCH, { has_stack = true })
    assert(costs.of('waits', switch) < costs.of('capture', switch))
    assert.is_nil(costs.of('count', switch))
  end)
end)
