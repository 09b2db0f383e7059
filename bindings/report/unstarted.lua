-- SPDX-License-Identifier: GPL-2.0-only
--- Ends of system calls that no start precedes, and why. A new task's first event is the end of the clone that created
--- it, and each task that existed before may have been in one call then.
local ffi = require 'ffi'
local pair_keys = require 'bindings.pairs.keys'
local sys = require 'bindings.base.sys'

local C = ffi.C
local unstarted = {}

--- Returns how many threads there are on this machine; nil: unknown.
---@return number?
function unstarted.threads() return tonumber((sys.read '/proc/loadavg' or ''):match '%d+/(%d+)') end

--- Returns a line about such ends, and whether more of them than can be had no start.
---@param n number
---@param began number of tasks during the run
---@param before? number of threads at its start; nil: unknown
---@return string
---@return boolean is_wrong
function unstarted.text(n, began, before)
  local new = math.min(n, began)
  local old, causes = math.min(n - new, before or math.huge), {}
  local function add(count, what) causes[#causes + 1] = count > 0 and ('%d %s'):format(count, what) or nil end
  add(new, 'of clone in new tasks')
  add(old, 'of calls that had begun before the run')
  add(n - new - old, 'for no known reason')
  return ('%d ends of calls without a start: %s'):format(n, table.concat(causes, ', ')), n > new + old
end

--- Returns whether each call of a thread has both events.
local function are_calls(config, per_thread)
  local starts, ends = config.stages[1], config.stages[2]
  local function is_whole(event, name)
    return event.name == name and not (event.filters.kernel or event.filters.user or event.gate)
  end
  return #config.stages == 2 and #starts == 1 and is_whole(starts[1], 'raw_syscalls:sys_enter')
    and is_whole(ends[1], 'raw_syscalls:sys_exit') and pair_keys.are_threads(config, per_thread)
end

--- Returns such a line about a matcher of system calls; nil: there are none, or the starts may be elsewhere.
local function line_of(run, feed, before)
  local opt, found, stats = run.opt, feed:stats(), ffi.new 'struct session_stats'
  C.session_read_stats(run.session, stats)
  local is_part = opt.cpus or opt.cgroups or opt.time or opt.watch or run:pulls()
  local is_cut = stats.lost > 0 or found.dropped + found.evicted > 0
  if is_part or is_cut or found.unstarted == 0 or not are_calls(feed.config, run.per_thread) then return end
  local n = ffi.new 'uint32_t[1]'
  C.session_threads(run.session, n)
  before = not run.is_recorded and (n[0] > 0 and n[0] or before) or nil
  return unstarted.text(found.unstarted, tonumber(stats.began), before)
end

--- Prints a line about the ends that had no start: with -v, or if it is wrong.
---@param run Run
---@param consumers Consumer[] the script's
---@param before? number of threads of the machine at the start of the run
function unstarted.report(run, consumers, before)
  for _, feed in ipairs(consumers) do
    local line, is_wrong
    if feed.stats and feed.config.stages then line, is_wrong = line_of(run, feed, before) end
    if line and (is_wrong or run.opt.verbose >= 1) then run.out:warn(('%s: %s'):format(run.name, line)) end
  end
end

return unstarted
