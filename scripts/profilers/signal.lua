-- SPDX-License-Identifier: GPL-2.0-only
--- Signals by sender and receiver.
local array = require 'lib.array'
local intern = require 'lib.intern'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'

local NAMES = {
  'HUP', 'INT', 'QUIT', 'ILL', 'TRAP', 'ABRT', 'BUS', 'FPE', 'KILL', 'USR1', 'SEGV', 'USR2', 'PIPE', 'ALRM', 'TERM',
  'STKFLT', 'CHLD', 'CONT', 'STOP', 'TSTP', 'TTIN', 'TTOU', 'URG', 'XCPU', 'XFSZ', 'VTALRM', 'PROF', 'WINCH', 'IO',
  'PWR', 'SYS',
}
-- The result field of signal_generate (enum in the kernel's include/trace/events/signal.h).
local RESULTS = { [0] = 'delivered', 'ignored', 'already pending', 'queue full', 'info lost' }
local FIRST_REALTIME = 32
local MAX_ROWS = 65536

local function name_of(number)
  if number >= FIRST_REALTIME then return 'RT' .. number - FIRST_REALTIME end
  return NAMES[number] or tostring(number)
end

return {
  summary = 'Count signals by sender and receiver, or print them',
  description = [[
With -p, -t or a workload, counts only signals that these threads send. --filter
takes the names of receiving tasks, or a filter of signal:signal_generate, such
as 'sig == 9'.

  $ profscript signal -- timeout -s USR1 0.1 sleep 9
  2026-11-22 11:29:11.414848
  signal sender comm    receiver comm    result    count
  ------ ------ ------- -------- ------- --------- -----
  CONT    14865 timeout    14866 sleep   ignored       2
  USR1    14865 timeout    14866 sleep   delivered     1
  USR1    14865 timeout    14866 sleep   ignored       1
  USR1    14865 timeout    14865 timeout ignored       1
  CONT    14865 timeout    14865 timeout ignored       1]],
  examples = {
    { 'profscript signal -i 1000', 'who signals whom, every second' },
    { "profscript signal --filter 'sig == 9 || sig == 15' --print", 'each SIGKILL and SIGTERM' },
    { "profscript signal --filter 'java,nginx*'", 'signals to tasks with these names' },
    { 'profscript signal -- sh -c "kill -USR1 \\$\\$"', 'signals that a command sends' },
  },
  unsupported = { 'event' },
  options = {
    print = { type = 'flag', help = 'print each signal instead of a table' },
    call_graph = { help = 'record the stacks of the signals that --print prints' },
    filter = { own = true, help = 'only signals to tasks with these names, or that match this filter' },
    user_callchain = {},
    kernel_callchain = {},
  },

  start = function(opt, out, session)
    local filter = opt.filter
    if filter and not filter:find '[=<>~!&|()]' then
      local names, message = task_filter.names(filter)
      if not names then return nil, message end
      filter = names.text 'comm'
    end
    local keys, counts = intern.new(4, MAX_ROWS), array.new(MAX_ROWS + 1)
    local spec = tables.new('signals', {
      { name = 'signal', align = 'left' },
      { name = 'sender', metric = 'label', align = 'right' },
      { name = 'sender_comm', title = 'comm', align = 'left' },
      { name = 'receiver', metric = 'label', align = 'right' },
      { name = 'receiver_comm', title = 'comm', align = 'left' },
      { name = 'result', align = 'left' },
      { name = 'count', metric = 'counter', align = 'right' },
    })
    local function print_and_clear()
      local rows = {}
      for id = 0, keys:count() - 1 do
        local sender, receiver = keys:part(id, 2), keys:part(id, 3)
        rows[id + 1] = {
          signal = name_of(keys:part(id, 1)),
          sender = sender, sender_comm = session.task_name(sender),
          receiver = receiver, receiver_comm = session.task_name(receiver),
          result = RESULTS[keys:part(id, 4)] or 'unknown',
          count = counts[id],
          id = id,
        }
        counts[id] = 0
      end
      table.sort(rows, function(a, b) return a.count > b.count or a.count == b.count and a.id < b.id end)
      if keys:overflow() > 0 then rows[#rows + 1] = { signal = '(other)', count = counts[keys.max] } end
      out:table(spec, rows)
      counts[keys.max] = 0
      keys:clear()
    end
    return {
      [task_filter.select('signal:signal_generate', filter)] = function(ev)
        if opt.print then
          out:print_event(ev)
        else
          local id = keys.id(ev.sig, ev._tid, ev.pid, ev.result)
          counts[id] = counts[id] + 1
        end
      end,
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
