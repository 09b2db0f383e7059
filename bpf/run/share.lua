-- SPDX-License-Identifier: GPL-2.0-only
--- Share: counts for a moment how many of some events happen in the targets of a run, and how many in other tasks. A
--- program on a tracepoint runs in all tasks, so it is dear if few of its events are those of targets. If it is for
--- some system calls, it also runs for all the others.
local ffi = require 'ffi'
local asm = require 'bpf.gen.asm'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local program = require 'bpf.gen.program'
local system_calls = require 'bpf.gen.system_calls'
local types = require 'bpf.gen.kernel_types'

local share = {}

local OURS, OTHERS = 0, 8 -- offsets of the counts of a CPU
local COUNTS = 64 -- bytes: a line of the CPU's cache
local MAX_IDS = 64

--- Tasks by their ids: those of the moment.
local Listed = {}
Listed.__index = Listed

function Listed:check(a, off)
  local inside = a:new_label()
  a:call 'get_current_task_btf'
  for member, ids in pairs { tgid = self.pids, pid = self.tids } do
    if #ids > 0 then a:load(4, 1, 0, (types.member('task_struct', member))) end
    for _, id in ipairs(ids) do a:jump('==', 1, id, inside) end
  end
  a:go(off)
  a:label(inside)
end

--- Returns processes and threads as targets. Refuses too many.
---@param pids integer[]
---@param tids integer[]
---@return { check: fun(self, a: Asm, off: string) }
function share.tasks(pids, tids)
  if #pids + #tids > MAX_IDS then asm.refuse('they are more than %d tasks', MAX_IDS) end
  return setmetatable({ pids = pids, tids = tids }, Listed)
end

--- A tracepoint whose events are counted.
---@class ShareOf
---@field tracepoint string without its system
---@field numbers? integer[] these system calls; nil: all events

--- Attaches a program that counts the events of a tracepoint.
local function count(of, counts, targets, nr_cpus)
  local a = asm.new()
  local function add(at)
    a:load(8, 1, 7, at)
    a:alu('add', 1, 1)
    a:store(8, 7, at, 1)
    a:go 'done'
  end
  a:alu_r('mov', asm.CONTEXT, 1)
  a:call 'get_smp_processor_id'
  a:jump('>=', 0, nr_cpus, 'done')
  a:alu('mul', 0, COUNTS)
  a:map_value(7, counts, 0)
  a:alu_r('add', 7, 0)
  if of.numbers then
    system_calls.number(a, 1, asm.CONTEXT, of.tracepoint)
    for _, nr in ipairs(of.numbers) do a:jump('==', 1, nr, 'wanted') end
    a:go 'other'
  end
  a:label 'wanted'
  if targets then targets:check(a, 'other') end
  add(OURS)
  a:label 'other'
  add(OTHERS)
  a:done()
  return program.attach(program.load(a, { type = 'tracing', name = 'share',
    tracepoint = types.tracepoint(of.tracepoint) }))
end

--- Counts events, and waits meanwhile. Programs that interrupt each other may count one too few.
---@param list ShareOf[]
---@param targets? { check: fun(self, a: Asm, off: string) } nil: all tasks
---@param ms integer
---@return { ours: number, others: number }[] found of each: events in the targets; those in other tasks, and other
--- system calls
function share.measure(list, targets, ms)
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  local nr_cpus, links, counts, found = lib.libbpf_num_possible_cpus(), {}, {}, {}
  for i, of in ipairs(list) do
    counts[i] = program.mapped(nr_cpus * COUNTS, 'share_counts')
    links[i] = count(of, counts[i], targets, nr_cpus)
  end
  libc.usleep(ms * 1000) -- not poll(): who waits in it is ready for events
  for i, link in ipairs(links) do
    link:close()
    local function sum(at)
      local n = 0
      for cpu = 0, nr_cpus - 1 do
        n = n + tonumber(ffi.cast('uint64_t *', counts[i].bytes + cpu * COUNTS)[at / 8])
      end
      return n
    end
    found[i] = { ours = sum(OURS), others = sum(OTHERS) }
  end
  return found
end

return share
