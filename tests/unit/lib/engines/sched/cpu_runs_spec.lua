-- SPDX-License-Identifier: GPL-2.0-only
-- Who ran on the CPUs, and the sums of a time, compared with what is counted for each ns of random runs and waits.
local cpu_runs = require 'lib.engines.sched.cpu_runs'

local CPUS, STEPS = 3, 400

--- Returns random switches and waits, and what holds for each ns: who runs, and how many wait.
local function random_run(all)
  local running, waiting, moments, time = {}, {}, {}, 0
  for cpu = 0, CPUS - 1 do
    all:switch(all:of(cpu, 0), 9, 0, 0)
    running[cpu], waiting[cpu] = 0, 0
  end
  for _ = 1, STEPS do
    local cpu = math.random(0, CPUS - 1)
    for at = time, time + math.random(0, 5) do
      if at > time then
        local now = { running = {}, waiting = {} }
        for i = 0, CPUS - 1 do now.running[i], now.waiting[i] = running[i], waiting[i] end
        moments[#moments + 1] = now
      end
    end
    time = #moments
    if math.random() < 0.5 then
      local next_tid = math.random(0, 3)
      all:switch(all:of(cpu, time), running[cpu], next_tid, time)
      running[cpu] = next_tid
    else
      local by = waiting[cpu] > 0 and math.random() < 0.6 and -1 or 1
      all:wait(all:of(cpu, time), by, time)
      waiting[cpu] = waiting[cpu] + by
    end
  end
  return moments
end

--- Whether tasks wait for a CPU that is not idle.
local function is_queue(now)
  for cpu = 0, CPUS - 1 do
    if now.running[cpu] ~= 0 and now.waiting[cpu] > 0 then return true end
  end
  return false
end

describe('runs of CPUs', function()
  it('add up to what each ns has', function()
    for seed = 1, 20 do
      math.randomseed(seed)
      local all = cpu_runs.new()
      local moments = random_run(all)
      all:report(#moments, function(cpu)
        local busy, waited, unclaimed = 0, 0, 0
        for _, now in ipairs(moments) do
          if now.running[cpu.cpu] > 0 then busy = busy + 1 end
          if now.running[cpu.cpu] == 0 and is_queue(now) then unclaimed = unclaimed + 1 end
          waited = waited + now.waiting[cpu.cpu]
        end
        assert.same({ busy, waited, unclaimed, 0 }, { cpu.busy, cpu.waited, cpu.unclaimed, cpu.hole })
      end)
      for _ = 1, 20 do
        local cpu, from = math.random(0, CPUS - 1), math.random(0, #moments - 1)
        local to, want, got = math.random(from, #moments), {}, {}
        for at = from + 1, to do
          local tid = moments[at].running[cpu]
          want[tid] = (want[tid] or 0) + 1
        end
        cpu_runs.between(all:of(cpu, 0), from, to, function(tid, ns) got[tid] = (got[tid] or 0) + ns end)
        for tid, ns in pairs(got) do
          if ns == 0 then got[tid] = nil end
        end
        assert.same(want, got)
      end
    end
  end)

  it('have holes where switches are missing, and after losses', function()
    local all = cpu_runs.new()
    local cpu = all:of(0, 0)
    local parts
    local function part(tid, ns) parts[#parts + 1] = { tid, ns } end
    assert.is_nil(all:switch(cpu, 7, 1, 10)) -- nobody has seen 7 begin
    assert.equal(10, all:switch(cpu, 1, 2, 20))
    assert.is_nil(all:switch(cpu, 3, 1, 50)) -- 2 has left, unseen
    assert.equal(50, all:switch(cpu, 1, 0, 60))
    all:lose(nil, 70)
    assert.is_nil(all:switch(cpu, 0, 1, 90))
    assert.equal(1, all.holes)
    parts = {}
    cpu_runs.between(cpu, 0, 90, part)
    assert.same({ { -1, 20 }, { 0, 10 }, { 1, 10 }, { -1, 30 }, { 1, 10 }, { -1, 10 } }, parts)
    all:report(100, function(sums, ns)
      assert.same({ 100, 30, 50 }, { ns, sums.busy, sums.hole })
    end)
  end)

  it('are not known any more when there were too many', function()
    local all = cpu_runs.new()
    local cpu, parts = all:of(0, 0), {}
    for time = 1, 10000 do all:switch(cpu, time % 2 + 1, (time + 1) % 2 + 1, time) end
    cpu_runs.between(cpu, 0, 10000, function(tid, ns) parts[tid] = (parts[tid] or 0) + ns end)
    assert.equal(10000 - 8192 + 1, parts[cpu_runs.HOLE])
  end)
end)
