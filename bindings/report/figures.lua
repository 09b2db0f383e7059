-- SPDX-License-Identifier: GPL-2.0-only
--- Figures: the account of the events of a run, from the kernel's counter to the handlers. A run that has stopped its
--- events and counted what is left in its rings knows all of them:
---
---   fired = per * (lost + early + read + rest)        read = rejected + used
---
--- `per` is the period, mostly 1. Each counter of the kernel may have up to `per` events more: less than a period after
--- its last sample, and one that it counts before it looks whether it has been stopped. While events happen, `fired`
--- may be more than that, by those on their way. Where the kernel counts something else than samples (a time, or by a
--- frequency), it is only never less. These are pure functions of the figures; bindings/report/account.lua reads them.
local tables = require 'bindings.base.table'

local figures = {}

--- The figures of one event, or of events that a way takes together.
---@class Figures
---@field name string
---@field way string how it is taken: `sample`, `capture`, `recording`, `count`...
---@field fired? number counted by the kernel behind its filter, or by programs; nil: unknown
---@field lost? number of these, those that did not fit into a ring; nil: unknown
---@field early? number before all rings were enabled
---@field read number samples that were read
---@field rest? number that were in the rings when the run ended
---@field rejected table<string, number> by `filter`, `target`, `gate` and `limit`
---@field counted? number by perf, of what programs took
---@field doubt? string how that differs
---@field is_missed? boolean those that are lost were missed by a program
---@field hidden? number that perf's counter did not see, but BPF programs did
---@field idle? number that BPF programs saw while the CPU was idle
---@field hiders? string[] names of BPF programs of other tracers that may hide the event from perf
---@field is_tracepoint? boolean BPF programs may take it
---@field margin? integer number of counters of the kernel: each may have counted one event when it stopped, for which
--- there is no record any more
---@field per? integer each sample is at least so many that have fired; nil: unknown
---@field is_exact? boolean the left equation holds
---@field by? string who has counted what has fired; nil: the kernel
---@field fate? string what became of those that are missing; nil: the kernel wrote no record of them
---@field share? number how much of the time it was on a counter of the hardware
---@field filters { kernel?: string, user?: string } its filter
---@field is_extra? boolean the profiler reads it only to understand others
---@field gate? string name of the source that decides which ones are passed on

--- What a matcher has found.
---@class PairFigures
---@field pairs number
---@field unstarted number ends without a start
---@field started number starts without an end
---@field limit? string the option that says which pairs are shown
---@field firsts string names of the events that start pairs
---@field seconds string those that end them
---@field key? string expression; nil: the CPU or thread

---@class AccountContext
---@field is_recorded? boolean
---@field is_part? boolean only a part of the recording is read
---@field asks_perf? boolean --capture perf was given
---@field target? string what the events are restricted to: 'the threads of -p'
---@field pairs? PairFigures of a run with one matcher
---@field meaning? fun(): string? what else the numbers of the target may mean
---@field foreign_pids? string why numbers of tasks in filters and keys may be wrong

local MAX_CAUSES = 3

local function rejected(f)
  local sum = 0
  for _, n in pairs(f.rejected) do sum = sum + n end
  return sum
end

--- Returns the number of events that the handlers got.
---@param f Figures
---@return number
function figures.used(f) return f.read - rejected(f) end

--- Returns how many samples are neither read nor lost; negative: these are more than can have fired.
local function unaccounted(f, fired)
  local per = f.per or 1
  local n = fired - per * (f.lost + (f.early or 0) + f.read + (f.rest or 0))
  return n >= 0 and n <= (f.margin or 0) * per and 0 or math.floor(n / per)
end

local function missing_line(f, n, context)
  local by, fate = f.by or 'the kernel', f.fate or 'wrote no record of them'
  if f.per > 1 then
    return ('%d samples of %s are missing: %s counted %d events, and each sample is %d of them'):format(n, f.name, by,
      f.fired, f.per)
  end
  return ('%d of %d %s are missing: %s counted them, but %s%s'):format(n, f.fired, f.name, by, fate,
    f.is_tracepoint and context.asks_perf and '; --capture bpf may have them' or '')
