-- SPDX-License-Identifier: GPL-2.0-only
--- Target filter: if a run names threads (-p, -t, a workload) but the events of a source come from all CPUs, keeps the
--- events about the named threads. An event in another thread is about them if a field names one of them.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local dispatch = require 'bindings.view.dispatch'
local sys = require 'bindings.base.sys'
local thread_set = require 'bpf.groups.thread_set'

local C = ffi.C
local target_filter = {}

local FIELDS = { 'pid', 'prev_pid', 'next_pid', 'child_pid', 'parent_pid' }

-- PERF_RECORD_FORK: pid, parent's pid, tid, parent's tid.
local FORK = 'local ids = cast(fork_type, e.raw) born(ids[2], ids[3])'
local RECORDED_FORK = 'local ids = cast(fork_type, e.raw) forked(ids[0], ids[2], ids[3])'

--- Returns whether an event needs the filter: it is opened on all CPUs because it belongs to a source, or because a BPF
--- program that runs in all threads writes its records.
local function needs_filter(run, event)
  local source = event.owner
  if run.named then return source.parent ~= nil or not run.everywhere end
  if event.strings and not source.script.profiler.everywhere then return true end
  return not event.machine and source.parent and (run.everywhere or source.script.profiler.everywhere)
end

--- Marks the events of `everywhere` sources to be opened on all CPUs. If there are no other events, the whole run uses
--- all CPUs.
---@param run Run
---@return boolean any whether an event needs the filter
local function mark(run)
  if run.named then return true end
  local marked, list = 0, run.events.list
  for _, event in ipairs(list) do
    if needs_filter(run, event) then
      event.request.everywhere, marked = run.everywhere and 0 or 1, marked + 1
    end
  end
  if marked == #list then
    run:take_everywhere()
    for _, event in ipairs(list) do event.request.everywhere = 0 end
  end
  return marked > 0
end

--- Returns the condition that an event is about a thread in the set, and the code before it. The condition tests the
--- fields that name threads if the event belongs to an `everywhere` profiler and has any, otherwise its own thread.
local function test(event, i, named)
  local terms = {}
  for _, name in ipairs(event.owner.script.profiler.everywhere and FIELDS or {}) do
    local field = event.fields[name]
    if field and field.size == 4 then terms[#terms + 1] = ('has(p.%s)'):format(name) end
  end
  if #terms == 0 then return named and 'is(e.pid, e.tid)' or 'has(e.tid)', '' end
  return table.concat(terms, ' or '), ('local p = cast(payload_%d, e.raw)\n'):format(i)
end

--- Warns if threads are looked for by fields, which have the machine's thread ids, but were named by those of this
--- process's pid namespace. The kernel translates only what it records of an event itself.
local function check_namespace(run)
  if not sys.has_foreign_pids() then return end
  for _, event in ipairs(run.events.list) do
    for _, name in ipairs(event.owner.script.profiler.everywhere and not event.machine and FIELDS or {}) do
      if event.fields[name] then
        run.out:warn(("%s: %s of %s is a thread id of the machine, not of this pid namespace, so the threads of -p, "
          .. "-t or the workload are not found; trace from the machine's namespace, or all threads"):format(run.name,
          name, event.name))
        return
      end
    end
  end
end

--- Returns the branches that drop events about other threads; nil if there is nothing to filter.
---@param run Run
---@return Branch[]? branches
---@return fun(tids: integer[])? begin must be called with the named threads after the session has started
function target_filter.branches(run)
  local opt = run.opt
  if run.is_recorded and not run.named or not attach.names_threads(opt, run.workload) then return end
  if not run.named then check_namespace(run) end
  if not mark(run) then return end
  local inherits, branches = attach.inherits(opt, run.workload), {}
  local ours = run.named or thread_set.new(inherits)
  if inherits or run.named then
    C.session_want(run.session, C.EVENT_FORK)
    branches[1] = {
      class = C.EVENT_FORK,
      code = run.named and RECORDED_FORK or FORK,
      bound = { born = ours.born, forked = ours.forked, fork_type = ffi.typeof 'const int32_t *' },
    }
  end
  for i, event in ipairs(run.events.list) do
    if needs_filter(run, event) then
      local condition, before = test(event, i, run.named)
      branches[#branches + 1] = {
        class = event.class,
        code = ('%sif not (%s) then %s end'):format(before, condition, dispatch.reject 'target'),
        bound = { has = ours.has, is = ours.is, ['payload_' .. i] = event.view.payload },
      }
    end
  end
  return branches, ours.add
end

return target_filter
