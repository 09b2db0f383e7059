-- SPDX-License-Identifier: GPL-2.0-only
--- What task-state --than prints: a wait that was too long, and the events at its start and end. It is a module of its
--- own because a script that can print events needs all of their bytes, and BPF programs cannot tell some of them:
--- load it only with --than.
local tables = require 'lib.table'

local waits = {}

local ORDER = { 'time', 'pid', 'comm', 'state', 'ns' }

--- Returns a function that prints a wait. `ev` is the event at its end, if there is one.
---@param out Output
---@param session Session
---@param first fun(pid: integer, state: integer, since?: number): Ev? returns the event at which a state began
---@param names string[] of the states
---@return fun(pid: integer, state: integer, ns: number, ev?: Ev, since?: number) since: of a state that has not ended
function waits.printer(out, session, first, names)
  tables.record('task-state', ORDER)
  return function(pid, state, ns, ev, since)
    local word, name = names[state] == 'RD' and 'RUNDELAY' or 'WAIT', session.task_name(pid)
    if out.format == 'text' then
      out:stamp(nil, (' task-state: %d %s %s %.3f ms'):format(pid, name, word, ns / 1e6))
    else
      local time = out:seconds(ev and ev._time or session.now())
      out:record('task-state', { time = time, pid = pid, comm = name, state = names[state], ns = ns }, ORDER)
    end
    local from = first(pid, state, since)
    if from then out:print_event(from) end
    if ev then out:print_event(ev) end
  end
end

return waits
