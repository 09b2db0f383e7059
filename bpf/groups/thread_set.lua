-- SPDX-License-Identifier: GPL-2.0-only
--- Sets of threads: those that the user has named, and with `inherits` those that they create; or those of control
--- groups, which programs in the kernel mark.
local ffi = require 'ffi'
local sys = require 'bindings.base.sys'

local thread_set = {}

local MAX = sys.PIDS_MAX

--- The functions are called with a dot.
---@class ThreadSet
---@field has fun(tid: integer): boolean false for the idle task and for numbers that are no thread ids
---@field add fun(tids: integer[]) adds the named threads
---@field born fun(tid: integer, parent: integer) a thread is created; its id may be that of a former thread
---@field moved fun(before: integer, tid: integer) a thread gets another id

---@param inherits boolean
---@return ThreadSet
function thread_set.new(inherits)
  local set = ffi.new('uint8_t[?]', MAX)
  local function has(tid) return tid > 0 and tid < MAX and set[tid] ~= 0 end
  local function born(tid, parent)
    if tid > 0 and tid < MAX then set[tid] = inherits and has(parent) and 1 or 0 end
  end
  local function add(tids)
    for _, tid in ipairs(tids) do
      if tid > 0 and tid < MAX then set[tid] = 1 end
    end
  end
  local function moved(before, tid)
    if has(before) then set[before], set[tid] = 0, 1 end
  end
  return { has = has, born = born, add = add, moved = moved }
end

--- Returns the threads of a recording that -p and -t name. It says by its records of new threads which threads a
--- process has; perf also writes them for the threads that exist.
---@param opt table parsed options
---@param inherits boolean
---@return ThreadSet set also with forked(), for such a record, and is(pid, tid)
function thread_set.recorded(opt, inherits)
  local self, processes, named = thread_set.new(inherits), {}, {}
  for _, list in ipairs { opt.pids or {}, opt.tids or {} } do
    self.add(list)
    for _, id in ipairs(list) do named[id], processes[id] = true, list == opt.pids or processes[id] end
  end
  function self.forked(pid, tid, parent)
    if processes[pid] then parent = pid end
    if not named[tid] then self.born(tid, parent) end
  end
  function self.is(pid, tid) return processes[pid] == true or self.has(tid) end
  return self
end

local function nothing() end

--- Returns the threads that programs mark (bpf/gen/targets.lua).
---@param targets Targets
---@return ThreadSet
function thread_set.of(targets)
  local marks = targets.marks.bytes
  return { has = function(tid) return tid > 0 and tid < MAX and marks[tid] == 1 end, add = nothing, born = nothing,
    moved = nothing }
end

--- Warns if threads are looked for by fields, which have the machine's thread ids, but were named by those of this
--- process's pid namespace. The kernel translates only what it records of an event itself.
---@param run Run
---@param fields string[] their names
function thread_set.check_namespace(run, fields)
  if not sys.has_foreign_pids() then return end
  for _, event in ipairs(run.events.list) do
    for _, name in ipairs(event.owner.script.profiler.everywhere and not event.machine and fields or {}) do
      if event.fields[name] then
        run.out:warn(("%s: %s of %s is a thread id of the machine, not of this pid namespace, so the threads of -p, "
          .. "-t or the workload are not found; trace from the machine's namespace, or all threads"):format(run.name,
          name, event.name))
        return
      end
    end
  end
end

return thread_set
