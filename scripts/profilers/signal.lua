-- SPDX-License-Identifier: GPL-2.0-only
--- Signals by sender and receiver.
local counter = require 'lib.counter'
local names = require 'lib.names'
local tables = require 'lib.table'
local task_filter = require 'lib.task_filter'

local FIRST_REALTIME = 32

local function name_of(number)
  return number < FIRST_REALTIME and names.signal(number):gsub('^SIG', '') or 'RT' .. number - FIRST_REALTIME
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
      local tasks, message = task_filter.names(filter)
      if not tasks then return nil, message end
      filter = tasks.text 'comm'
    end
    local counts = counter.new { 'signal', 'sender', 'receiver', 'result' }
    local spec = tables.new('signals', {
      { name = 'signal', align = 'left' },
      { name = 'sender', metric = 'label', align = 'right' },
      { name = 'sender_comm', title = 'comm', align = 'left' },
      { name = 'receiver', metric = 'label', align = 'right' },
      { name = 'receiver_comm', title = 'comm', align = 'left' },
      { name = 'result', align = 'left' },
      { name = 'count', metric = 'counter', align = 'right' },
    })
    local function print_counts()
      local rows = {}
      counts:each(function(count, signal, sender, receiver, result)
        rows[#rows + 1] = signal == '(other)' and { signal = signal, count = count } or {
          signal = name_of(signal),
          sender = sender, sender_comm = session.task_name(sender),
          receiver = receiver, receiver_comm = session.task_name(receiver),
          result = names.signal_result(result), count = count,
        }
      end)
      out:table(spec, rows)
    end
    local function print_and_clear()
      print_counts()
      counts:clear()
    end
    return {
      [task_filter.select('signal:signal_generate', filter)] = function(ev)
        if opt.print then
          out:print_event(ev)
        else
          counts:add(1, ev.sig, ev._tid, ev.pid, ev.result)
        end
      end,
      draw = print_counts,
      interval = print_and_clear,
      stop = print_and_clear,
    }
  end,
}
