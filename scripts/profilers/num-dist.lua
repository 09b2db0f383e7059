-- SPDX-License-Identifier: GPL-2.0-only
--- Distribution of a number computed from each event.
local events = require 'lib.events'
local heatmap = require 'lib.heatmap'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local units = require 'lib.units'

local MOST_NEGATIVE = -0x7fffffffffffffffLL - 1
local MAX_INSTANCES = 4096 -- CPUs or threads with a row of their own; all others share one

--- Returns the number of an absolute value.
local function negated(value) return value == 0x8000000000000000ULL and MOST_NEGATIVE or -value end

--- Returns the quantile q of both histograms. The histogram of negative numbers holds absolute values.
local function quantile(positive, negative, q)
  local n_positive, n_negative = positive and positive:stats().count or 0, negative and negative:stats().count or 0
  local rank = math.max(1, math.ceil(q * (n_positive + n_negative)))
  if rank > n_negative then return positive:quantile((rank - n_negative) / n_positive) end
  return negated(negative:quantile((n_negative - rank + 1) / n_negative))
end

--- Returns the difference of two sums, exactly if both have less than 64 bits.
local function difference(a, b)
  local x, y = tonumber(a), tonumber(b)
  if x < 2 ^ 63 and y < 2 ^ 63 then return a - b end
  return x - y
end

--- Returns the variance of the values of both.
local function variance(p, n)
  if not (p and n) then return (p or n).variance end
  local count, apart = p.count + n.count, p.avg + n.avg -- of the means: one is negative
  return (p.count * p.variance + n.count * n.variance) / count + p.count * n.count / count ^ 2 * apart ^ 2
end

local function fill(row, positive, negative)
  local p, n = positive and positive:stats(), negative and negative:stats()
  row.calls = (p and p.count or 0) + (n and n.count or 0)
  row.total = n and difference(p and p.sum or 0, n.sum) or p.sum
  row.min, row.max = n and negated(n.max) or p.min, p and p.max or negated(n.min)
  row.avg = math.floor(tonumber(row.total) / row.calls)
  row.variance = variance(p, n)
  row.stddev = math.sqrt(row.variance)
  row.p99 = quantile(positive, negative, 0.99)
  row.value = { positive = positive, negative = negative }
  return row
end

local function unit_of(row) return row.unit end

--- The distributions of a run, by event, with --perins also by CPU or thread.
local function new_distributions(list, opt, session)
  local keys, slots = intern.new(1, MAX_INSTANCES), (MAX_INSTANCES + 1) * #list
  return {
    list = list, perins = opt.perins, keys = keys, positive = hist.set(slots), negative = hist.set(slots),
    numbers = session.tally { keys = opt.perins and keys or nil }, without = 0,
    spec = tables.new('distribution', {
      { name = 'instance', title = ('[%s]'):format(session.instance_title), align = 'left', show = opt.perins },
      { name = 'event', align = 'left' },
      { name = 'calls', metric = 'counter', width = 8 },
      { name = 'total', metric = 'counter', width = 8, unit_of = unit_of },
      { name = 'min', width = 8, unit_of = unit_of },
      { name = 'avg', width = 8, unit_of = unit_of },
      { name = 'p99', width = 8, unit_of = unit_of },
      { name = 'max', width = 8, unit_of = unit_of },
      { name = 'stddev', width = 8, unit_of = unit_of, data_only = not opt.variance },
      { name = 'variance', width = 16, format = '%.3f', data_only = not opt.variance },
      { name = 'value', metric = 'histogram', unit_of = unit_of },
    }),
  }
end

local function before(a, b)
  if a.instance == b.instance then return a.order < b.order end
  return type(a.instance) == 'number' and (type(b.instance) ~= 'number' or a.instance < b.instance)
end

