-- SPDX-License-Identifier: GPL-2.0-only
--- How long the exits of virtual machines take in the host, by reason.
local array = require 'lib.array'
local heatmap = require 'lib.heatmap'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local kvm = require 'lib.kvm'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_ROWS = 4096
local KERNEL = 0x8000000000000000ULL -- instructions of the guest's kernel lie above

return {
  summary = 'How long exits of virtual machines take, by reason',
  description = [[
The time from kvm:kvm_exit to the next kvm:kvm_entry of the thread; %gsys is the part of it after exits
out of the guest's kernel. -p takes the process of a machine. --filter is for kvm_exit.]],
  examples = {
    { 'profscript kvm-exit -i 1000', 'all machines, every second' },
    { "profscript kvm-exit -p 1 --perins --filter 'exit_reason != 12'", 'by virtual CPU, without HLT of VMX' },
    { 'profscript kvm-exit --than 1ms --heatmap exits.svg', 'the long ones, and a picture of all' },
  },
  unsupported = { 'event' },
  options = {
    than = { type = 'duration', help = 'print the events around longer exits, but for HLT, and count them' },
    perins = { type = 'flag', help = 'rows for each CPU, or with -p, -t each thread' },
    filter = { own = true, help = 'only the exits this filter of kvm:kvm_exit matches' },
    heatmap = heatmap.option,
    exit_event = { type = 'event', default = 'kvm:kvm_exit', help = 'where the guest leaves' },
    entry_event = { type = 'event', default = 'kvm:kvm_entry', help = 'where it goes on' },
  },

  start = function(opt, out, session)
    local exit = opt.exit_event[1][1]
    if opt.filter then
      exit:set { filter = exit.filter and ('(%s) && (%s)'):format(exit.filter, opt.filter) or opt.filter }
    end
    if not exit.fields.exit_reason or not exit.fields.isa then
      return nil, ('%s of this kernel has no exit_reason and isa: it is that of another architecture'):format(exit.name)
    end
    -- Of each thread: when it left the guest (0: it did not), why, and whether from the guest's kernel.
    local since, reasons, isas = array.new(threads.MAX), array.new(threads.MAX), array.new(threads.MAX)
    local kernel = array.new(threads.MAX)
    local known_from, dropped = -1, 0
    local keys, hists = intern.new(3, MAX_ROWS), hist.set(MAX_ROWS + 1)
    local over, of_kernel = array.new(MAX_ROWS + 1), array.new(MAX_ROWS + 1)
    local than, perins, per_thread = opt.than or math.huge, opt.perins, session.per_thread
    local map = heatmap.new { file = opt.heatmap, title = 'kvm exits' }
    local exits = opt.than and session.slots(threads.MAX)

    local function leave(ev)
      local tid = ev._tid
      if tid < 0 or tid >= threads.MAX then return end
      since[tid], reasons[tid], isas[tid] = ev._time + 1, ev.exit_reason, ev.isa
      kernel[tid] = ev:u64 'guest_rip' >= KERNEL and 1 or 0
      if exits then exits:put(tid, ev) end
    end

    local function enter(ev)
      local tid = ev._tid
      if tid < 0 or tid >= threads.MAX or since[tid] == 0 then return end
      local from, reason, isa = since[tid] - 1, reasons[tid], isas[tid]
      since[tid] = 0
      if from < known_from then
        dropped = dropped + 1
        return
      end
      local ns = ev._time - from
      local id = keys.id(perins and (per_thread and tid or ev._cpu) or 0, isa, reason)
      hists:add(id, ns)
      if kernel[tid] ~= 0 then of_kernel[id] = of_kernel[id] + ns end
      map:add(ev._time, ns)
      if ns > than then
        over[id] = over[id] + 1
        local exit_event = exits:get(tid)
        if not kvm.is_halt(isa, reason) and exit_event then
          out:print_event(exit_event)
          out:print_event(ev)
        end
      end
    end

    local columns = {
      { name = 'instance', title = per_thread and '[THREAD]' or '[CPU]', align = 'left', show = perins },
      { name = 'exit_reason', width = 20, align = 'left' },
    }
    for _, column in ipairs(tables.latency_columns(opt.than ~= nil)) do columns[#columns + 1] = column end
    columns[#columns + 1] = { name = 'gsys_percent', title = '%gsys', width = 6, format = '%.2f' }
    local spec = tables.new('kvm-exit', columns)
    local function report()
      local rows = {}
      for id = 0, keys:count() - 1 do
        local isa, reason = keys:part(id, 2), keys:part(id, 3)
        local row = tables.latency_row({ instance = keys:part(id, 1), id = id }, hists:get(id))
        row.exit_reason = kvm.exit_reason(isa, reason)
        row.than, row.gsys_percent = over[id], 100 * of_kernel[id] / tonumber(row.total_ns)
        over[id], of_kernel[id] = 0, 0
        rows[id + 1] = row
      end
      table.sort(rows, function(a, b)
        if a.instance ~= b.instance then return a.instance < b.instance end
        if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
        return a.id < b.id
      end)
      out:table(spec, rows)
      hists:clear()
      keys:clear()
      if dropped > 0 then out:warn(('kvm-exit: %d exits left out: events were lost in between'):format(dropped)) end
      dropped = 0
    end
    return {
      [opt.exit_event] = leave,
      [opt.entry_event] = enter,
      interval = report,
      stop = function()
        report()
        map:write(out)
      end,
      lost = function(gap) known_from = math.max(known_from, gap.to) end,
    }
  end,
}
