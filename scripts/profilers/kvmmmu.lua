-- SPDX-License-Identifier: GPL-2.0-only
--- KVM MMU pages, the page tables of guests: lookups, creations, zaps and live pages, by generation and level. Longer
--- than most profilers because it tracks the live pages and prints two tables.
local array = require 'lib.array'
local objects = require 'lib.objects'
local tables = require 'lib.table'

local MAX_PAGES = 1048576
local LEVELS = 6 -- 1 to 5; 0 is for all others
local SIZES = { '2M', '1G', '512G', '256T', '128P' } -- mapped by a page of each level
local GENERATIONS = 16
local INVALID = 0x800 -- role bit: the page is zapped, but still in use
local SPACE = 0x4000000 -- above all roles: a page is tracked in the space generation * SPACE + role
-- Counted by generation and level.
local COUNTS = { 'get_page', 'created', 'zap_page', 'set_spte', 'mmio_spte' }

return {
  summary = 'Count the page tables that KVM creates and zaps for VMs',
  description = [[
Counts MMU pages (page tables) by generation and level; entries of level 1 map 4
KiB pages:

  GET_PAGE  lookups
  CREATED   pages created by lookups
  ZAP_PAGE  pages zapped
  LIVE      pages created since the start of the run and not yet zapped

All VMs are counted together, even with -p, -t or a workload, because any thread
can zap a page. The root page of a VM with two-dimensional paging (TDP MMU) is
freed without an event and stays in LIVE. Events of page table entries carry no
generation; they count in the generation of the page event before them.]],
  examples = {
    { 'profscript kvmmmu -i 1000', 'all VMs, every second' },
    { 'profscript kvmmmu --spte --detail', 'also count entries set, and list the live pages at the end' },
    { 'profscript kvmmmu -e kvm:kvm_page_fault', 'also print a line for each guest page fault' },
  },
  unsupported = { 'event' },
  everywhere = true,
  options = {
    event = { help = 'events to print between the reports' },
    spte = { type = 'flag', help = 'count page table entries that are set (kvmmmu:kvm_mmu_set_spte)' },
    mmio = { type = 'flag', help = 'count page table entries for MMIO (kvmmmu:mark_mmio_spte)' },
    detail = { type = 'flag', help = 'list the live pages in each report' },
  },

  start = function(opt, out)
    local pages = objects.new(MAX_PAGES)
    local counts = {} -- of COUNTS, by (generation, level)
    for i in ipairs(COUNTS) do counts[i] = array.new(GENERATIONS * LEVELS) end
    local get_page, created, zap_page, set_spte, mmio_spte = unpack(counts)
    local generation, unknown, duplicates, lost = 0, 0, 0, false

    local function slot(level) return generation * LEVELS + (level <= 5 and level or 0) end
    local function space_of(role) return role % SPACE - (role % (2 * INVALID) >= INVALID and INVALID or 0) end

    local handlers = {
      ['kvmmmu:kvm_mmu_get_page'] = function(ev)
        generation = ev.mmu_valid_gen % GENERATIONS
        local role = ev.role
        local at = slot(role % 16)
        get_page[at] = get_page[at] + 1
        if not ev.created then return end
        created[at] = created[at] + 1
        local was = pages:put(generation * SPACE + space_of(role), ev.gfn + 1, 0, ev._time, ev._tid, 0, role)
        if was == 1 then duplicates = duplicates + 1 end
      end,
      ['kvmmmu:kvm_mmu_prepare_zap_page'] = function(ev)
        generation = ev.mmu_valid_gen % GENERATIONS
        local role = ev.role
        local at = slot(role % 16)
        zap_page[at] = zap_page[at] + 1
        if ev.root_count > 0 then return end -- still in use
        if not pages:take(generation * SPACE + space_of(role), ev.gfn + 1) then unknown = unknown + 1 end
      end,
    }
    if opt.spte then
      handlers['kvmmmu:kvm_mmu_set_spte'] = function(ev)
        local at = slot(ev.level)
        set_spte[at] = set_spte[at] + 1
      end
    end
    if opt.mmio then
      handlers['kvmmmu:mark_mmio_spte'] = function()
        local at = slot(1) -- always
        mmio_spte[at] = mmio_spte[at] + 1
      end
    end
    if #opt.event > 0 then handlers[opt.event] = function(ev) out:print_event(ev) end end

    local spec = tables.new('kvmmmu', {
      { name = 'gen', metric = 'label', title = 'GEN' },
      { name = 'level', metric = 'label', title = 'LEVEL' },
      { name = 'get_page', metric = 'counter', title = 'GET_PAGE' },
      { name = 'created', metric = 'counter', title = 'CREATED' },
      { name = 'zap_page', metric = 'counter', title = 'ZAP_PAGE' },
      { name = 'set_spte', metric = 'counter', title = 'SET_SPTE', show = opt.spte or false },
      { name = 'mmio_spte', metric = 'counter', title = 'MMIO_SPTE', show = opt.mmio or false },
      { name = 'live', title = 'LIVE' },
    })
    local page_spec = tables.new('kvmmmu-pages', {
      { name = 'gen', metric = 'label', title = 'GEN' },
      { name = 'level', metric = 'label', title = 'LEVEL' },
      { name = 'start', metric = 'label', title = 'START', format = '0x%x' },
      { name = 'size', title = 'SIZE', align = 'right' },
      { name = 'role', metric = 'label', title = 'ROLE', format = '0x%x' },
    })

    local function report()
      local live, list = {}, {}
      pages:each(function(page)
        local gen, level = math.floor(page.space / SPACE), page.kind % 16
        local at = gen * LEVELS + (level <= 5 and level or 0)
        live[at] = (live[at] or 0) + 1
        list[#list + 1] = {
          gen = gen, level = level, start = (tonumber(page.address) - 1) * 4096, size = SIZES[level], role = page.kind,
        }
      end)
      local rows = {}
      for at = 0, GENERATIONS * LEVELS - 1 do
        local row = { gen = math.floor(at / LEVELS), level = at % LEVELS, live = live[at] or 0 }
        local some = row.live
        for i, name in ipairs(COUNTS) do
          row[name], counts[i][at] = counts[i][at], 0
          some = some + row[name]
        end
        if some > 0 then rows[#rows + 1] = row end
      end
      out:table(spec, rows)
      if opt.detail then
        table.sort(list, function(a, b)
          if a.gen ~= b.gen then return a.gen < b.gen end
          if a.level ~= b.level then return a.level > b.level end
          if a.start ~= b.start then return a.start < b.start end
          return a.role < b.role
        end)
        out:table(page_spec, list)
      end
      if opt.verbose > 0 and unknown + duplicates > 0 then
        out:warn(('kvmmmu: %d zapped pages were created before the start, %d pages were created twice'):format(unknown,
          duplicates))
      end
      if lost then out:warn 'kvmmmu: events were lost: LIVE counts only pages created since then' end
      unknown, duplicates, lost = 0, 0, false
    end

    handlers.interval, handlers.stop = report, report
    function handlers.lost()
      pages, lost = objects.new(MAX_PAGES), true
    end
    return handlers
  end,
}
