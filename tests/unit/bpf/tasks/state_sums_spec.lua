-- SPDX-License-Identifier: GPL-2.0-only
-- Programs that add up states of tasks, on synthetic switches and wakeups. Their clock is the real one, so what is
-- compared is how often a state ended.
local ffi = require 'ffi'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'
local sched_switch = require 'bindings.expr.sched_switch'
local states = require 'bpf.tasks.state_sums'

ffi.cdef 'struct state_record { int64_t cpu, side, prev_state; int32_t prev_pid, next_pid, pid, pad; };'
local record_type = ffi.typeof 'struct state_record'
local on = run_bpf.on(record_type, 2)
local fields = { prev_state = on.field 'prev_state' }
for _, name in ipairs { 'prev_pid', 'next_pid', 'pid' } do fields[name] = on.field(name, 4) end

describe('states of tasks', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  local of, switch, wake
  before_each(function()
    of = states.new { nr_cpus = 2, sides = 2, threshold = -1, nr_threads = 1000 }
    of:limit(1)
    switch = on.load(of:body { leaves = fields.prev_pid, state = fields.prev_state, enters = fields.next_pid,
      names = {} })
    wake = on.load(of:body { wakes = fields.pid, names = {} })
  end)

  local function switched(prev, state, next_pid)
    on.run(switch, record_type { side = 1, prev_pid = prev, prev_state = state, next_pid = next_pid })
  end

  local function counts()
    local n = {}
    of:take(1, function(_, state, sums)
      local name = sched_switch.STATES[state]
      n[name] = (n[name] or 0) + tonumber(sums.count)
    end)
    return n
  end

  it('end with the next event of the task', function()
    switched(5, 1, 6) -- 5 sleeps
    on.run(wake, record_type { side = 1, pid = 5 })
    switched(6, 0, 5) -- 6 is preempted
    switched(5, 2, 6)
    assert.same({ R = 2, S = 1, RD = 2 }, counts())
    assert.equal(0, of:counted 'switches')
    assert.equal(0, of:counted 'wakeups')
    assert.same({}, counts())
  end)

  it('say which switches and wakeups are missing', function()
    switched(5, 1, 6)
    switched(6, 1, 5) -- 5 was not woken
    switched(7, 1, 5) -- 5 has not left
    assert.equal(1, of:counted 'wakeups')
    assert.equal(1, of:counted 'switches')
  end)
end)
