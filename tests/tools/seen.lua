-- SPDX-License-Identifier: GPL-2.0-only
-- Counts the events of -e, the lost ones, and those that were older than the event before; per event with --slow it
-- wastes so many microseconds, so that rings overflow.

return {
  summary = 'Count events and lost ones',
  options = { slow = { type = 'integer', default = 0, help = 'waste N microseconds per event' } },
  start = function(opt, out, session)
    local seen, lost, early, last = 0, 0, 0, 0
    local handlers = {
      lost = function(gap) lost = lost + gap.lost end,
      stop = function() out:print(('%d seen, %d lost, %d early'):format(seen, lost, early)) end,
    }
    for _, group in ipairs(opt.event) do
      for _, event in ipairs(group) do
        handlers[event] = function(ev)
          local time = ev._time
          seen = seen + 1
          if time < last then early = early + 1 end
          last = time
          if opt.slow > 0 then
            local stop = session.now() + opt.slow * 1000
            while session.now() < stop do end
          end
        end
      end
    end
    return handlers
  end,
}
