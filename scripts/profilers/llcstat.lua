-- SPDX-License-Identifier: GPL-2.0-only
--- Last-level cache references and misses per CPU or thread.
local fs = require 'lib.fs'
local ratios = require 'lib.ratios'
local reports = require 'lib.reports'

local AMD_L3 = '/sys/bus/event_source/devices/amd_l3/cpumask'
-- Of the L3 PMU: lookups, misses, 1/16 of the cycles that sampled misses took, and those misses.
local L3_EVENTS = { 'event=0x4,umask=0xff', 'event=0x4,umask=0x1', 'event=0x90', 'event=0x9a,umask=0x1f' }

return {
  summary = 'Count last-level cache references, misses and hit rate',
  description = [[
Needs a hardware PMU. Counts cache-references and cache-misses, which on Intel
are those of the last-level cache. With AMD's L3 PMU (amd_l3), it counts that
PMU's events instead and prints a row for each L3 cache, labeled with its first
CPU. MISS-LATENCY is the cycles that a miss takes; Zen 4 and later count it
differently.

RUN% is the share of the time that the counters were running; below 100, the
counts are scaled up. Tested with synthetic counts only, never on such machines.]],
  examples = { { 'profscript llcstat -i 1000', 'each CPU, every second' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = reports.options {},

  start = function(opt, out, session)
    local l3 = session.supports 'amd_l3/event=0x4/' and fs.line(AMD_L3) -- the CPUs that count, one for each L3 cache
    local events = { 'cache-references', 'cache-misses' }
    if l3 then
      for i, terms in ipairs(L3_EVENTS) do events[i] = ('amd_l3/%s/cpus="%s"/'):format(terms, l3) end
    end
    return ratios.start({
      name = 'llcstat',
      events = events,
      only_cpus = l3 and 'the PMU amd_l3 counts per cache, not per thread' or nil,
      columns = {
        { name = 'references', metric = 'counter', title = 'REFERENCE' },
        { name = 'misses', metric = 'counter', title = 'MISSES' },
        { name = 'hit', title = 'HIT%', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
        { name = 'miss_latency', title = 'MISS-LATENCY', format = '%.1f', show = l3 and true or false },
      },
      row = function(n, share)
        local latency = l3 and ratios.of(16 * n[3], n[4]) or nil
        return {
          references = n[1], misses = n[2], hit = ratios.percent(n[1] - n[2], n[1]), run = 100 * share,
          miss_latency = latency,
        }
      end,
    }, opt, out, session)
  end,
}
