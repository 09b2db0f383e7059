-- SPDX-License-Identifier: GPL-2.0-only
-- Programs that add up CPU times, on synthetic switches. Their clock is the real one, so what is compared is who ran
-- how often.
local cpu_times = require 'bpf.tasks.cpu_sums'
local ffi = require 'ffi'
local run_bpf = require 'tests.unit.bpf.gen.run_bpf'

ffi.cdef 'struct cpu_record { int64_t cpu, side; int32_t prev_pid, next_pid, prev_prio, next_prio; };'
local record_type = ffi.typeof 'struct cpu_record'
local on = run_bpf.on(record_type, 2)
local fields = {}
for _, name in ipairs { 'prev_pid', 'next_pid', 'prev_prio', 'next_prio' } do fields[name] = on.field(name, 4) end

describe('CPU times', function()
  local missing = run_bpf.missing()
  if missing then return pending(missing) end

  it('are those of the task that was noted', function()
    local of = cpu_times.new { nr_cpus = 2, sides = 2 }
    local loaded = on.load(of:body(fields))
    local function switched(prev, next_pid)
      on.run(loaded, record_type { prev_pid = prev, next_pid = next_pid })
    end
    switched(4, 5) -- the CPU takes no part yet
    local note = ffi.cast('uint64_t *', of.notes.bytes)
    note[0], note[1], note[2] = 1, 4, 1 -- since, thread, is wanted
    switched(4, 5)
    switched(5, 0)
    switched(0, 5) -- the idle task has no time
    switched(9, 6) -- 5 has not left
    assert.equal(1, of:unreported())
    local runs = {}
    of:take(1, function(cpu, who, sums)
      assert.equal(0, cpu)
      runs[who] = tonumber(sums.count)
    end)
    assert.same({ [4] = 1, [5] = 1 }, runs)
  end)
end)
