-- SPDX-License-Identifier: GPL-2.0-only
-- The program that adds up waits, on synthetic switches without stacks. Its clock is the real one, so what is compared
-- is how often a task waited.
local ffi = require 'ffi'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local sched_switch = require 'bindings.expr.sched_switch'
local wait_sums = require 'bpf.tasks.wait_sums'

ffi.cdef [[struct wait_record { int64_t cpu, side, prev_state; int32_t prev_pid, next_pid; char prev_comm[16],
  next_comm[16]; };]]
local record_type = ffi.typeof 'struct wait_record'
local on = run_bpf.on(record_type, 2)
local fields = { prev_state = on.field 'prev_state', prev_comm = on.field('prev_comm', 16),
  next_comm = on.field('next_comm', 16) }
for _, name in ipairs { 'prev_pid', 'next_pid' } do fields[name] = on.field(name, 4) end

describe('waits of tasks', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  local of, switch
  local function load(settings)
    local plan = { nr_cpus = 2, sides = 2, nr_threads = 1000, parts = 0, max = 0 }
    for name, value in pairs(settings or {}) do plan[name] = value end
    of = wait_sums.new(plan)
    of:limit(1)
    switch = on.load(of:body(fields))
  end
  local function switched(prev, state, next_pid)
    on.run(switch, record_type { side = 1, prev_pid = prev, prev_state = state, next_pid = next_pid,
      prev_comm = 'task ' .. prev, next_comm = 'task ' .. next_pid })
  end
  local function key(start, state)
    return ffi.string(ffi.cast('const char *', start + 2)) .. ' ' .. sched_switch.STATES[state]
  end
  local function counts()
    local n = {}
    of:take(1, function(state, sums, start)
      local name = start and key(start, state) or 'other'
      n[name] = (n[name] or 0) + tonumber(sums.count)
    end)
    return n
  end

  for _, nr_threads in ipairs { 1000, 2 ^ 20 } do
    it(('last from a switch to the next one, of %d threads'):format(nr_threads), function()
      load { nr_threads = nr_threads }
      switched(5, 1, 6) -- 5 sleeps
      switched(6, 0, 5) -- 6 is preempted
      switched(5, 2, 6)
      switched(6, 16, 0) -- 6 ends
      switched(0, 0, 6) -- another thread has its id
      switched(6, 1, 5)
      assert.same({ ['task 5 S'] = 1, ['task 6 RD'] = 1, ['task 5 D'] = 1 }, counts())
      assert.equal(0, of:counted 'switches')
      local open = {}
      of:each(2 ^ 62, function(state, _, start, tid) open[tid] = key(start, state) end)
      assert.same({ [6] = 'task 6 S' }, open)
    end)
  end

  it('that are short do not count', function()
    load { than = 2 ^ 50 }
    switched(5, 1, 6)
    switched(6, 0, 5)
    assert.same({}, counts())
  end)

  it('may have begun before the run', function()
    load()
    of:set_first(5, sched_switch.BLOCKED)
    of:set_first(6, sched_switch.SLEEP)
    local before = {}
    of:each(2 ^ 62, function(state, _, start, tid) before[tid] = { state, tonumber(start[0]) } end)
    assert.same({ [5] = { sched_switch.BLOCKED, wait_sums.BEFORE }, [6] = { sched_switch.SLEEP, wait_sums.BEFORE } },
      before)
    switched(7, 0, 5)
    switched(6, 1, 7) -- 6 ran
    switched(7, 0, 6)
    assert.same({ ['task 5 D'] = 1, ['task 7 RD'] = 1, ['task 6 S'] = 1 }, counts())
  end)

  it('say which switches are missing', function()
    load()
    switched(5, 1, 6)
    switched(5, 1, 6) -- nobody has switched to 5, and 6 has not left
    assert.equal(2, of:counted 'switches')
  end)
end)
