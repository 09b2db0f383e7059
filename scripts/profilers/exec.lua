-- SPDX-License-Identifier: GPL-2.0-only
--- One-liners: runs Lua code for each event.
local events = require 'lib.events'
local oneliner = require 'lib.engines.oneliner'

return {
  summary = 'Run Lua code for each event: count, sum, histogram or print',
  description = [[
The code runs with the event as `ev` and these functions:

]] .. oneliner.help() .. '\n' .. [[
There can be up to four keys; the key `stack` is the event's stack, and stacks of
the same functions are one key. Aggregations are printed at each interval and at
the end, largest first; --sort and --top choose.

Names that the code assigns keep their values between events; they are nil at
first. --begin and --end run before the first event and at the end of the run.
`session` and `names` are those of scripts. Words of bpftrace work, such as comm,
args->ret, str() and @x[comm] = count(); a message says what to write for others.]],
  examples = {
    { "profscript exec -e raw_syscalls:sys_exit 'hist(ev.ret)' -- ls -R /usr", 'return values of system calls' },
    { "profscript exec -e raw_syscalls:sys_enter 'count(syscall(ev.id))' --top 5 -i 1s", 'the five most frequent' },
    { "profscript exec -e sched:sched_switch 'count(stack, ev._comm)' --duration 1", 'stacks of context switches' },
    { "profscript exec -e sched:sched_process_fork --begin 'n = 0' 'n = n + 1' --end 'print(n)'",
      'keep a value between the events' },
  },
  options = {
    begin = { type = 'string', argument = 'LUA', help = 'code to run before the first event' },
    ['end'] = { type = 'string', argument = 'LUA', help = 'code to run at the end, before the tables' },
    top = { type = 'integer', min = 1, argument = 'N', help = 'print only the first N entries of each table' },
    sort = {}, -- also by 'key' and 'value'
  },
  positional = {
    { name = 'lua', type = 'string', required = false, help = 'Lua code to run for each event' },
  },

  start = function(opt, out, session)
    if not opt.lua and not opt.begin then return nil, 'missing LUA: Lua code to run for each event' end
    if opt.lua and opt.lua:find '^[%w_*]+:[%w_*]+$' then
      return nil, ("events stand after -e: profscript exec -e %s CODE"):format(opt.lua)
    end
    local program, message = oneliner.compile(opt.lua or '', session, { opt.begin or '', opt['end'] or '' })
    message = message or program:refuses_sort(opt.sort)
    if message then return nil, message end
    if program.stacks then session.want { stacks = true, stack_part = program.stack_part } end
    local code
    code, message = oneliner.load({ program.source, unpack(program.others) },
      setmetatable(program.env, { __index = oneliner.globals(session, out, _G) }))
    if not code then return nil, message end
    local on_event, begin, at_end = unpack(code)
    local settings = { limit = opt.top, sort = opt.sort }
    begin()
    local handlers = {
      interval = function()
        program:print(out, settings)
        program:clear()
        session.forget_stacks()
      end,
      draw = function() program:print(out, settings) end,
      stop = function()
        at_end()
        program:print_maps(program.env.print, opt.top)
        program:print(out, settings)
      end,
    }
    local list = events.list(opt.event)
    if not opt.lua then
      list = { session.event { 'dummy' } }
      session.stop()
    end
    for _, event in ipairs(list) do
      if program.resolves then event:set { resolve = true } end
      handlers[event] = program:count(session, event, on_event)
    end
    return handlers
  end,
}
