-- SPDX-License-Identifier: GPL-2.0-only
--- Event counts by key, as a sorted table at each interval; on a terminal, as a screen. Longer than most profilers
--- because of the combinations of keys, names and columns that events may have, and the screen.
local array = require 'lib.array'
local events = require 'lib.events'
local intern = require 'lib.intern'
local screen = require 'lib.screen'
local tables = require 'lib.table'

local MAX_ROWS = 65536 -- all further keys share one row

--- Returns true and the first events with a key and with comm=; nil and a message if they do not fit together.
local function check_keys(list, opt, out)
  local keyed, named
  for _, event in ipairs(list) do
    keyed = keyed or (event.attrs.key or opt.key) and event
    named = named or event.attrs.comm and event
  end
  local key = keyed and (keyed.attrs.key or opt.key)
  for _, event in ipairs(list) do
    if keyed and not (event.attrs.key or opt.key) and not key:match '[pt]id$' then
      out:warn(('top: %s has no key= and is counted by thread, but %s by %s'):format(event.name, keyed.name, key))
    end
    if opt.only_comm and (keyed or named) and not event.attrs.comm then
      return nil, ('--only-comm: %s has no comm='):format(event.name)
    end
  end
  if opt.only_comm and keyed and not named then return nil, '--only-comm: no event has comm=' end
  return true, keyed, named
end

