-- SPDX-License-Identifier: GPL-2.0-only
-- Profilers whose counters this machine may lack, on made-up counts.

--- Runs a profiler over one interval of a second; counts are { [cpu] = { count of each event } }.
---@return table[] rows that it printed
---@return boolean stopped
---@return string[] events that it had counted
local function run(name, counts, share, per_thread, opt)
  opt = opt or {}
  opt.exit_n = 1
  local profiler = assert(loadfile('scripts/profilers/' .. name .. '.lua'))()
  local rows, stopped, ids, asked = nil, false, {}, nil
  for id in pairs(counts) do ids[#ids + 1] = id end
  table.sort(ids)
  local out = {
    format = 'json',
    table = function(_, spec, printed)
      rows = printed
      if opt.tables then opt.tables[spec.name] = printed end
    end,
    print_event = function(_, ev) table.insert(opt.printed, ev) end,
  }
  local session = {
    per_thread = per_thread,
    instance_title = per_thread and 'THREAD' or 'CPU',
    supports = function(event) return not (opt.is_recorded and event:match '^amd_l3') end,
    stop = function() stopped = true end,
    event = function() return 'sampled' end,
    want = function() end,
    address = function(_, ip)
      return { symbol = ip > 100 and 'vmalloc' or 'main', symbol_offset = ip, in_kernel = ip > 100 }
    end,
    count = function(events)
      asked = events
      return {
        title = per_thread and 'THREAD' or 'CPU',
        events = events,
        rows = function() return #ids end,
        id = function(_, row) return ids[row] end,
        get = function(_, row, event)
          local n = counts[ids[row]][event]
          return n, n and (share or 1)
        end,
      }
    end,
  }
  local handlers, refusal = profiler.start(opt, out, session)
  if not handlers then error(refusal, 0) end
  if opt.feed then opt.feed(handlers) end
  handlers.interval(1e9)
  return rows, stopped, asked
end

describe('ratios of counts', function()
  it('hwstat', function()
    local rows, stopped = run('hwstat', { [0] = { 1000, 2500 }, [3] = { 0, 0 } }, 0.5)
    assert.same({ { cpu = 0, cycles = 1000, instructions = 2500, ipc = 2.5, run = 50 },
      { cpu = 3, cycles = 0, instructions = 0, run = 50 } }, rows)
    assert.is_true(stopped)
  end)

  it('tlbstat', function()
    local row = run('tlbstat', { [1] = { 200, 50, 10, 1 } })[1]
    assert.same({
      cpu = 1, loads = 200, load_misses = 50, load_hit = 75, stores = 10, store_misses = 1, store_hit = 90, run = 100,
    }, row)
  end)

  it('llcstat', function()
    local row = run('llcstat', { [0] = { 100, 25 } })[1]
    assert.same({ cpu = 0, references = 100, misses = 25, hit = 75, run = 100 }, row)
    assert.is_nil(run('llcstat', { [0] = { 0, 0 } })[1].hit)
  end)

  it('llcstat on AMD: by cache, with the latency of a miss', function()
    local open = io.open
    finally(function() rawset(io, 'open', open) end)
    rawset(io, 'open', function(path, ...)
      if not path:match 'amd_l3/cpumask$' then return open(path, ...) end
      return { read = function() return '0,8' end, close = function() end }
    end)
    local counts = { [0] = { 1000, 250, 500, 80 }, [1] = {}, [8] = { 10, 0, 0, 0 } }
    local rows, _, asked = run('llcstat', counts)
    assert.equal('amd_l3/event=0x4,umask=0xff/cpus="0,8"/', asked[1])
    assert.same({ { cpu = 0, references = 1000, misses = 250, hit = 75, run = 100, miss_latency = 100 },
      { cpu = 8, references = 10, misses = 0, hit = 100, run = 100 } }, rows)
    assert.has_error(function() run('llcstat', counts, 1, true) end, 'the PMU amd_l3 counts per cache, not per thread')
    assert.equal('cache-references', select(3, run('llcstat', counts, 1, true, { is_recorded = true }))[1])
  end)

  it('split-lock: samples by place, in the order of their number', function()
    local opt = { period = 100, verbose = 1, tables = {}, printed = {} }
    local lines = io.lines
    finally(function() rawset(io, 'lines', lines) end)
    rawset(io, 'lines', function() return ('vendor_id : GenuineIntel'):gmatch '.+' end)
    function opt.feed(handlers)
      for _, ip in ipairs { 4, 200, 4 } do handlers.sampled({ _ip = ip, _pid = 1, _period = 100 }) end
      assert.equal('split-lock: 100 host-kernel ip vmalloc+0xc8', handlers.describe({ _ip = 200, _period = 100 }))
    end
    local _, _, asked = run('split-lock', { [0] = { 312 } }, 1, false, opt)
    assert.same({ 'r10f4' }, asked)
    assert.same({ { cpu = 0, split_locks = 312, run = 100 } }, opt.tables['split-lock'])
    assert.same({ { sampled_rip = 'main+0x4', samples = 2, mode = 'host-user' },
      { sampled_rip = 'vmalloc+0xc8', samples = 1, mode = 'host-kernel' } }, opt.tables['split-lock-samples'])
    assert.equal(3, #opt.printed)
    opt = { call_graph = true, verbose = 0 }
    assert.has_error(function() run('split-lock', {}, 1, false, opt) end, '-g needs samples; select them with -T')
  end)

  it('cpu-util', function()
    assert.same({ { cpu = 0, util = 25, busy_ns = 250e6, cycles = 750e6, ghz = 3 } },
      (run('cpu-util', { [0] = { 250e6, 750e6 } })))
    assert.equal(1200, run('cpu-util', { [1200] = { 1, 1 } }, 1, true)[1].tid)
  end)
end)
