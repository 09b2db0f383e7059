-- SPDX-License-Identifier: GPL-2.0-only
--- Event counts by key, as a sorted table at each interval; on a terminal, as a screen.
local array = require 'lib.array'
local events = require 'lib.events'
local hist = require 'lib.hist'
local intern = require 'lib.intern'
local screen = require 'lib.screen'
local tables = require 'lib.table'
local top_columns = require 'lib.engines.top_columns'

local MAX_ROWS = 65536 -- all further keys share one row

--- The sums of a run by key.
---@param columns table[] of top_columns.values()
local function new_sums(columns, session)
  local keys, names, width = intern.new(1, MAX_ROWS), {}, #columns
  return {
    keys = keys, names = names, width = width, columns = columns, values = array.new((MAX_ROWS + 1) * width),
    hists = hist.set((MAX_ROWS + 1) * width), -- of the columns that are variances
    counts = session.tally { keys = keys, names = names },
  }
end

--- Takes an event into the sums. Returns its handler.
local function handler(sums, event, added, opt)
  local key, comm, values, variance = event.attrs.key or opt.key, event.attrs.comm, {}, nil
  for _, column in ipairs(added) do
    local into = { into = column.is_variance and sums.hists or sums.values, width = sums.width, at = column.at,
      value = column.value }
    if column.is_variance then variance = into else values[#values + 1] = into end
  end
  local name = comm or not key and '_comm' or nil
  if opt.only_comm then key, name = comm or '_comm', nil end
  return sums.counts:add(event, { key = { key }, thread = not key, name = name, sums = values, hist = variance })
end

--- Returns the rows of the table.
local function rows_of(sums, key_name, comm_name, only_comm, print_key)
  local result, keys, width = {}, sums.keys, sums.width
  for i = 0, keys:count() - (keys:overflow() > 0 and 0 or 1) do
    local id = i < keys:count() and i or keys.max
    local value = keys:part(id, 1)
    local row = { key = value, [comm_name] = only_comm and value or sums.names[id] }
    row[key_name] = value and print_key and type(value) ~= 'string' and print_key(value) or value or '(other)'
    for at, column in ipairs(sums.columns) do
      local place = id * width + at - 1
      local found = column.is_variance and sums.hists:get(place)
      row[column.name] = found and found:stats().variance or sums.values[place]
      sums.is_rounded = sums.is_rounded or not found and math.abs(sums.values[place]) >= 2 ^ 53
    end
    result[#result + 1] = row
  end
  return result
end

local function clear(sums)
  local keys, width, values = sums.keys, sums.width, sums.values
  for i = 0, keys:count() * width - 1 do values[i] = 0 end
  for i = keys.max * width, keys.max * width + width - 1 do values[i] = 0 end
  keys:clear()
  sums.hists:clear()
  for id in pairs(sums.names) do sums.names[id] = nil end
end

return {
  summary = 'Count events by key, sorted, like top(1)',
  description = [[
Rows are the values of key= (or -k). Columns are the numbers of events, or the
sums of top-by= and top-add=, or the variance of top-variance=, of which an event
has at most one. Without a key, a row is the thread in whose
context the event happened:

  key   comm  a row is
  no    no    a thread, and its name
  no    yes   a thread; with --only-comm a comm
  yes   no    a key
  yes   yes   a key, with the comm of its first event; with --only-comm a comm

An event without a key among events with one is counted for its thread, so the
keys of the others should be threads, too.

Rows are sorted by the top-by= and top-variance= columns, then by the others, then by the key. On
a terminal the table is a screen: < and > (or the arrow keys) select the column
to sort by, r reverses the order, q quits.

  $ profscript top -m 1024 -e sched:sched_stat_runtime//key=pid/comm=comm/top-by=runtime/ --duration 1
  2026-11-28 18:12:57.064475 profscript top - sample 5642 events
       PID      RUNTIME COMM
  -------- ------------ ---------------
     30132    509    ms ALL CPUs/TCG
      4867    384    ms ALL CPUs/TCG
     32079    151    ms cc1
     32140    123    ms cc
     32273     91.5  ms collect2
  ...]],
  examples = {
    { 'profscript top -e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/',
      'wakeups and switches by task' },
    { 'profscript top -e sched:sched_stat_runtime//key=pid/comm=comm/top-by=runtime/ -i 5000', 'runtime by task (ns)' },
    { 'profscript top -e sched:sched_stat_runtime//key=pid/comm=comm/top-variance=runtime/',
      'tasks whose time slices differ most' },
    { 'profscript top -e raw_syscalls:sys_enter -k id --duration 5', 'system calls by number' },
    { "profscript top -e 'kmem:kmalloc//top-by=bytes_alloc/comm=ksymbol(call_site)/' --only-comm",
      'bytes allocated, by function' },
    { [[profscript top -e irq:softirq_entry//printkey='printf("cpu%d vec%d",key>>16,key&0xffff)'/ -k '(_cpu<<16)|vec']],
      'a key of two values' },
  },
  attributes = { 'key', 'comm', 'printkey', 'top-by', 'top-add', 'top-variance' },
  options = {
    only_comm = { type = 'flag', help = 'print a row per comm, whatever the key' },
    interval = { default = '1s' },
  },

  start = function(opt, out, session)
    local list = events.list(opt.event)
    if #list == 0 then return nil, 'no events; select some with -e, such as -e sched:sched_switch' end
    local ok, keyed, named = top_columns.check(list, opt, out)
    if not ok then return nil, keyed end
    local columns, added = top_columns.values(list)
    local sums, lost, print_key = new_sums(columns, session), 0, nil

    local handlers = {}
    for _, event in ipairs(list) do
      handlers[event] = handler(sums, event, added[event], opt)
      print_key = print_key or session.key_printer(event, event.attrs.key or opt.key)
    end

    local shown, key_name, comm_name = top_columns.shown(columns, keyed, named, opt)
    local spec = tables.new('top', shown, { stamp = false })
    -- -vv prints events between the tables.
    local pages = screen.new(out, spec, top_columns.order(columns), opt.verbose > 1)
    local function report(is_last)
      local losses = lost > 0 and (', %d lost'):format(lost) or ''
      local title = ('profscript top - sample %d events%s'):format(sums.counts:counted(), losses)
      pages:report(rows_of(sums, key_name, comm_name, opt.only_comm, print_key), title, is_last)
      clear(sums)
    end
    handlers[1] = pages
    function handlers.interval() report(false) end
    function handlers.stop()
      report(true)
      local without = sums.counts:ignored()
      if sums.is_rounded then out:warn 'top: sums of 2^53 and more are rounded' end
      if without > 0 then out:warn(('top: ignored %d events without a key (division by zero)'):format(without)) end
    end
    function handlers.lost(gap) lost = lost + gap.lost end
    return handlers
  end,
}
