-- SPDX-License-Identifier: GPL-2.0-only
--- Use of the last-level cache by CPU or thread.
local figures = require 'lib.ratios'

local AMD_L3 = '/sys/bus/event_source/devices/amd_l3/cpumask'
-- Of the L3 PMU: look-ups, those that missed, 1/16 of the cycles that misses wait, and the misses that did.
local L3_EVENTS = { 'event=0x4,umask=0xff', 'event=0x4,umask=0x1', 'event=0x90', 'event=0x9a,umask=0x1f' }

--- The CPUs that count for all that share their cache; nil where there is no such PMU.
local function l3_cpus()
  local file = io.open(AMD_L3)
  local cpus = file and file:read '*l'
  if file then file:close() end
  return cpus
end

return {
  summary = 'Count references to the last-level cache, and how many of them it had',
  description = [[
Needs a hardware PMU, whose cache-references and cache-misses it counts: on Intel those of the last-level cache. Where
there is AMD's L3 PMU (amd_l3), it counts that instead, which has a row for each cache, of the first of its CPUs,
and MISS-LATENCY, how many cycles a miss takes; Zen 4 and later do not count that in the same way. RUN% is how much of
the time the counters were there; counts are scaled up where it is less than 100. Its figures are tested with
synthetic counts only, on neither of these machines.]],
  examples = { { 'profscript llcstat -i 1000', 'every second, each CPU' } },
  unsupported = { 'event', 'ring', 'samples' },
  options = { interval = { default = '1s' }, exit_n = { help = 'stop after this many reports' } },

  start = function(opt, out, session)
    local l3 = not opt.input and l3_cpus()
    if l3 and session.per_thread then return nil, 'the PMU amd_l3 counts by cache, not threads' end
    local events = { 'cache-references', 'cache-misses' }
    if l3 then
      for i, terms in ipairs(L3_EVENTS) do events[i] = ('amd_l3/%s/cpus="%s"/'):format(terms, l3) end
    end
    return figures.start({
      name = 'llcstat',
      events = events,
      columns = {
        { name = 'references', title = 'REFERENCE' },
        { name = 'misses', title = 'MISSES' },
        { name = 'hit', title = 'HIT%', format = '%.2f' },
        { name = 'run', title = 'RUN%', format = '%.0f' },
        { name = 'miss_latency', title = 'MISS-LATENCY', format = '%.1f', show = l3 and true or false },
      },
      row = function(n, share)
        local latency = l3 and n[4] > 0 and 16 * n[3] / n[4] or nil
        return {
          references = n[1], misses = n[2], hit = figures.percent(n[1] - n[2], n[1]), run = 100 * share,
          miss_latency = latency,
        }
      end,
    }, opt, out, session)
  end,
}
