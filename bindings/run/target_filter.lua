-- SPDX-License-Identifier: GPL-2.0-only
--- Which events of sources are about the threads that a run names (-p, -t, a workload), where they
--- come from all CPUs: what happens to a thread is told by events of others, which name it in a field.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local sys = require 'bindings.base.sys'

local C = ffi.C
local target_filter = {}

local FIELDS = { 'pid', 'prev_pid', 'next_pid', 'child_pid', 'parent_pid' }

-- PERF_RECORD_FORK: pid, parent's pid, tid, parent's tid.
local FORK = [=[
local ids = cast(fork_type, e.raw)
if ids[2] > 0 and ids[2] < max then set[ids[2]] = ids[3] > 0 and ids[3] < max and set[ids[3]] or 0 end]=]

--- Whether an event needs to be looked at: it is of a source, and from all CPUs though threads are named.
local function is_of_all(run, event)
  local source = event.owner
  return source.parent and (run.everywhere or source.script.profiler.everywhere)
end

--- Has events of sources that are `everywhere` opened so; the whole run, where there are no others.
---@param run Run
---@return boolean any
local function mark(run)
  local marked, list = 0, run.events.list
  for _, event in ipairs(list) do
    if is_of_all(run, event) then
      event.request.everywhere, marked = run.everywhere and 0 or 1, marked + 1
    end
  end
  if marked == #list then run:take_everywhere() end
  return marked > 0
end

--- Code that looks for a task in the set: in the fields that name one, where there are such and the
--- profiler says that it takes all; else it is the task that the event is of.
local function test(event, i)
  local terms = {}
  for _, name in ipairs(event.owner.script.profiler.everywhere and FIELDS or {}) do
    local field = event.fields[name]
    if field and field.size == 4 then terms[#terms + 1] = ('has(p.%s)'):format(name) end
  end
  if #terms == 0 then return 'has(e.tid)', '' end
  return table.concat(terms, ' or '), ('local p = cast(payload_%d, e.raw)\n'):format(i)
end

--- Branches that filter out what is about other threads, and a function that is to be called with the threads
--- that the run names once the session has started; nil if there is nothing to filter.
---@param run Run
---@return Branch[]? branches
---@return fun(tids: integer[])? begin
function target_filter.branches(run)
  local opt = run.opt
  if run.is_recorded or not attach.names_threads(opt, run.workload) or not mark(run) then return end
  local set = ffi.new('uint8_t[?]', sys.PID_END)
  local function has(tid) return tid > 0 and tid < sys.PID_END and set[tid] ~= 0 end
  local branches = {}
  if attach.inherits(opt, run.workload) then
    C.session_want(run.session, C.EVENT_FORK)
    branches[1] = {
      class = C.EVENT_FORK,
      code = FORK,
      bound = { set = set, max = sys.PID_END, fork_type = ffi.typeof 'const int32_t *' },
    }
  end
  for i, event in ipairs(run.events.list) do
    if is_of_all(run, event) then
      local condition, before = test(event, i)
      branches[#branches + 1] = {
        class = event.class,
        code = ('%sif not (%s) then e.class = %d end'):format(before, condition, C.EVENT_FILTERED),
        bound = { has = has, ['payload_' .. i] = event.view.payload },
      }
    end
  end
  return branches, function(tids)
    for _, tid in ipairs(tids) do
      if tid > 0 and tid < sys.PID_END then set[tid] = 1 end
    end
  end
end

return target_filter
