-- SPDX-License-Identifier: GPL-2.0-only
--- Share: counts for a moment how many of some events happen in the targets of a run, and how many in other tasks. A
--- program on a tracepoint runs in all tasks, so it is dear if few of its events are those of targets.
local ffi = require 'ffi'
local asm = require 'bindings.kernel.asm'
local libbpf = require 'bindings.bpf.libbpf'
local libc = require 'bindings.base.libc'
local program = require 'bindings.kernel.program'
local types = require 'bindings.kernel.types'

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

--- Attaches a program that counts the events of a tracepoint.
local function count(tracepoint, counts, targets, nr_cpus)
  local a = asm.new()
  a:call 'get_smp_processor_id'
  a:jump('>=', 0, nr_cpus, 'done')
  a:alu('mul', 0, COUNTS)
  a:map_value(7, counts, 0)
  a:alu_r('add', 7, 0)
  targets:check(a, 'other')
  a:load(8, 1, 7, OURS)
  a:alu('add', 1, 1)
  a:store(8, 7, OURS, 1)
  a:go 'done'
  a:label 'other'
  a:load(8, 1, 7, OTHERS)
  a:alu('add', 1, 1)
  a:store(8, 7, OTHERS, 1)
  a:label 'done'
  a:alu('mov', 0, 0)
  a:exit()
  return program.attach(program.load(a, { type = 'tracing', name = 'profscript',
    tracepoint = types.tracepoint(tracepoint) }))
end

--- Counts events, and waits meanwhile. Programs that interrupt each other may count one too few.
---@param tracepoints string[] without their systems
---@param targets { check: fun(self, a: Asm, off: string) }
---@param ms integer
---@return number ours events in the targets
---@return number others
function share.measure(tracepoints, targets, ms)
  local lib, missing = libbpf.open()
  if not lib then asm.refuse('%s', missing) end
  local nr_cpus, links = lib.libbpf_num_possible_cpus(), {}
  local counts = program.mapped(nr_cpus * COUNTS)
  for i, name in ipairs(tracepoints) do links[i] = count(name, counts, targets, nr_cpus) end
  libc.usleep(ms * 1000) -- not poll(): who waits in it is ready for events
  local ours, others = 0, 0
  for cpu = 0, nr_cpus - 1 do
    local of_cpu = ffi.cast('uint64_t *', counts.bytes + cpu * COUNTS)
    ours, others = ours + tonumber(of_cpu[OURS / 8]), others + tonumber(of_cpu[OTHERS / 8])
  end
  for _, link in ipairs(links) do link:close() end
  return ours, others
end

return share
