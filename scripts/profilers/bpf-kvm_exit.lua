-- SPDX-License-Identifier: GPL-2.0-only
--- VM exit latency, measured by a BPF program that emits one event per exit, at the next entry. Short exits never
--- leave the kernel.
local array = require 'lib.array'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local kernel_files = require 'lib.engines.kernel_files'
local kvm = require 'lib.kvm'
local tables = require 'lib.table'
local threads = require 'lib.threads'
local failure = require 'lib.failure'

local MAX_ROWS = 4096

local LONGEST = tables.new('bpf:kvm_exit-longest', {
  { name = 'pid', title = 'PID' },
  { name = 'comm', title = 'COMM', align = 'left' },
  tables.time_column 'max',
  { name = 'hlt_rundelay_ns', title = 'HLT rundelay', unit = 'ns' },
})

--- The longest exit of each process, for --output2; nil without the option.
local function longest_exits(opt, out, session)
  if not opt.output2 then return nil end
  local file, message = out:open(opt.output2)
  if not file then error('bpf:kvm_exit: ' .. message, 0) end
  local by_pid, rows = {}, {}
  return {
    add = function(pid, ns, delay, halts)
      local row = by_pid[pid]
      if not row then
        row = { pid = pid, max_ns = 0, hlt_rundelay_ns = 0 }
        by_pid[pid], rows[#rows + 1] = row, row
      end
      local column, value = 'max_ns', ns
      if halts then column, value = 'hlt_rundelay_ns', delay end
      row[column] = math.max(row[column], value)
    end,
    report = function()
      for _, row in ipairs(rows) do row.comm = session.task_name(row.pid) end
      table.sort(rows, function(a, b) return a.pid < b.pid end)
      file:table(LONGEST, rows)
      file:flush()
      by_pid, rows = {}, {}
    end,
  }
end

--- The exits of a run by process or thread and reason.
local function new_totals(detail, variance)
  local columns = tables.latency_columns(false, {
    { name = 'pid', title = 'PID' },
    { name = 'tid', title = 'THREAD', show = detail },
    { name = 'comm', title = 'COMM', align = 'left', show = detail },
    { name = 'exit_reason', width = 20, align = 'left' },
  }, variance)
  for _, name in ipairs { 'wait', 'rundelay' } do
    local column = tables.time_column(name)
    column.metric, columns[#columns + 1] = 'counter', column
  end
  return {
    detail = detail, spec = tables.new('bpf:kvm_exit', columns), keys = intern.new(4, MAX_ROWS),
    hists = hist.set(MAX_ROWS + 1), waits = array.new(MAX_ROWS + 1), delays = array.new(MAX_ROWS + 1),
  }
end

local function before(a, b)
  if a.halts ~= b.halts then return b.halts end -- last: idle time of the guest
  if a.total_ns ~= b.total_ns then return a.total_ns > b.total_ns end
  if a.pid ~= b.pid then return a.pid < b.pid end
  return a.exit_reason < b.exit_reason
end

--- Prints the totals.
local function print_totals(totals, out, session)
  local rows, keys, waits, delays = {}, totals.keys, totals.waits, totals.delays
  for id = 0, keys:count() - 1 do
    local isa, reason = keys:part(id, 3), keys:part(id, 4)
    local row = tables.latency_row({ pid = keys:part(id, 1), tid = keys:part(id, 2) }, totals.hists:get(id))
    row.exit_reason, row.halts = kvm.exit_reason(isa, reason), kvm.is_halt(isa, reason)
    row.comm = totals.detail and session.task_name(row.tid) or nil
    row.wait_ns, row.rundelay_ns = waits[id], delays[id]
    rows[id + 1] = row
  end
  table.sort(rows, before)
  for _, row in ipairs(rows) do row.halts = nil end
  out:table(totals.spec, rows)
end

--- Starts new totals.
local function clear(totals)
  for id = 0, totals.keys:count() - 1 do totals.waits[id], totals.delays[id] = 0, 0 end
  totals.hists:clear()
  totals.keys:clear()
end

--- Loads the program, and returns its events.
local function load(threshold, session)
  local at = kernel_files.offsets('kvm', 'kvm_exit')
  if not at.exit_reason or not at.isa then
    failure.unavailable('bpf:kvm_exit: no event kvm:kvm_exit with exit_reason and isa: '
      .. 'KVM is not loaded, or not x86, or tracefs is not mounted')
  end
  local program = session.bpf {
    file = 'kvm_exit.bpf.c', constants = { threshold = threshold, reason_at = at.exit_reason, isa_at = at.isa },
  }
  program:attach()
  return program:events 'exits'
end

return {
  summary = 'VM exit latency and off-CPU time, measured in BPF',
  description = [[
Measures the time from kvm:kvm_exit to the next kvm:kvm_entry of a thread. Where
kvm-exit reads both events of every exit, here a BPF program emits one event for
each exit that takes at least --threshold.

  wait      the time that the thread slept during the exit
  rundelay  the time that it was runnable and waited for a CPU

Both are in ns in lines. Needs clang, as all scripts with
BPF programs do, and Linux 5.8.]],
  examples = {
    { 'profscript bpf:kvm_exit -i 1000', 'exits of at least 1 ms, of all VMs' },
    { 'profscript bpf:kvm_exit -p 1234 --threshold 0', 'all exits of one VM' },
    { "profscript trace -e 'sched:sched_migrate_task,bpf:kvm_exit/--threshold 100us/'",
      'exits and migrations, in time order' },
  },
  unsupported = { 'event', 'input' },
  everywhere = true,
  options = {
    threshold = { type = 'duration', default = '1ms', help = 'drop exits shorter than T in the kernel' },
    than = { type = 'duration', help = 'print exits longer than T; of HLT, those with a longer rundelay' },
    detail = { type = 'flag', help = 'print rows per thread' },
    perins = { type = 'flag', help = 'the same as --detail' },
    variance = tables.variance_option,
    output2 = { type = 'string', argument = 'FILE',
      help = 'append the longest exit and the longest rundelay in HLT of each process to FILE' },
  },

  start = function(opt, out, session)
    local exits, detail = load(opt.threshold, session), opt.detail or opt.perins or false
    local totals, longest = new_totals(detail, opt.variance), longest_exits(opt, out, session)
    local keys, hists, waits, delays = totals.keys, totals.hists, totals.waits, totals.delays
    local than, ours = opt.than or math.huge, threads.new(session, opt)

    local function print_and_clear()
      print_totals(totals, out, session)
      clear(totals)
      if longest then longest.report() end
    end
    return ours.follow {
      [exits] = function(ev)
        if not ours.has(ev.tid) then return end
        local isa, reason, ns, delay = ev.isa, ev.exit_reason, ev.lat, ev.rundelay
        local id = keys.id(ev.pid, detail and ev.tid or 0, isa, reason)
        hists:add(id, ns)
        waits[id], delays[id] = waits[id] + ev.wait, delays[id] + delay
        if longest then longest.add(ev.pid, tonumber(ns), tonumber(delay), kvm.is_halt(isa, reason)) end
        if (kvm.is_halt(isa, reason) and delay or ns) > than then out:print_event(ev) end
      end,
      describe = function(ev)
        return ('bpf:kvm_exit: %s lat %d wait %d rundelay %d sw %d'):format(kvm.exit_reason(ev.isa, ev.exit_reason),
          ev.lat, ev.wait, ev.rundelay, ev.sw)
      end,
      draw = function() print_totals(totals, out, session) end,
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
