-- SPDX-License-Identifier: GPL-2.0-only
--- Split locks (locked accesses that cross a cache line) per CPU or thread, and the addresses of sampled ones.
local array = require 'lib.array'
local ratios = require 'lib.ratios'
local reports = require 'lib.reports'
local frame = require 'lib.frame'
local intern = require 'lib.intern'
local splitlock = require 'lib.engines.splitlock'
local tables = require 'lib.table'
local failure = require 'lib.failure'

-- The raw event of each vendor's PMU.
local EVENTS = { GenuineIntel = 'r10f4', AuthenticAMD = 'r125' }
local MAX_PLACES = 4096

local function vendor()
  for line in io.lines '/proc/cpuinfo' do
    local id = line:match '^vendor_id%s*:%s*(%S+)'
    if id then return id end
  end
end

--- Adds the handlers that sample the event: a table of addresses, and with -g or -v a line for each sample.
local function sample(handlers, name, period, opt, out, session)
  local event = session.event { name, period = period, resolve = true, stack = opt.call_graph }
  local keys = intern.new(2, MAX_PLACES)
  local samples = array.new(MAX_PLACES + 1)
  local places = {} -- texts of addresses, by id
  local lines = opt.call_graph or opt.verbose > 0
  session.want { prints_events = lines and true or false }
  local spec = tables.new('split-lock-samples', {
    { name = 'sampled_rip', title = 'SAMPLED_RIP', align = 'left' },
    { name = 'samples', metric = 'counter', title = 'SAMPLES', align = 'right' },
    { name = 'mode', title = 'MODE', align = 'left' },
  })

  local function mode_of(found)
    local mode = found and found.in_kernel and 'kernel' or 'user'
    return (opt.exclude_host and 'guest-' or 'host-') .. mode
  end
  handlers[event] = function(ev)
    local found = session.address(ev, ev._ip)
    local id = keys.id(ev._ip, ev._pid)
    samples[id] = samples[id] + 1
    places[id] = places[id] or { sampled_rip = frame.text(found, ev._ip), mode = mode_of(found) }
    if lines then out:print_event(ev) end
  end
  function handlers.describe(ev)
    local found = session.address(ev, ev._ip)
    return ('split-lock: %d %s ip %s'):format(tonumber(ev._period), mode_of(found), frame.text(found, ev._ip))
  end
  local function report()
    local rows = {}
    for id, place in pairs(places) do
      place.samples, samples[id] = samples[id], 0
      rows[#rows + 1] = place
    end
    table.sort(rows, function(a, b)
      if a.samples ~= b.samples then return a.samples > b.samples end
      return a.sampled_rip < b.sampled_rip
    end)
    out:table(spec, rows)
    keys:clear()
    places = {}
  end
  for _, when in ipairs { 'interval', 'stop' } do
    local print_counts = handlers[when]
    handlers[when] = function(time)
      report()
      print_counts(time)
    end
  end
  return handlers
end

return {
  summary = 'Count and sample split locks (across cache lines)',
  description = [[
Counts split locks: locked memory accesses that cross a cache line. -T also
samples them and prints a table of their addresses; -g or -v adds a line for
each sample. Needs the hardware PMU of an Intel or AMD processor. Tested with
synthetic counts and samples only.]],
  examples = {
    { 'profscript split-lock -i 1000', 'each CPU, every second' },
    { 'profscript split-lock -T 100 -g', 'also the stack of every 100th split lock' },
    { 'profscript split-lock --test -N 1', 'check that split locks are counted' },
  },
  unsupported = { 'event' },
  options = reports.options {
    test = { type = 'flag', help = 'cause split locks in a thread of profscript; split_lock_detect=fatal kills it' },
    period = { type = 'integer', min = 1, help = 'sample every Nth split lock' },
    trigger = { type = 'integer', short = 'T', min = 0, help = 'the same as --period; 0: do not sample' },
    perins = { type = 'flag', help = 'accepted for perf-prof command lines: rows are per CPU or thread anyway' },
    call_graph = {}, user_callchain = {}, kernel_callchain = {},
  },

  start = function(opt, out, session)
    local event = EVENTS[vendor() or '']
    if not event then
      failure.unavailable 'split-lock: no event is known for this processor; only Intel and AMD are supported'
    end
    local period = opt.period or opt.trigger ~= 0 and opt.trigger or nil
    if opt.call_graph and not period then return nil, '-g needs samples; select them with -T' end
    local handlers = ratios.start({
      name = 'split-lock',
      events = { event },
      columns = {
        { name = 'split_locks', metric = 'counter', title = 'SPLIT_LOCKS' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
      },
      row = function(n, share) return { split_locks = n[1], run = 100 * share } end,
    }, opt, out, session)
    if opt.test and not splitlock.start() then
      failure.unavailable 'split-lock: --test: this processor does not support split locks'
    end
    return period and sample(handlers, event, period, opt, out, session) or handlers
  end,
}
