-- SPDX-License-Identifier: GPL-2.0-only
--- --perfeval-cpus, --perfeval-pids and --sampling-limit: how many events the watched CPUs, or the threads of
--- the watched processes, had in an interval, and the end of the run where that is too many. Each event costs
--- the one it happens to, whether a filter wants it or not, so that all are counted that come out of the rings.
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'

local perfeval = {}

--- One of the two lists.
---@class Watch
---@field option string
---@field id string what is counted apart: CPUs, threads
---@field list string as it is printed
---@field wanted table<integer, boolean>
---@field seen table<integer, integer> events of each that had some
---@field sampled integer events of all

---@class Perfeval
---@field count fun(events: ffi.cdata*, n: integer)
local Perfeval = {}
Perfeval.__index = Perfeval

--- The elements of a list such as "0-3,7", which may have a newline behind it.
local function expand(list)
  local set = {}
  for first, last in list:gmatch '(%d+)%-?(%d*)' do
    for cpu = tonumber(first), tonumber(last) or tonumber(first) do
      set[cpu] = true
    end
  end
  return set
end

local function check_online(name, cpus)
  local online = sys.read '/sys/devices/system/cpu/online'
  local set = online and expand(online) or cpus
  for cpu in pairs(cpus) do
    if not set[cpu] then
      failure.unavailable('%s: --perfeval-cpus: CPU %d is not online; those that are: %s', name, cpu,
        online:match '%S+')
    end
  end
end

--- The processes, where the user may have named them by any of their threads.
local function processes(name, pids, is_recorded)
  local set = {}
  for _, pid in ipairs(pids) do
    local status = not is_recorded and sys.read(('/proc/%d/status'):format(pid))
    if not status and not is_recorded then failure.raise('%s: --perfeval-pids: no such process: %d', name, pid) end
    set[is_recorded and pid or tonumber(status:match 'Tgid:%s*(%d+)')] = true
  end
  return set
end

local function check(run, every)
  local opt = run.opt
  if not (opt.perfeval_cpus or opt.perfeval_pids) then
    failure.usage('%s: --sampling-limit needs --perfeval-cpus or --perfeval-pids, whose events it limits', run.name)
  end
  if not every then
    failure.usage('%s: --perfeval-%s needs -i, after which it counts', run.name, opt.perfeval_cpus and 'cpus' or 'pids')
  end
  for _, event in ipairs(run.events.list) do
    if event.request.counted == 0 then return end
  end
  failure.usage('%s: there are no samples for --perfeval-%s: its events are only counted', run.name,
    opt.perfeval_cpus and 'cpus' or 'pids')
end

--- Branches that count events for all watches.
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

--- What the options ask for; nil without them.
---@param run Run
---@return Perfeval?
function perfeval.new(run)
  local opt, every, watches = run.opt, run.interval > 0 and run.interval or nil, {}
  if not (opt.perfeval_cpus or opt.perfeval_pids or opt.sampling_limit) then return end
  check(run, every)
  local function watch(option, id, list, wanted)
    watches[#watches + 1] = { option = option, id = id, list = list, wanted = wanted, seen = {}, sampled = 0 }
  end
  if opt.perfeval_cpus then
    local cpus = expand(opt.perfeval_cpus)
    if not run.is_recorded then check_online(run.name, cpus) end
    watch('cpus', 'cpu', opt.perfeval_cpus, cpus)
  end
  if opt.perfeval_pids then
    watch('pids', 'tid', table.concat(opt.perfeval_pids, ','), processes(run.name, opt.perfeval_pids, run.is_recorded))
  end
  return setmetatable({ branches = branches_of(watches, run.events.list), _watches = watches, _run = run,
    _every = every, _limit = opt.sampling_limit }, Perfeval)
end

--- Prints a line, of what JSON and CSV have fields.
local function print_line(run, line, fields, order)
  if run.out.format == 'text' then
    run.out:stamp_line(('%s: perfeval%s'):format(run.name, line))
  else
    run.out:record('perfeval', fields, order)
  end
end

--- What each of the watched had, where that was too much.
function Perfeval:_print_each(watch)
  local ids = {}
  for id, n in pairs(watch.seen) do
    if n > 0 then ids[#ids + 1] = id end
  end
  table.sort(ids)
  for _, id in ipairs(ids) do
    print_line(self._run, (': %s %d sampled %d events'):format(watch.id, id, watch.seen[id]),
      { by = watch.option, id = id, sampled = watch.seen[id] }, { 'by', 'id', 'sampled' })
  end
end

--- Events a second of one watch, all and those of the watched, and how many of these had some.
function Perfeval:_rates(watch)
  local matched, instances = 0, 0
  for _, n in pairs(watch.seen) do
    matched, instances = matched + n, instances + (n > 0 and 1 or 0)
  end
  return math.floor(watch.sampled * 1e9 / self._every), math.floor(matched * 1e9 / self._every), instances
end

--- The end of an interval.
---@return boolean exceeded the run must end
function Perfeval:interval()
  local exceeded = false
  for _, watch in ipairs(self._watches) do
    local sampled, matched, instances = self:_rates(watch)
    local is_over = self._limit ~= nil and instances > 0 and matched > self._limit * instances
    if watch.sampled > 0 then
      print_line(self._run, (' %s(%s): sampled %d events matched %d on %d instances%s'):format(watch.option, watch.list,
        sampled, matched, instances, is_over and ', exceeds the limit, exit' or ''),
        { by = watch.option, list = watch.list, sampled = sampled, matched = matched, instances = instances,
          exceeds = is_over }, { 'by', 'list', 'sampled', 'matched', 'instances', 'exceeds' })
    end
    if is_over then self:_print_each(watch) end
    exceeded = exceeded or is_over
    watch.sampled = 0
    -- What did nothing may be gone; for the others the loop need not be compiled for a first time again.
    for id, n in pairs(watch.seen) do watch.seen[id] = n > 0 and 0 or nil end
  end
  return exceeded
end

return perfeval
