-- SPDX-License-Identifier: GPL-2.0-only
-- Sampled memory accesses, on made-up samples with values seen on real machines.
local datasrc = require 'lib.datasrc'

describe('data_src', function()
  -- Words of real processors, and the output of perf script for them.
  for word, wanted in pairs {
    [0x51080242] = 'LFB/MAB hit|SNP N/A|TLB L2 miss|LCK N/A|BLK N/A', -- AMD IBS
    [0x49080142] = 'L1 hit|SNP N/A|TLB L2 hit|LCK N/A|BLK N/A',
    [0x10268100142] = 'L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A', -- Intel PEBS
    [0x8688000842] = 'L3 hit|SNP Peer|TLB Walker hit|LCK No|BLK N/A', -- Arm SPE
  } do
    it(('%x'):format(word), function() assert.equal(wanted, datasrc.text(word)) end)
  end

  it('has a distance, a lock, a snoop and the cause of blocking', function()
    local bits = { 2 ^ 1, 2 ^ 6, 13 * 2 ^ 33, 2 ^ 37, 3 * 2 ^ 43, 2 ^ 23, 2 ^ 25, 2 ^ 28, 2 ^ 31, 2 ^ 41, 2 ^ 42 }
    local word = 0
    for _, one in ipairs(bits) do word = word + one end
    assert.equal('Remote socket, same board RAM hit|SNP HitM|TLB Walker miss|LCK Yes|BLK Data or Addr',
      datasrc.text(word))
  end)

  it('of nothing, and of an unnamed level', function()
    assert.equal('N/A|SNP N/A|TLB N/A|LCK No|BLK N/A', datasrc.text(0))
    assert.equal('N/A miss|SNP N/A|TLB N/A|LCK No|BLK N/A', datasrc.text(7 * 2 ^ 33 + 2 ^ 7))
  end)
end)

describe('ldlat', function()
  local LINES, OPEN = io.lines, io.open
  after_each(function()
    rawset(io, 'lines', LINES)
    rawset(io, 'open', OPEN)
  end)

  --- Starts a profiler on a processor of a vendor, with or without its PMU.
  local function start(name, opt, vendor, pmu)
    local rows, printed, asked = {}, {}, nil
    local out = {
      table = function(_, _, list) rows = list end,
      print_event = function(_, ev) printed[#printed + 1] = ev end,
    }
    local session = {
      instance_field = '_cpu', instance_title = 'CPU',
      event = function(params)
        asked = params
        return 'the event'
      end,
      address_text = function() return 'main+0x10' end,
    }
    local profiler = assert(loadfile('scripts/profilers/' .. name .. '.lua'))()
    rawset(io, 'lines', function() return ('processor : 0\nvendor_id\t: %s\n'):format(vendor):gmatch '[^\n]+' end)
    rawset(io, 'open', function(path)
      return path:match('/' .. (pmu or 'none') .. '/type$') and { close = function() end }
    end)
    opt.period = 1000
    return profiler.start(opt, out, session), function() return rows, printed, asked end
  end
  local function sample(cpu, word, cycles)
    return { _cpu = cpu, _tid = 7, _data_src = word, _weight = cycles, _ip = 1, _addr = 0x1000, _phys_addr = 0x2000 }
  end

  it('adds up the cycles of each source', function()
    local handlers, result = start('ldlat-loads', { ldlat = 30, than = 100 }, 'GenuineIntel', 'cpu')
    local load = handlers['the event']
    for _, cycles in ipairs { 4, 6, 101 } do load(sample(0, 0x10268100142, cycles)) end
    load(sample(1, 0x51080242, 100))
    handlers.interval()
    local rows, printed, asked = result()
    assert.equal('cpu/event=0xcd,umask=0x1,ldlat=30/', asked[1])
    assert.same({ 'weight', 'data_src', 'phys_addr' }, asked.sample)
    assert.equal(2, #rows)
    assert.equal('cdata', type(rows[1].latency)) -- the histogram, which was cleared since
    rows[1].latency = nil
    local variance = rows[1].variance
    assert.near((33 ^ 2 + 31 ^ 2 + 64 ^ 2) / 3, variance, 1e-9)
    assert.same({
      instance = 0, source = 'L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A', samples = 3, total = 111, min = 4,
      avg = 37, max = 101, variance = variance, stddev = math.sqrt(variance),
    }, rows[1])
    assert.equal(1, rows[2].samples)
    assert.equal(1, #printed)
    assert.equal('ldlat-loads: DATA 10268100142 ADDR 0000000000001000 PHYS 0000000000002000 latency 101 cycles '
      .. 'L1 hit|SNP None|TLB L1 or L2 hit|LCK No|BLK N/A RIP main+0x10', handlers.describe(printed[1]))
    handlers.stop()
    assert.same({}, (result()))
  end)

  it('by CPU', function()
    local handlers, result = start('ldlat-stores', { perins = true }, 'GenuineIntel', 'cpu_core')
    for _, cpu in ipairs { 3, 0, 3 } do handlers['the event'](sample(cpu, 0x49080142, 0)) end
    handlers.stop()
    local rows, printed, asked = result()
    assert.equal('cpu_core/event=0xd0,umask=0x82/', asked[1])
    assert.same({ 0, 1, 3, 2 }, { rows[1].instance, rows[1].samples, rows[2].instance, rows[2].samples })
    assert.same({}, printed)
  end)

  it('needs an Intel processor, and its PMU', function()
    assert.has_error(function() start('ldlat-loads', { ldlat = 3 }, 'AuthenticAMD') end,
      'ldlat-loads: needs an Intel processor, whose PEBS samples memory accesses')
    assert.error_matches(function() start('ldlat-stores', {}, 'GenuineIntel') end,
      'ldlat%-stores: needs a hardware PMU, and this machine has none')
  end)
end)
