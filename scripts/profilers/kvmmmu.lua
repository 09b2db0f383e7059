-- SPDX-License-Identifier: GPL-2.0-only
--- KVM MMU pages, the page tables of guests: lookups, creations, zaps and live pages, by generation and level.
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

--- Returns the counts of a run and its live pages.
local function new_state()
  local state = { pages = objects.new(MAX_PAGES), generation = 0, unknown = 0, duplicates = 0, lost = false }
  for _, name in ipairs(COUNTS) do state[name] = array.new(GENERATIONS * LEVELS) end -- by (generation, level)
  return state
end

local function level_of(level) return level <= 5 and level or 0 end

local function space_of(role) return role % SPACE - (role % (2 * INVALID) >= INVALID and INVALID or 0) end

--- Counts an event of a level, in the generation of the last page event.
local function count(state, counts, level)
  local at = state.generation * LEVELS + level_of(level)
  counts[at] = counts[at] + 1
end

--- Returns the handlers of events of pages.
local function page_handlers(state)
  return {
    ['kvmmmu:kvm_mmu_get_page'] = function(ev)
      local generation, role = ev.mmu_valid_gen % GENERATIONS, ev.role
      state.generation = generation
      count(state, state.get_page, role % 16)
      if not ev.created then return end
      count(state, state.created, role % 16)
      local was = state.pages:put(generation * SPACE + space_of(role), ev.gfn + 1, 0, ev._time, ev._tid, 0, role)
      if was == 1 then state.duplicates = state.duplicates + 1 end
    end,
    ['kvmmmu:kvm_mmu_prepare_zap_page'] = function(ev)
      local generation, role = ev.mmu_valid_gen % GENERATIONS, ev.role
      state.generation = generation
      count(state, state.zap_page, role % 16)
      if ev.root_count > 0 then return end -- still in use
      local page = state.pages:take(generation * SPACE + space_of(role), ev.gfn + 1)
      if not page then state.unknown = state.unknown + 1 end
    end,
  }
end

--- Returns the live pages by generation and level: how many, and a row of each.
local function live_pages(state)
  local live, list = {}, {}
  state.pages:each(function(page)
    local gen, level = math.floor(page.space / SPACE), page.kind % 16
    local at = gen * LEVELS + level_of(level)
    live[at] = (live[at] or 0) + 1
    list[#list + 1] = {
      gen = gen, level = level, start = (tonumber(page.address) - 1) * 4096, size = SIZES[level], role = page.kind,
    }
  end)
  table.sort(list, function(a, b)
    if a.gen ~= b.gen then return a.gen < b.gen end
    if a.level ~= b.level then return a.level > b.level end
    if a.start ~= b.start then return a.start < b.start end
    return a.role < b.role
  end)
  return live, list
end

--- Returns the rows of the counts.
local function rows_of(state, live)
  local rows = {}
  for at = 0, GENERATIONS * LEVELS - 1 do
    local row = { gen = math.floor(at / LEVELS), level = at % LEVELS, live = live[at] or 0 }
    local some = row.live
    for _, name in ipairs(COUNTS) do
      row[name] = state[name][at]
      some = some + row[name]
    end
    if some > 0 then rows[#rows + 1] = row end
  end
  return rows
end

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
  optional = {
    ['kvmmmu:kvm_mmu_get_page'] = 'GET_PAGE, CREATED and LIVE are 0',
    ['kvmmmu:kvm_mmu_prepare_zap_page'] = 'ZAP_PAGE is 0, and zapped pages stay LIVE',
  },
  everywhere = true,
  options = {
    event = { help = 'events to print between the reports' },
    spte = { type = 'flag', help = 'count page table entries that are set (kvmmmu:kvm_mmu_set_spte)' },
    mmio = { type = 'flag', help = 'count page table entries for MMIO (kvmmmu:mark_mmio_spte)' },
    detail = { type = 'flag', help = 'list the live pages in each report' },
  },

  start = function(opt, out)
    local state = new_state()
    local handlers = page_handlers(state)
    if opt.spte then
      handlers['kvmmmu:kvm_mmu_set_spte'] = function(ev) count(state, state.set_spte, ev.level) end
    end
    if opt.mmio then
      handlers['kvmmmu:mark_mmio_spte'] = function() count(state, state.mmio_spte, 1) end -- always level 1
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
      { name = 'start', metric = 'label', title = 'START', unit = 'address' },
      { name = 'size', title = 'SIZE', align = 'right' },
      { name = 'role', metric = 'label', title = 'ROLE', format = '0x%x' },
    })

    function handlers.draw()
      local live, list = live_pages(state)
      out:table(spec, rows_of(state, live))
      if opt.detail then out:table(page_spec, list) end
    end

    local function report()
      handlers.draw()
      for _, name in ipairs(COUNTS) do state[name] = array.new(GENERATIONS * LEVELS) end
      if opt.verbose > 0 and state.unknown + state.duplicates > 0 then
        out:warn(('kvmmmu: %d zapped pages were created before the start, %d pages were created twice'):format(
          state.unknown, state.duplicates))
      end
      if state.lost then out:warn 'kvmmmu: events were lost: LIVE counts only pages created since then' end
      state.unknown, state.duplicates, state.lost = 0, 0, false
    end

    handlers.interval, handlers.stop = report, report
    function handlers.lost() state.pages, state.lost = objects.new(MAX_PAGES), true end
    return handlers
  end,
}
