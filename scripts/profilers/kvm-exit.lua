-- SPDX-License-Identifier: GPL-2.0-only
--- VM exit latency by exit reason.
local array = require 'lib.array'
local heatmap = require 'lib.heatmap'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local kvm = require 'lib.kvm'
local tables = require 'lib.table'
local threads = require 'lib.threads'

local MAX_ROWS = 4096
local KERNEL = 0x8000000000000000ULL -- the guest's kernel is above this address

--- The exits that have ended, by CPU or thread and reason.
local function new_totals(opt, session)
  local columns = tables.latency_columns(opt.than ~= nil, {
    { name = 'instance', title = ('[%s]'):format(session.instance_title), align = 'left', show = opt.perins },
    { name = 'exit_reason', width = 20, align = 'left' },
  }, opt.variance)
  columns[#columns + 1] = { name = 'gsys_percent', title = '%gsys', width = 6, format = '%.2f' }
  return {
    keys = intern.new(3, MAX_ROWS), hists = hist.set(MAX_ROWS + 1, opt.than), of_kernel = array.new(MAX_ROWS + 1),
    spec = tables.new('kvm-exit', columns), dropped = 0,
  }
end

local function before(a, b)
  if a.instance ~= b.instance then return a.instance < b.instance end
  if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
  return a.id < b.id
end

local function print_totals(totals, out)
  local rows, keys, of_kernel = {}, totals.keys, totals.of_kernel
  for id = 0, keys:count() - 1 do
    local row = tables.latency_row({ instance = keys:part(id, 1), id = id }, totals.hists:get(id))
    row.exit_reason = kvm.exit_reason(keys:part(id, 2), keys:part(id, 3))
    row.gsys_percent = 100 * of_kernel[id] / tonumber(row.total_ns)
    rows[id + 1] = row
  end
  table.sort(rows, before)
  if #rows > 0 then out:table(totals.spec, rows) end
end

--- Prints the totals, and starts new ones.
local function report(totals, out)
  print_totals(totals, out)
  for id = 0, totals.keys:count() - 1 do totals.of_kernel[id] = 0 end
  totals.hists:clear()
  totals.keys:clear()
  if totals.dropped > 0 then
    out:warn(('kvm-exit: dropped %d exits: events were lost in between'):format(totals.dropped))
  end
  totals.dropped = 0
end

--- Returns the handlers of the two events, and what they have seen.
local function measure(opt, out, session, totals, map)
  -- By thread: the time of its current exit + 1 (0: none), the reason, and whether it left the guest's kernel.
  local since, reasons, isas = array.new(threads.MAX), array.new(threads.MAX), array.new(threads.MAX)
  local kernel = array.new(threads.MAX)
  local seen = { known_from = -1, entries = false }
  local keys, hists, of_kernel = totals.keys, totals.hists, totals.of_kernel
  local than, perins, instance = opt.than or math.huge, opt.perins, session.instance_field
  local exits = opt.than and session.slots(threads.MAX)

  local function leave(ev)
    local tid = ev._tid
    if tid < 0 or tid >= threads.MAX then return end
    since[tid], reasons[tid], isas[tid] = ev._time + 1, ev.exit_reason, ev.isa
    kernel[tid] = ev:u64 'guest_rip' >= KERNEL and 1 or 0
    if exits then exits:put(tid, ev) end
  end
  local function enter(ev)
    seen.entries = true
    local tid = ev._tid
    if tid < 0 or tid >= threads.MAX or since[tid] == 0 then return end
    local from, reason, isa = since[tid] - 1, reasons[tid], isas[tid]
    since[tid] = 0
    if from < seen.known_from then
      totals.dropped = totals.dropped + 1
      return
    end
    local ns = ev._time - from
    local id = keys.id(perins and ev[instance] or 0, isa, reason)
    hists:add(id, ns)
    if kernel[tid] ~= 0 then of_kernel[id] = of_kernel[id] + ns end
    map:add(ev._time, ns)
    if ns > than then
      local exit_event = exits:get(tid)
      if not kvm.is_halt(isa, reason) and exit_event then
        out:print_event(exit_event)
        out:print_event(ev)
      end
    end
  end
  return leave, enter, seen
end

return {
  summary = 'VM exit latency by exit reason',
  description = [[
Measures the time from kvm:kvm_exit to the next kvm:kvm_entry of the thread.
%gsys is the share of that time after exits from the guest's kernel. To select a
VM, give its process with -p.]],
  examples = {
    { 'profscript kvm-exit -i 1000', 'all VMs, every second' },
    { "profscript kvm-exit -p 1 --perins --filter 'exit_reason != 12'", 'per vCPU, without HLT on VMX' },
    { 'profscript kvm-exit --than 1ms --heatmap exits.svg', 'print long exits, and draw a heat map of all' },
  },
  unsupported = { 'event' },
  options = {
    than = { type = 'duration', help = 'print exit and entry of exits longer than T, except HLT, and count them' },
    perins = { type = 'flag', help = 'print rows per CPU, or per thread with -p or -t' },
    variance = tables.variance_option,
    filter = { own = true, help = 'only exits whose kvm:kvm_exit matches this filter' },
    heatmap = heatmap.option,
    exit_event = { type = 'event', default = 'kvm:kvm_exit', help = 'event when a vCPU leaves the guest' },
    entry_event = { type = 'event', default = 'kvm:kvm_entry', help = 'event when a vCPU enters the guest' },
  },

  start = function(opt, out, session)
    local exit = opt.exit_event[1][1]
    if opt.filter then
      exit:set { filter = exit.filter and ('(%s) && (%s)'):format(exit.filter, opt.filter) or opt.filter }
    end
    if not exit.fields.exit_reason or not exit.fields.isa then
      return nil, ('%s of this kernel has no fields exit_reason and isa; only x86 is supported'):format(exit.name)
    end
    local totals, map = new_totals(opt, session), heatmap.new { file = opt.heatmap, title = 'kvm exits' }
    local leave, enter, seen = measure(opt, out, session, totals, map)
    return {
      [opt.exit_event] = leave,
      [opt.entry_event] = enter,
      draw = function() print_totals(totals, out) end,
      interval = function() report(totals, out) end,
      stop = function()
        report(totals, out)
        map:write(out)
        if not seen.entries then out:warn('kvm-exit: no exits: ' .. kvm.none_ran(opt, session)) end
      end,
      lost = function(gap) seen.known_from = math.max(seen.known_from, gap.to) end,
    }
  end,
}
