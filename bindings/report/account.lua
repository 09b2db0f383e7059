-- SPDX-License-Identifier: GPL-2.0-only
--- Reads the account of a run (bindings/report/figures.lua): what the kernel says that each event fired, and what
--- became of it.
local attach = require 'bindings.select.attach'
local dispatch = require 'bindings.view.dispatch'
local ffi = require 'ffi'
local figures = require 'bindings.report.figures'
local joins = require 'bpf.handlers.joins'
local processes = require 'bindings.select.processes'
local route = require 'bpf.plan.route'
local sys = require 'bindings.base.sys'
local text = require 'bindings.base.text'
local unstarted = require 'bindings.report.unstarted'

local C = ffi.C
local account = {}

-- Reading counters interrupts their CPUs.
local MAX_COST = 0.5e6 -- ns per interval
local SETTLED = 100e6 -- ns of events that may be on their way when counters are read

---@class Account
---@field package _threads? number of the machine at the start
---@field package _told table<integer, boolean> events of which a difference has been reported
---@field package _last? { time: number, list: Figures[] } what the counters said at an earlier interval
local Account = {}
Account.__index = Account

---@return Account
function account.new()
  dispatch.forget_rejected()
  return setmetatable({ _told = {}, _threads = unstarted.threads() }, Account)
end

