-- SPDX-License-Identifier: GPL-2.0-only
-- Checks the events in overwritten rings: the calls of one workloads/syscalls, -e, have consecutive numbers, and each
-- CPU leaves the softirq that it has entered, unless events between them were lost. Prints the number of dumps, the
-- calls and the other events, the last call, the places where events are missing without a loss, and the events out of
-- order.
return {
  summary = 'Check that overwritten rings have all events of a time',
  options = { overwrite = { type = 'flag', help = 'the rings are overwritten' } },
  start = function(opt, out)
    local dumps, calls, others, broken, early, last = 0, 0, 0, 0, 0, 0
    local breaks, losses, number, vectors = 0, 0, nil, {} -- of this dump
    local final
    local function look(ev, is_next)
      if ev._time < last then early = early + 1 end
      last = ev._time
      if not is_next then breaks = breaks + 1 end
    end
    local function end_of_dump()
      if number or next(vectors) then dumps = dumps + 1 end
      broken = broken + math.max(breaks - losses, 0)
      breaks, losses, number, vectors = 0, 0, nil, {}
    end
    return {
      [opt.event[1][1]] = function(ev)
        local this = tonumber(ev.args[0])
        look(ev, not number or this == number + 1)
        calls, number, final = calls + 1, this, this
      end,
      ['irq:softirq_entry'] = function(ev)
        look(ev, (vectors[ev._cpu] or -1) == -1)
        others, vectors[ev._cpu] = others + 1, ev.vec
      end,
      ['irq:softirq_exit'] = function(ev)
        look(ev, (vectors[ev._cpu] or ev.vec) == ev.vec)
        others, vectors[ev._cpu] = others + 1, -1
      end,
      lost = function() losses = losses + 2 end, -- of calls and of softirqs
      interval = end_of_dump,
      stop = function()
        end_of_dump()
        out:print(('%d dumps, %d calls, %d others, last %s, %d broken, %d early'):format(dumps, calls, others,
          tostring(final), broken, early))
      end,
    }
  end,
}