--- Returns the columns of values, in the order of the command line, and for each event its columns.
local function value_columns(list)
  local columns, added = {}, {}
  local function add(event, text, is_first)
    local title = #added[event] == 0 and event.attrs.alias or text or event.alias
    columns[#columns + 1] = { at = #columns, title = title:upper(), value = text, first = is_first }
    table.insert(added[event], columns[#columns])
  end
  for _, event in ipairs(list) do
    added[event] = {}
    for _, attr in ipairs(event.given) do
      if attr.name == 'top-by' or attr.name == 'top-add' then add(event, attr.value, attr.name == 'top-by') end
    end
    if #added[event] == 0 then add(event, nil, false) end
  end
  return columns, added
end

--- Returns a unique name for a column, for JSON and CSV.
local function unique(names, wanted)
  local name, n = wanted:lower(), 1
  while names[name] or name == 'table' or name == 'time' do
    n = n + 1
    name = ('%s#%d'):format(wanted:lower(), n)
  end
  names[name] = true
  return name
end

return {
  summary = 'Count events by key, sorted, like top(1)',
  description = [[
Rows are the values of key= (or -k). Columns are the numbers of events, or the
sums of top-by= and top-add=. Without a key, a row is the thread in whose
context the event happened:

  key   comm  a row is
  no    no    a thread, and its name
  no    yes   a thread; with --only-comm a comm
  yes   no    a key
  yes   yes   a key, with the comm of its first event; with --only-comm a comm

An event without a key among events with one is counted for its thread, so the
keys of the others should be threads, too.

Rows are sorted by the top-by= columns, then by the others, then by the key. On
a terminal the table is a screen: < and > (or the arrow keys) select the column
to sort by, r reverses the order, q quits.

  $ profscript top -m 1024 -e sched:sched_stat_runtime//key=pid/comm=comm/top-by=runtime/ --duration 1
  2026-11-22 11:29:41.855395 profscript top - sample 11673 events
       PID      RUNTIME COMM
  -------- ------------ ---------------
     18788    300709339 perf-exec
     18783    237808041 bash
     18665    226971072 usdt_test
     18838    210034455 profscript
     18588    113093513 awk
  ...]],
  examples = {
    { 'profscript top -e sched:sched_wakeup//key=pid/comm=comm/,sched:sched_switch//key=prev_pid/comm=prev_comm/',
      'wakeups and switches by task' },
    { 'profscript top -e sched:sched_stat_runtime//key=pid/comm=comm/top-by=runtime/ -i 5000', 'runtime by task (ns)' },
    { 'profscript top -e raw_syscalls:sys_enter -k id --duration 5', 'system calls by number' },
    { "profscript top -e 'kmem:kmalloc//top-by=bytes_alloc/comm=ksymbol(call_site)/' --only-comm",
      'bytes allocated, by function' },
    { [[profscript top -e irq:softirq_entry//printkey='printf("cpu%d vec%d",key>>16,key&0xffff)'/ -k '(_cpu<<16)|vec']],
      'a key of two values' },
  },
  attributes = { 'key', 'comm', 'printkey', 'top-by', 'top-add' },
  options = {
    only_comm = { type = 'flag', help = 'print a row per comm, whatever the key' },
    interval = { default = '1s' },
  },

  start = function(opt, out, session)
    local list = events.list(opt.event)
    if #list == 0 then return nil, 'no events; select some with -e, such as -e sched:sched_switch' end
    local ok, keyed, named = check_keys(list, opt, out)
    if not ok then return nil, keyed end
    local columns, added = value_columns(list)
    local width, only_comm = #columns, opt.only_comm
    local keys, values, names = intern.new(1, MAX_ROWS), array.new((MAX_ROWS + 1) * width), {}
    local counts, lost, print_key = session.tally { keys = keys, names = names }, 0, nil

    local handlers = {}
    for _, event in ipairs(list) do
      local key, comm, sums = event.attrs.key or opt.key, event.attrs.comm, {}
      for i, column in ipairs(added[event]) do
        sums[i] = { into = values, width = width, at = column.at, value = column.value }
      end
      local name = comm or not key and '_comm' or nil
      if only_comm then key, name = comm or '_comm', nil end
      handlers[event] = counts:add(event, { key = { key }, thread = not key, name = name, sums = sums })
      print_key = print_key or session.key_printer(event)
    end

    local comm_title = named and named.attrs.comm or 'comm'
    local key_text, taken = keyed and (keyed.attrs.key or opt.key) or 'pid', {}
    local key_name, comm_name = unique(taken, key_text), unique(taken, comm_title)
    local shown = {
      { name = key_name, title = key_text:upper(), width = 8, align = 'right', show = not only_comm, metric = 'label' },
    }
    for i, column in ipairs(columns) do
      column.name = unique(taken, column.title)
      shown[i + 1] = { name = column.name, title = column.title, width = math.max(12, #column.title), align = 'right',
        metric = 'counter' }
    end
    shown[#shown + 1] = {
      name = comm_name, title = comm_title:upper(), align = 'left', show = only_comm or not keyed or named ~= nil,
    }
    local spec = tables.new('top', shown, { stamp = false })

    -- The top-by columns, then the others.
    local order = {}
    for _, first in ipairs { true, false } do
      for _, column in ipairs(columns) do
        if column.first == first then order[#order + 1] = column.name end
      end
    end
    local function rows()
      local result = {}
      for i = 0, keys:count() - (keys:overflow() > 0 and 0 or 1) do
        local id = i < keys:count() and i or keys.max
        local value = keys:part(id, 1)
        local row = { key = value, [comm_name] = only_comm and value or names[id] }
        row[key_name] = value and print_key and type(value) ~= 'string' and print_key(value) or value or '(other)'
        for at, column in ipairs(columns) do row[column.name] = values[id * width + at - 1] end
        result[#result + 1] = row
      end
      return result
    end
    local function clear()
      for i = 0, keys:count() * width - 1 do values[i] = 0 end
      for i = keys.max * width, keys.max * width + width - 1 do values[i] = 0 end
      keys:clear()
      for id in pairs(names) do names[id] = nil end
    end

    local pages = screen.new(out, spec, order, opt.verbose > 1) -- -vv prints events between the tables
    local function title()
      local losses = lost > 0 and (', %d lost'):format(lost) or ''
      return ('profscript top - sample %d events%s'):format(counts:counted(), losses)
    end
    local function report(is_last)
      pages:report(rows(), title(), is_last)
      clear()
    end
    handlers.interval = function() report(false) end
    handlers.stop = function()
      report(true)
      local without = counts:ignored()
      if without > 0 then out:warn(('top: ignored %d events without a key (division by zero)'):format(without)) end
    end
    handlers.lost = function(gap) lost = lost + gap.lost end
    handlers[1] = pages
    return handlers
  end,
}
