-- SPDX-License-Identifier: GPL-2.0-only
--- --perfeval-cpus, --perfeval-pids and --sampling-limit: counts the events of the watched CPUs, or of the threads of
--- the watched processes, per interval, and ends the run above the limit. Recording an event costs time even if a
--- filter rejects it later, so all events from the rings are counted.
local attach = require 'bindings.select.attach'
local cpu_list = require 'bindings.base.cpu_list'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'
local tables = require 'bindings.base.table'

local perfeval = {}

-- The fields of the lines about all watched CPUs or threads, and about one of them.
local ALL = { 'by', 'list', 'sampled', 'matched', 'instances', 'exceeds' }
local ONE = { 'by', 'id', 'sampled' }

--- A list of watched CPUs or processes.
---@class Watch
---@field option 'cpus'|'pids'
---@field id 'cpu'|'tid' member of struct event by which events are counted
---@field list string as printed
---@field wanted table<integer, boolean>
---@field seen table<integer, integer> number of events by CPU or thread
---@field sampled integer number of all events

---@class Perfeval : Follower
local Perfeval = {}
Perfeval.__index = Perfeval

--- Returns the set of the CPUs in a list.
local function expand(list)
  local set = {}
  for _, cpu in ipairs(cpu_list.numbers(list)) do set[cpu] = true end
  return set
end

--- Returns the CPUs of the list that are online. Fails if there are none.
local function online(run, list)
  local what = run.name .. ': --perfeval-cpus'
  local here, missing = cpu_list.split(list)
  if here == '' then
    local all = sys.read '/sys/devices/system/cpu/online'
    failure.unavailable('%s: CPU %s is not online (online: %s)', what, missing, all and all:match '%S+' or 'unknown')
  end
  return attach.online(what, list, run.services.warn, 'watching')
end

--- Returns the set of processes. The ids may be those of any of their threads.
local function processes(name, pids, is_recorded)
  local set = {}
  for _, pid in ipairs(pids) do
    local status = not is_recorded and sys.read(('/proc/%d/status'):format(pid))
    if not status and not is_recorded then failure.raise('%s: --perfeval-pids: no such process: %d', name, pid) end
    set[is_recorded and pid or tonumber(status:match 'Tgid:%s*(%d+)')] = true
  end
  return set
end

local function check(run, interval)
  local opt = run.opt
  if not (opt.perfeval_cpus or opt.perfeval_pids) then
    failure.usage('%s: --sampling-limit requires --perfeval-cpus or --perfeval-pids', run.name)
  end
  if not interval then
    failure.usage('%s: --perfeval-%s requires -i', run.name, opt.perfeval_cpus and 'cpus' or 'pids')
  end
  for _, event in ipairs(run.events.list) do
    if event.request.counted == 0 then return end
  end
  failure.usage('%s: --perfeval-%s requires sampled events, but all events are only counted', run.name,
    opt.perfeval_cpus and 'cpus' or 'pids')
end

--- Returns the branches that count the events for all watches.
local function branches_of(watches, list)
  local code, bound = {}, {}
  for i, watch in ipairs(watches) do
    code[i] = ([[
      watch_N.sampled = watch_N.sampled + 1
      if wanted_N[e.LIST] then seen_N[e.ID] = (seen_N[e.ID] or 0) + 1 end]]):gsub('_N', '_' .. i)
      :gsub('LIST', watch.option == 'cpus' and 'cpu' or 'pid'):gsub('ID', watch.id)
    bound['watch_' .. i], bound['wanted_' .. i], bound['seen_' .. i] = watch, watch.wanted, watch.seen
  end
  local branches = {}
  for _, event in ipairs(list) do
    branches[#branches + 1] = { class = event.class, code = table.concat(code, '\n'), bound = bound, same = 'perfeval' }
  end
  return branches
end

---@param run Run
---@return Perfeval
function perfeval.new(run) return setmetatable({ _run = run, _limit = run.opt.sampling_limit }, Perfeval) end

--- Sets up the counting.
function Perfeval:prepare()
  local run = self._run
  local opt, interval, watches = run.opt, run.interval > 0 and run.interval or nil, {}
  check(run, interval)
  local function watch(option, id, list, wanted)
    watches[#watches + 1] = { option = option, id = id, list = list, wanted = wanted, seen = {}, sampled = 0 }
  end
  if opt.perfeval_cpus then
    local list = opt.perfeval_cpus
    if not run.is_recorded then list = online(run, list) end
    watch('cpus', 'cpu', list, expand(list))
  end
  if opt.perfeval_pids then
    watch('pids', 'tid', table.concat(opt.perfeval_pids, ','), processes(run.name, opt.perfeval_pids, run.is_recorded))
  end
  for _, order in ipairs { ALL, ONE } do tables.record('perfeval', order) end
  self._branches, self._watches, self._interval = branches_of(watches, run.events.list), watches, interval
end

--- All versions of the script share the counts.
function Perfeval:add_passes(passes) passes:add('count', 'perfeval', self._branches) end

--- Prints a line in text, the fields in JSON and CSV.
local function print_line(run, line, fields, order)
  if run.out.format == 'text' then
    run.out:stamp_line(('%s: perfeval%s'):format(run.name, line))
  else
    run.out:record('perfeval', fields, order)
  end
end

--- Prints the number of events of each watched CPU or thread.
function Perfeval:_print_each(watch)
  local ids = {}
  for id, n in pairs(watch.seen) do
    if n > 0 then ids[#ids + 1] = id end
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    print_line(self._run, (': %s %d sampled %d events'):format(watch.id, id, watch.seen[id]),
      { by = watch.option, id = id, sampled = watch.seen[id] }, ONE)
  end
end

--- Returns for one watch all events per second, the events per second of the watched CPUs or threads, and the number of
--- CPUs or threads with events.
function Perfeval:_rates(watch)
  local matched, instances = 0, 0
  for _, n in pairs(watch.seen) do
    matched, instances = matched + n, instances + (n > 0 and 1 or 0)
  end
  return math.floor(watch.sampled * 1e9 / self._interval), math.floor(matched * 1e9 / self._interval), instances
end

--- Prints the counts at the end of an interval and resets them.
---@return boolean exceeded whether the run must end because the limit was exceeded
function Perfeval:interval()
  local exceeded = false
  for _, watch in ipairs(self._watches) do
    local sampled, matched, instances = self:_rates(watch)
    local is_over = self._limit ~= nil and instances > 0 and matched > self._limit * instances
    if watch.sampled > 0 then
      print_line(self._run, (' %s(%s): sampled %d events matched %d on %d instances%s'):format(watch.option, watch.list,
        sampled, matched, instances, is_over and ', limit exceeded, stopping' or ''),
        { by = watch.option, list = watch.list, sampled = sampled, matched = matched, instances = instances,
          exceeds = is_over }, ALL)
    end
    if is_over then self:_print_each(watch) end
    exceeded = exceeded or is_over
    watch.sampled = 0
    -- Drop idle entries, whose threads may be gone. Keep the others at 0, so that the compiled loop stays on its path.
    for id, n in pairs(watch.seen) do watch.seen[id] = n > 0 and 0 or nil end
  end
  return exceeded
end

return perfeval
