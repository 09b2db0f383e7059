-- SPDX-License-Identifier: GPL-2.0-only
--- Distribution of a number that events carry.
local heatmap = require 'lib.heatmap'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local tables = require 'lib.table'

local MAX_INSTANCES = 4096 -- CPUs or threads with a row of their own; all further ones share one
local LARGEST = 2 ^ 63 - 1024 -- of what a histogram takes; larger unsigned numbers count as this

--- All events in the order in which they were given; nil and what is wrong with them.
local function with_numbers(groups)
  local list = {}
  for _, group in ipairs(groups) do
    for _, event in ipairs(group) do
      if not event.attrs.num then
        return nil, ('%s has no num=, the expression whose values are to be counted; the time between events is'
          .. ' what multi-trace measures'):format(event.name)
      end
      list[#list + 1] = event
    end
  end
  return list
end

--- The value that the fraction q of all does not exceed. Of a histogram of negative numbers there are the sizes.
local function quantile(plus, minus, q)
  local n_plus, n_minus = plus and plus:stats().count or 0, minus and minus:stats().count or 0
  local rank = math.max(1, math.ceil(q * (n_plus + n_minus)))
  if rank > n_minus then return plus:quantile((rank - n_minus) / n_plus) end
  return -minus:quantile((n_minus - rank + 1) / n_minus)
end

local function fill(row, plus, minus)
  local p, m = plus and plus:stats(), minus and minus:stats()
  row.calls = (p and p.count or 0) + (m and m.count or 0)
  row.total = (p and p.sum or 0) - (m and m.sum or 0)
  row.min, row.max = m and -m.max or p.min, p and p.max or -m.min
  row.avg = math.floor(tonumber(row.total) / row.calls)
  row.p99 = quantile(plus, minus, 0.99)
  return row
end

return {
  summary = 'Distribution of a number that events carry',
  description = [[
num= of each event is a C expression over its fields; the table has a row for each event. --than
prints the events themselves whose number is greater.

  $ profscript num-dist -e kmem:kmalloc//num=bytes_alloc/,sched:sched_stat_runtime//num=runtime/ --duration 1
  2026-11-22 11:29:40.606862
  event                 calls            total          min          avg          p99          max
  ------------------ -------- ---------------- ------------ ------------ ------------ ------------
  kmalloc                7829          7579400            8          968         4128        16384
  sched_stat_runtime     6552       1877921452         2133       286618      3981312      4013870]],
  examples = {
    { 'profscript num-dist -e kmem:kmalloc//num=bytes_alloc/,kmem:kmalloc//num=bytes_alloc-bytes_req/alias=waste/',
      'how large allocations are, and what rounding them up wastes' },
    { 'profscript num-dist -e sched:sched_stat_runtime//num=runtime/ --than 10000000 --perins',
      'long turns on each CPU' },
    { 'profscript num-dist -e raw_syscalls:sys_exit//num=ret/ -- ls', 'what system calls return' },
  },
  attributes = { 'num' },
  options = {
    than = { type = 'number', help = 'print the events with a greater number' },
    heatmap = heatmap.option,
    perins = { type = 'flag', help = 'a row for each CPU or thread' },
  },

  start = function(opt, out, session)
    local list, problem = with_numbers(opt.event)
    if not list then return nil, problem end
    local instance = session.per_thread and '_tid' or '_cpu'
    local keys = intern.new(1, MAX_INSTANCES)
    local plus, minus = hist.set((MAX_INSTANCES + 1) * #list), hist.set((MAX_INSTANCES + 1) * #list)
    local limit, without, huge, maps = opt.than or math.huge, 0, 0, {}

    local handlers = {}
    for i, event in ipairs(list) do
      local map = heatmap.new { file = opt.heatmap, name = #list > 1 and event.alias or nil, title = event.attrs.num,
        unit = '' }
      maps[i] = map
      local value, at, perins = session.number(event, event.attrs.num, 'num'), i - 1, opt.perins
      handlers[event] = function(ev)
        local n = value(ev)
        if n then
          local slot = at
          if perins then slot = keys.id(ev[instance]) * #list + at end
          if n < 0 then
            minus:add(slot, -n)
          elseif n < LARGEST then
            plus:add(slot, n)
          else
            plus:add(slot, LARGEST)
            huge = huge + 1
          end
          map:add(ev._time, n)
          if n > limit then out:print_event(ev) end
        else
          without = without + 1
        end
      end
    end

    local spec = tables.new('distribution', {
      { name = 'instance', title = session.per_thread and '[THREAD]' or '[CPU]', align = 'left', show = opt.perins },
      { name = 'event', align = 'left' },
      { name = 'calls', width = 8 },
      { name = 'total', width = 16 },
      { name = 'min', width = 12 },
      { name = 'avg', width = 12 },
      { name = 'p99', width = 12 },
      { name = 'max', width = 12 },
    })
    local function print_and_clear()
      local rows = {}
      for id = 0, opt.perins and keys:count() or 0 do
        for i, event in ipairs(list) do
          local is_rest = opt.perins and id == keys:count()
          local slot = (is_rest and keys.max or id) * #list + i - 1
          local p, m = plus:get(slot), minus:get(slot)
          p, m = p and p:stats().count > 0 and p, m and m:stats().count > 0 and m
          if p or m then
            local name = is_rest and '(other)' or keys:part(id, 1)
            rows[#rows + 1] = fill({ instance = name, event = event.alias, order = i }, p, m)
          end
        end
      end
      if opt.perins then
        table.sort(rows, function(a, b)
          if a.instance == b.instance then return a.order < b.order end
          return type(a.instance) == 'number' and (type(b.instance) ~= 'number' or a.instance < b.instance)
        end)
      end
      out:table(spec, rows)
      plus:clear()
      minus:clear()
      if without > 0 then out:warn(('num-dist: %d events gave no number (a division by zero)'):format(without)) end
      if huge > 0 then out:warn(('num-dist: %d numbers are 2^63 or more, and count as that'):format(huge)) end
      without, huge = 0, 0
    end

    handlers.interval = print_and_clear
    handlers.stop = function()
      print_and_clear()
      for _, map in ipairs(maps) do map:write(out) end
    end
    return handlers
  end,
}
