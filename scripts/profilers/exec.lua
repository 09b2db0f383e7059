-- SPDX-License-Identifier: GPL-2.0-only
--- One-liners: runs Lua code for each event.
local events = require 'lib.events'
local oneliner = require 'lib.engines.oneliner'
local tables = require 'lib.table'

return {
  summary = 'Run Lua code for each event: count, sum, histogram or print',
  description = [[
The code runs with the event as `ev` and these functions:

]] .. oneliner.help() .. '\n' .. [[
There can be up to four keys; the key `stack` is the event's stack. As in perf
report, stacks of the same functions are one key, wherever in the functions they
were; the addresses printed are those of the most frequent one. Aggregations are
printed at each interval and at the end.

Names that the code assigns keep their values between events; they are nil at
first. --begin and --end run before the first event and at the end of the run.]],
  examples = {
    { "profscript exec -e raw_syscalls:sys_exit 'hist(ev.ret)' -- ls -R /usr", 'return values of system calls' },
    { "profscript exec -e sched:sched_switch 'count(ev.next_comm)' -i 1000", 'switches by task, every second' },
    { "profscript exec -e sched:sched_switch 'count(stack, ev._comm)' --duration 1", 'stacks of context switches' },
    { "profscript exec -e sched:sched_wakeup --begin 'at = {}' 'at[ev.pid] = ev._time' --end 'print(#at)'",
      'keep values between the events' },
    { "profscript exec -e raw_syscalls:sys_enter 'if ev.id == 59 then print(ev._comm) end'", 'who starts programs' },
  },
  options = {
    begin = { type = 'string', argument = 'LUA', help = 'code to run before the first event' },
    ['end'] = { type = 'string', argument = 'LUA', help = 'code to run at the end, before the tables' },
  },
  positional = {
    { name = 'lua', type = 'string', required = true, help = 'Lua code to run for each event' },
  },

  start = function(opt, out, session)
    local program, message = oneliner.compile(opt.lua, session)
    if not program then return nil, message end
    if program.has_stacks then session.want { stacks = true } end
    local env = setmetatable(program.env, { __index = _G })
    tables.record('print', { 'text' })
    env.print = function(...) out:print(...) end
    env.printf = function(...) out:printf(...) end
    local code
    code, message = oneliner.load({ opt.begin or '', program.source, opt['end'] or '' }, env)
    if not code then return nil, message end
    local begin, on_event, at_end = unpack(code)
    begin()
    local handlers = {
      interval = function()
        program:print(out)
        program:clear()
        session.forget_stacks()
      end,
      stop = function()
        at_end()
        program:print(out)
      end,
    }
    for _, event in ipairs(events.list(opt.event)) do handlers[event] = program:count(session, event, on_event) end
    return handlers
  end,
}