end

local function more_line(f, n)
  return ('%d %s%s were read, which is %d more than %s counted'):format(f.read, f.per > 1 and 'samples of ' or '',
    f.name, n, f.by or 'the kernel')
end

--- Returns who hides events from perf.
local function hider(f)
  if f.hiders then return (" by another tracer's BPF program (%s)"):format(table.concat(f.hiders, ', ')) end
  -- Some kernels do not run perf's events in the idle task.
  local can_be_idle = f.hidden and f.idle and f.hidden <= f.idle
  return can_be_idle and (' by the kernel (%d happened while their CPU was idle)'):format(f.idle) or ''
end

--- Returns lines about figures that cannot be right, or that limit the results.
---@param list Figures[] after the end of the events
---@param context AccountContext
---@return string[]
function figures.differences(list, context)
  local lines = {}
  for _, f in ipairs(list) do
    local n = f.per and f.fired and unaccounted(f, f.fired) or 0
    if n > 0 and f.is_exact then
      lines[#lines + 1] = missing_line(f, n, context)
    elseif n < 0 then
      lines[#lines + 1] = more_line(f, -n)
    end
    if f.hidden then
      lines[#lines + 1] = ('%d of %d %s are hidden from perf%s; --capture bpf has them'):format(f.hidden,
        f.fired + f.hidden, f.name, hider(f))
    end
    lines[#lines + 1] = f.doubt
    if f.is_missed and f.lost > 0 then
      lines[#lines + 1] = ('%d of %d %s are missing: they interrupted the program that takes them'):format(f.lost,
        f.fired, f.name)
    end
    if f.share and f.share < 1 then
      lines[#lines + 1] = ('%s was counted for only %d %% of the time: there are more events than counters of the CPU')
        :format(f.name, math.floor(f.share * 100))
    end
  end
  return lines
end

--- Returns a line about events that are missing while the run goes on; nil: there may be none. What had fired at an
--- earlier time must have been read or lost by now, if all records of that time have been read.
---@param before Figures at that time
---@param now Figures
---@return string?
function figures.overdue(before, now)
  if not (before.is_exact and now.is_exact) then return end
  local missing, more = unaccounted(now, before.fired), -unaccounted(now, now.fired)
  if missing > 0 then
    return ('at least %d %s are missing: %s counted them, but %s'):format(missing, now.name, now.by or 'the kernel',
      now.fate or 'wrote no record of them')
  elseif more > 0 then
    return more_line(now, more)
  end
end

local REJECTED = {
  { 'filter', function(f) return ("the filter '%s' rejected"):format(f.filters.user or '') end },
  { 'target', function() return 'another thread than those of the target had' end },
  { 'gate', function(f) return ('the condition of %s rejected'):format(f.gate or 'the source') end },
  { 'limit', function() return 'the limit -N came before' end },
}

--- Returns who rejected all samples that were read; nil: nobody.
local function rejecter(f)
  if f.read == 0 or figures.used(f) > 0 then return end
  local most
  for _, one in ipairs(REJECTED) do
    if not most or f.rejected[one[1]] > f.rejected[most[1]] then most = one end
  end
  return ('%s %s%d %s'):format(most[2](f), f.read == 1 and '' or 'all ', f.read, f.name)
end

--- Returns why there is no event for the handlers; nil: there are some, or it is not known.
local function cause(f, context)
  if f.read > 0 then return rejecter(f) end
  if context.is_recorded then
    return ('the recording has no %s%s'):format(f.name, context.is_part and ' in the part of --time' or '')
  end
  if f.hidden and f.fired == 0 then return ('perf sees none of %d %s'):format(f.hidden, f.name) end
  if (f.lost or 0) > 0 then return ('%s%d %s were lost'):format(f.lost == f.fired and 'all ' or '', f.lost, f.name) end
  if f.fired ~= 0 then return end
  if f.hiders then return ('no %s came from perf, maybe hidden%s'):format(f.name, hider(f)) end
  if f.filters.kernel then return ("no %s passed the filter '%s'"):format(f.name, f.filters.kernel) end
  return ('no %s happened%s'):format(f.name, context.target and ' in ' .. context.target or '')
end

--- Returns whether text names a field with the number of a task, as the kernel writes it.
local function names_task(source)
  for word in (source or ''):gmatch '[%a_][%w_]*' do
    if word:find 'pid$' and not word:find '^_' then return true end
  end
  return false
end

--- Adds what the numbers of tasks have to do with empty results.
local function add_numbers(causes, list, context)
  local names = context.pairs and names_task(context.pairs.key)
  for _, f in ipairs(list) do
    names = names or figures.used(f) == 0 and (names_task(f.filters.kernel) or names_task(f.filters.user))
  end
  if names and context.foreign_pids then causes[#causes + 1] = context.foreign_pids end
  if context.target and context.meaning then causes[#causes + 1] = context.meaning() end
end

local function pair_cause(p)
  local key = p.key and ('the key %s'):format(p.key) or 'the CPU or thread'
  if p.pairs > 0 then return p.limit and ('none of %d pairs is one for %s'):format(p.pairs, p.limit) or nil end
  if p.unstarted == 0 or p.started == 0 then return end
  return ('none of %d %s had %s of one of %d %s before it'):format(p.unstarted, p.seconds, key, p.started, p.firsts)
end

--- Returns the likely causes of empty results, in one line; nil: none is known.
---@param list Figures[]
---@param context AccountContext
---@return string?
function figures.causes(list, context)
  local causes = {}
  for _, f in ipairs(list) do causes[#causes + 1] = cause(f, context) end
  if #causes == 0 then causes[1] = context.pairs and pair_cause(context.pairs) end
  local is_known = #causes > 0
  if not is_known then
    for _, f in ipairs(list) do
      causes[#causes + 1] = figures.used(f) > 0 and ('%d %s were read'):format(figures.used(f), f.name) or nil
    end
  end
  if #causes > MAX_CAUSES then
    causes[MAX_CAUSES + 1] = ('and so on for %d more events'):format(#causes - MAX_CAUSES)
    for i = #causes, MAX_CAUSES + 2, -1 do causes[i] = nil end
  end
  if is_known then add_numbers(causes, list, context) end
  return causes[1] and table.concat(causes, '; ')
end

--- Returns why handlers got no events where nothing has to be printed, in one line; nil: they got some, or there may
--- have been none.
---@param list Figures[]
---@param context AccountContext
---@return string?
function figures.silence(list, context)
  local causes = {}
  for _, f in ipairs(list) do
    if figures.used(f) > 0 or (f.rejected.limit or 0) > 0 then return end
    causes[#causes + 1] = (f.read > 0 or f.hiders) and cause(f, {}) or nil
  end
  if not causes[1] then add_numbers(causes, list, context) end
  return causes[1] and table.concat(causes, '; ', 1, math.min(#causes, MAX_CAUSES))
end

local function columns(has_perf)
  return {
    { name = 'event' },
    { name = 'fired', width = 10, align = 'right' },
    { name = 'lost', width = 8, align = 'right' },
    { name = 'outside', width = 8, align = 'right' },
    { name = 'read', width = 10, align = 'right' },
    { name = 'filtered', width = 10, align = 'right' },
    { name = 'used', width = 10, align = 'right' },
    { name = 'perf', width = 10, align = 'right', show = has_perf },
    { name = 'way', align = 'left' },
  }
end

--- Returns the account as a table.
---@param list Figures[] at least one
---@return string
function figures.text(list)
  local rows, has_perf = {}, false
  for i, f in ipairs(list) do
    has_perf = has_perf or f.counted ~= nil
    rows[i] = { event = f.name, fired = f.fired or '-', lost = f.lost or '-',
      outside = f.fired and (f.early or 0) + (f.rest or 0) or '-', read = f.read, filtered = rejected(f),
      used = figures.used(f), perf = f.counted or '-', way = f.way }
  end
  return tables.render(tables.offered('account', columns(has_perf)), rows)
end

return figures