--- Returns the events of which records are read one by one.
local function read_events(run)
  local list = {}
  for _, event in ipairs(run.events.list) do
    local is_read = event.request.counted == 0 and not event.is_derived and not event.route.does
    if is_read then list[#list + 1] = event end
  end
  return list
end

local function figures_of(run, event)
  local got = ffi.new 'struct session_account'
  C.session_read_account(run.session, event.class, got)
  local enabled, running = tonumber(got.enabled), tonumber(got.running)
  local has_counter = got.has_kernel and not got.is_sum
  -- Programs that have captured and lost none have not seen any.
  local is_none = got.is_sum and event.request.captured.rings ~= 0 and got.lost + got.read + got.early + got.rest == 0
  local program = not route.is_filtered(event.route) and event.filters.user or nil
  return {
    name = event.name,
    way = event.route.way,
    fired = is_none and 0 or has_counter and tonumber(got.fired) or nil,
    lost = is_none and 0 or has_counter and tonumber(got.lost) or nil,
    captures_lost = got.is_sum and event.request.captured.rings ~= 0 and tonumber(got.lost) or nil,
    per = has_counter and got.per_sample > 0 and got.per_sample or nil,
    early = tonumber(got.early),
    read = tonumber(got.read),
    rest = tonumber(got.rest),
    is_tracepoint = event.tracepoint ~= nil,
    margin = got.counters,
    is_exact = has_counter and got.is_exact,
    share = enabled > 0 and running / enabled or nil,
    rejected = dispatch.rejected(event.class),
    filters = { kernel = event.filters.kernel, user = program },
    gate = event.gate,
    is_extra = event:is_aside(),
  }
end

local function read(run)
  local list = read_events(run)
  for i, event in ipairs(list) do list[i] = figures_of(run, event) end
  return list
end

--- Returns the figures of all events together that another machine sends, or has sent to a file.
local function of_machine(run, event, got, is_whole)
  local host = event.machine and C.session_host(run.session, event.machine.index)
  local name = not host and 'the sender' or host ~= nil and text.safe(ffi.string(host)) or 'another machine'
  local n, used = tonumber(got.sum_read), tonumber(got.arrived)
  return { name = 'events of ' .. name, way = host and 'pull' or 'recording', read = n, by = 'the sender',
    doubt = is_whole and n ~= used and ('%d events of %s were received, but %d were used'):format(n, name, used) or nil,
    fate = 'they did not arrive' }
end

--- Returns the figures of events of which only the sum is counted.
---@return Figures[]
local function read_sums(run, is_whole)
  local list, seen, got = {}, {}, ffi.new 'struct session_account'
  for _, event in ipairs(read_events(run)) do
    local of = event.machine and event.machine.index or 0
    if not seen[of] then
      C.session_read_account(run.session, event.class, got)
      seen[of] = got.has_kernel and got.is_sum
      local is_sent = event.machine or run.is_recorded
      local f = seen[of] and (is_sent and of_machine(run, event, got, is_whole) or run.in_kernel.captures:figures(run))
      if f then
        f.fired, f.lost = tonumber(got.fired), f.lost or tonumber(got.lost)
        f.per, f.is_exact, f.rejected, f.filters = got.per_sample, got.is_exact, {}, {}
        list[#list + 1] = f
      end
    end
  end
  return list
end

--- Compares the counters of an earlier interval with what has been read since, and reads them again.
---@param run Run
---@param time number ns, the end of the interval: all earlier records have been read
function Account:interval(run, time)
  if run.is_recorded or self._is_dear then return end
  local clock = ffi.new 'struct session_clock'
  C.session_read_clock(run.session, clock)
  local began, last = sys.now(clock.base), self._last
  if last and last.time + SETTLED > time then return end
  local list = read(run)
  for _, f in ipairs(run.in_kernel:running()) do list[#list + 1] = f end
  for i, before in ipairs(last and last.list or {}) do
    local line = list[i] and not self._told[i] and figures.overdue(before, list[i])
    if line then
      self._told[i] = true
      run.out:warn(('%s: %s'):format(run.name, line))
    end
  end
  self._last = { time = sys.now(clock.base), list = list }
  self._is_dear = self._last.time - began > MAX_COST
end

--- Reads the final figures, when the session has stopped and no event is looked at any more.
---@param run Run
function Account:close(run)
  local is_whole = C.session_count_rest(run.session)
  self._list, self._sums = read(run), read_sums(run, is_whole)
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  for _, list in ipairs { self._list, self._sums } do
    for _, f in ipairs(list) do f.is_exact = f.is_exact and is_whole and stats.bad == 0 end
  end
  for _, f in ipairs(run.in_kernel:figures()) do table.insert(self._sums, f) end
  for i, event in ipairs(read_events(run)) do
    local f, again, idle = self._list[i], run.in_kernel:count_again(event)
    if f.is_exact and again and again > f.fired + f.margin then f.hidden, f.idle = again - f.fired, idle end
    f.hiders = run.in_kernel:hiders(event)
    if f.captures_lost == 0 then f.counted, f.doubt = run.in_kernel:recount(event, f.read + f.early + f.rest) end
  end
  for _, f in ipairs(run.in_kernel:taken()) do table.insert(self._list, f) end
end

--- Returns what the events are restricted to; nil: nothing.
local function target_of(run)
  local opt = run.opt
  if opt.cgroups and #opt.cgroups > 0 then return 'the cgroups' end
  return attach.per_thread(opt, run.workload, run.everywhere) and 'the target' or nil
end

-- The kernel writes the numbers of its own namespace into fields.
local FOREIGN = 'fields have the numbers that tasks have on the host, not those of this pid namespace'

--- Returns what else the numbers of the target may mean; nil: nothing.
local function meaning_of(opt)
  local numbers = {}
  for _, one in ipairs(opt.pids or {}) do numbers[#numbers + 1] = type(one) == 'number' and one or nil end
  return processes.other_meaning(numbers) or processes.other_meaning(opt.tids or {}, true)
end

--- Returns the figures without those of such events.
local function asked(list)
  local rest = {}
  for _, f in ipairs(list) do rest[#rest + 1] = not f.is_extra and f or nil end
  return rest
end

---@return AccountContext
local function context_of(run, found)
  return { pairs = found, is_recorded = run.is_recorded, is_part = run.opt.time ~= nil, target = target_of(run),
    meaning = function() return meaning_of(run.opt) end,
    foreign_pids = not run.is_recorded and sys.has_foreign_pids() and FOREIGN or nil }
end

--- Returns the names of some stages' events.
local function names_of(stages, from, to)
  local names = {}
  for i = from, to do
    for _, event in ipairs(stages[i]) do names[#names + 1] = event.name end
  end
  return table.concat(names, ' or ')
end

--- Returns what the only matcher of a run has found; nil: it has none, or several.
local function pairs_of(consumers)
  local feed
  for _, one in ipairs(consumers) do
    if one.stats and feed then return end
    feed = one.stats and one or feed
  end
  if not feed then return end
  local config, stats, stages = feed.config, feed:stats(), feed.config.stages
  return {
    pairs = stats.pairs, unstarted = stats.unstarted + stats.mismatched,
    started = stats.stored + stats.replaced + stats.mismatched, key = feed:key_source(),
    limit = config.than and '--than' or config.lower and '--lower' or nil,
    firsts = names_of(stages, 1, math.max(#stages - 1, 1)),
    seconds = names_of(stages, math.min(2, #stages), #stages),
  }
end

--- Returns what is known about empty results, in one line; nil: nothing.
---@param run Run
---@param consumers Consumer[] the script's
---@return string?
function Account:causes(run, consumers)
  return joins.differences()[1] or figures.causes(asked(self._list), context_of(run, pairs_of(consumers)))
end

--- Returns why no handler got an event; nil: some did, or there may have been none.
---@param run Run
---@return string?
function Account:silence(run) return figures.silence(asked(self._list), context_of(run)) end

--- Prints what differs, and with -v the account.
---@param run Run
---@param consumers Consumer[] the script's
function Account:report(run, consumers)
  local context, all = { asks_perf = run.opt.capture == 'perf' }, { unpack(self._list) }
  for _, f in ipairs(self._sums) do all[#all + 1] = f end
  local lines = figures.differences(all, context)
  for _, line in ipairs(run.out:is_empty() and {} or joins.differences()) do lines[#lines + 1] = line end
  for _, line in ipairs(lines) do run.out:warn(('%s: %s'):format(run.name, line)) end
  unstarted.report(run, consumers, self._threads)
  if run.opt.verbose >= 1 and #all > 0 then
    run.out:warn(('%s: account\n%s'):format(run.name, (figures.text(all):gsub('\n$', ''))))
  end
end

return account
