-- SPDX-License-Identifier: GPL-2.0-only
-- The profiler kvmmmu on made-up events of page tables.
local ROLE = 0x3780 -- direct, all access; its low bits are the level

local function start(opt)
  local printed, warnings = {}, {}
  local out = {
    table = function(_, spec, rows) printed[spec.name] = rows end,
    warn = function(_, text) warnings[#warnings + 1] = text end,
  }
  opt.verbose, opt.event = 1, {}
  local handlers = assert(loadfile 'scripts/profilers/kvmmmu.lua')().start(opt, out)
  local function get(level, gfn, created, gen)
    handlers['kvmmmu:kvm_mmu_get_page'] {
      mmu_valid_gen = gen or 0, gfn = gfn, role = ROLE + level, created = created, _time = 1, _tid = 1,
    }
  end
  local function zap(level, gfn, role, root_count, gen)
    handlers['kvmmmu:kvm_mmu_prepare_zap_page'] {
      mmu_valid_gen = gen or 0, gfn = gfn, role = role + level, root_count = root_count or 0,
    }
  end
  return { get = get, zap = zap, handlers = handlers, printed = printed, warnings = warnings }
end

local function row(gen, level, get_page, created, zap_page, live)
  return { gen = gen, level = level, get_page = get_page, created = created, zap_page = zap_page, set_spte = 0,
    mmio_spte = 0, live = live }
end

describe('kvmmmu', function()
  it('counts by level, and the pages that remain', function()
    local mmu = start { detail = true }
    mmu.get(4, 0, true)
    mmu.get(1, 512, true)
    mmu.get(1, 512, false)
    mmu.get(1, 1024, true)
    mmu.zap(1, 512, ROLE + 0x800) -- already invalid
    mmu.zap(4, 0, ROLE, 1) -- in use
    mmu.handlers.interval()
    assert.same({ row(0, 1, 3, 2, 1, 1), row(0, 4, 1, 1, 1, 1) }, mmu.printed.kvmmmu)
    assert.same({ { gen = 0, level = 4, start = 0, size = '256T', role = ROLE + 4 },
      { gen = 0, level = 1, start = 0x400000, size = '2M', role = ROLE + 1 } }, mmu.printed['kvmmmu-pages'])
    mmu.zap(4, 0, ROLE)
    mmu.zap(1, 1024, ROLE)
    mmu.handlers.stop()
    assert.same({ row(0, 1, 0, 0, 1, 0), row(0, 4, 0, 0, 1, 0) }, mmu.printed.kvmmmu)
    assert.same({}, mmu.warnings)
  end)

  it('distinguishes generations, and pages that it did not see', function()
    local mmu = start {}
    mmu.get(2, 0, true, 0)
    mmu.get(2, 0, true, 1)
    mmu.zap(2, 0, ROLE, 0, 0)
    mmu.zap(3, 0, ROLE, 0, 0)
    mmu.handlers.interval()
    assert.same({ row(0, 2, 1, 1, 1, 0), row(0, 3, 0, 0, 1, 0), row(1, 2, 1, 1, 0, 1) }, mmu.printed.kvmmmu)
    assert.same({ 'kvmmmu: 1 zapped pages were created before the start, 0 pages were created twice' }, mmu.warnings)
  end)

  it('counts entries if asked to', function()
    local mmu = start { spte = true, mmio = true }
    mmu.get(1, 0, true, 1)
    for _, level in ipairs { 1, 2, 1 } do mmu.handlers['kvmmmu:kvm_mmu_set_spte'] { level = level } end
    mmu.handlers['kvmmmu:mark_mmio_spte'] {}
    mmu.handlers.stop()
    assert.equal(2, mmu.printed.kvmmmu[1].set_spte)
    assert.equal(1, mmu.printed.kvmmmu[1].mmio_spte)
    assert.equal(1, mmu.printed.kvmmmu[2].set_spte)
  end)

  it('forgets pages when events are lost', function()
    local mmu = start {}
    mmu.get(1, 0, true)
    mmu.handlers.lost()
    mmu.handlers.stop()
    assert.equal(0, mmu.printed.kvmmmu[1].live)
    assert.matches('events were lost', mmu.warnings[1])
  end)
end)