--- Returns the rows of the table.
local function rows_of(self)
  local rows, keys, perins = {}, self.keys, self.perins
  for id = 0, perins and keys:count() or 0 do
    for i, event in ipairs(self.list) do
      local is_rest = perins and id == keys:count()
      local slot = (is_rest and keys.max or id) * #self.list + i - 1
      local p, n = self.positive:get(slot), self.negative:get(slot)
      p, n = p and p:stats().count > 0 and p, n and n:stats().count > 0 and n
      if p or n then
        local name = is_rest and '(other)' or keys:part(id, 1)
        local row = { instance = name, event = event.alias, order = i, unit = units.of_field(event.attrs.num) }
        rows[#rows + 1] = fill(row, p, n)
      end
    end
  end
  if perins then table.sort(rows, before) end
  return rows
end

--- Prints the distributions, and starts new ones.
local function report(self, out)
  out:table(self.spec, rows_of(self))
  self.positive:clear()
  self.negative:clear()
  local without = self.numbers:ignored() - self.without
  if without > 0 then
    out:warn(('num-dist: ignored %d events without a number (division by zero)'):format(without))
  end
  self.without = self.without + without
end

return {
  summary = 'Distribution of an event field or expression',
  description = [[
num= of each event is a C expression over its fields. The table has a row for
each event.

  $ profscript num-dist -e kmem:kmalloc//num=bytes_alloc/,sched:sched_stat_runtime//num=runtime/ --duration 1
  2026-11-28 18:12:56.010827
  event                 calls            total          min          avg          p99          max
  ------------------ -------- ---------------- ------------ ------------ ------------ ------------
  kmalloc                9776        11.7  MiB         8 B      1.22 KiB    16.1  KiB    32    KiB
  sched_stat_runtime     5482         2.00 s         529 ns   365    us      3.65 ms      4.01 ms]],
  examples = {
    { 'profscript num-dist -e kmem:kmalloc//num=bytes_alloc/,kmem:kmalloc//num=bytes_alloc-bytes_req/alias=waste/',
      'sizes of allocations, and bytes wasted by rounding up' },
    { 'profscript num-dist -e sched:sched_stat_runtime//num=runtime/ --than 10000000 --perins',
      'runtimes per CPU, with each of more than 10 ms' },
    { 'profscript num-dist -e raw_syscalls:sys_exit//num=ret/ -- ls', 'return values of system calls' },
  },
  attributes = { 'num' },
  options = {
    than = { type = 'number', help = 'print events whose number is greater than N; 3ms is 3000000' },
    heatmap = heatmap.option,
    perins = { type = 'flag', help = 'print a row per CPU or thread' },
    variance = { type = 'flag', help = 'also print the standard deviation and the variance' },
  },

  start = function(opt, out, session)
    local list = events.list(opt.event)
    for _, event in ipairs(list) do
      if not event.attrs.num then
        return nil, ('%s has no num=, the expression to count; for the time between events, use multi-trace')
          :format(event.name)
      end
    end
    if #list == 0 then return nil, 'no events; select some with -e' end
    local found, limit, maps = new_distributions(list, opt, session), opt.than or math.huge, {}
    local instance = session.instance_field

    local handlers = {}
    for i, event in ipairs(list) do
      local map = heatmap.new { file = opt.heatmap, name = #list > 1 and event.alias or nil, title = event.attrs.num,
        unit = units.of_field(event.attrs.num) or '' }
      maps[i] = map
      local function each(ev, n)
        map:add(ev._time, n)
        if n > limit then out:print_event(ev) end
      end
      handlers[event] = found.numbers:add(event, {
        key = opt.perins and { instance } or nil,
        hist = { into = found.positive, negative = found.negative, width = #list, at = i - 1, value = event.attrs.num },
        each = (opt.than or opt.heatmap) and each or nil,
      })
    end

    function handlers.draw() out:table(found.spec, rows_of(found)) end
    function handlers.interval() report(found, out) end
    function handlers.stop()
      report(found, out)
      for _, map in ipairs(maps) do map:write(out) end
    end
    return handlers
  end,
}
