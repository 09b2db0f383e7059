-- SPDX-License-Identifier: GPL-2.0-only
--- Target filter: if a run names threads (-p, -t, a workload) but events come from all CPUs, as those of sources and of
--- the scheduler, keeps the events about the named threads. One in another thread is if a field names one of them.
local ffi = require 'ffi'
local attach = require 'bindings.select.attach'
local dispatch = require 'bindings.view.dispatch'
local thread_events = require 'bpf.gen.thread_events'
local thread_set = require 'bpf.groups.thread_set'

local C = ffi.C
local target_filter = {}

local FIELDS = { 'pid', 'prev_pid', 'next_pid', 'child_pid', 'parent_pid' }

-- PERF_RECORD_FORK: pid, parent's pid, tid, parent's tid.
local FORK = 'local ids = cast(fork_type, e.raw) born(ids[2], ids[3])'
local RECORDED_FORK = 'local ids = cast(fork_type, e.raw) forked(ids[0], ids[2], ids[3])'

--- Returns whether an event needs the filter: it is opened on all CPUs because it belongs to a source or is one of the
--- scheduler, or because a BPF program that runs in all threads writes its records.
local function needs_filter(run, event)
  local source = event.owner
  if thread_events.is_of_scheduler(event) then return true end
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
  local marked, is_any, list = 0, false, run.events.list
  for _, event in ipairs(list) do
    if thread_events.is_of_scheduler(event) and not run.everywhere then
      event.request.everywhere, is_any = 1, true
      run.in_kernel:want_only_threads { event }
    elseif needs_filter(run, event) then
      event.request.everywhere, marked = run.everywhere and 0 or 1, marked + 1
    end
  end
  if marked == #list then
    run:take_everywhere()
    for _, event in ipairs(list) do event.request.everywhere = 0 end
  end
  return marked > 0 or is_any
end

--- Returns the condition that an event is about a thread in the set, and the code before it. The condition tests the
--- fields that name threads if the event belongs to an `everywhere` profiler and has any, otherwise its own thread.
local function test(event, i, named)
  local terms, is_shown = {}, thread_events.is_of_scheduler(event)
  if is_shown then terms[1] = named and 'is(e.pid, e.tid)' or 'has(e.tid)' end
  for _, name in ipairs((is_shown or event.owner.script.profiler.everywhere) and FIELDS or {}) do
    local field = event.fields[name]
    if field and field.size == 4 then terms[#terms + 1] = ('has(p.%s)'):format(name) end
  end
  if #terms == 0 then return named and 'is(e.pid, e.tid)' or 'has(e.tid)', '' end
  return table.concat(terms, ' or '), ('local p = cast(payload_%d, e.raw)\n'):format(i)
end

--- Returns the branches that drop events about other threads; nil if there is nothing to filter.
---@param run Run
---@return Branch[]? branches
---@return fun(tids: integer[])? begin must be called with the named threads after the session has started
function target_filter.branches(run)
  local opt = run.opt
  if run.is_recorded and not run.named or not attach.names_threads(opt, run.workload) then return end
  if not run.named then thread_set.check_namespace(run, FIELDS) end
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
