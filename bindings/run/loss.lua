-- SPDX-License-Identifier: GPL-2.0-only
--- Loss: counts the lost events of a run, reports them to the user and passes them to the script.
local failure = require 'bindings.base.failure'

local loss = {}

local REPORT_EVERY = 1e9 -- ns of event time between two lines

---@class Loss
---@field total integer records lost so far
local Loss = {}
Loss.__index = Loss

---@param name string the profiler's name
---@param opt table parsed options
---@param out Output
---@return Loss
function loss.new(name, opt, out)
  return setmetatable({ total = 0, _name = name, _opt = opt, _out = out, _unreported = 0, _reported_at = -math.huge },
    Loss)
end

--- Sets the script's handler, called for each loss.
---@param handler? fun(gap: { lost: integer, from: number, to: number, cpu?: integer, tid?: integer })
function Loss:set_handler(handler) self._handler = handler end

local function events_text(n) return ('%d event%s'):format(n, n == 1 and '' or 's') end

local function where(e)
  return e.cpu >= 0 and 'CPU #' .. e.cpu or e.tid >= 0 and 'thread #' .. e.tid or 'an unknown CPU'
end

--- Counts a loss. With -v it is reported immediately, otherwise together with others of the same second.
---@param e ffi.cdata* struct event *, an EVENT_LOST
function Loss:note(e)
  local n, opt = tonumber(e.period), self._opt
  if n == 0 then
    self._out:warn(('%s: CPU #%d came online; its events before %.3f s are missing'):format(self._name, e.cpu,
      tonumber(e.key) / 1e9))
  end
  self.total = self.total + n
  if opt.lost ~= 'ignore' then self._unreported = self._unreported + n end
  if n > 0 and opt.lost == 'error' then
    failure.raise('%s: lost %s; stopped because of --lost=error', self._name, events_text(n))
  end
  if opt.verbose >= 1 and n > 0 and opt.lost ~= 'ignore' then
    self._out:warn(('%s: lost %s on %s'):format(self._name, events_text(n), where(e)))
  elseif e.time - self._reported_at >= REPORT_EVERY then
    self._reported_at = e.time
    self:report()
  end
  if self._handler then
    self._handler {
      lost = n,
      from = e.time,
      to = tonumber(e.key),
      cpu = e.cpu >= 0 and e.cpu or nil,
      tid = e.tid >= 0 and e.tid or nil,
    }
  end
end

--- Prints a line about the losses since the last line, if there are any.
function Loss:report()
  if self._unreported == 0 then return end
  if self._opt.verbose < 1 then
    self._out:warn(('%s: lost %s (%d in total)'):format(self._name, events_text(self._unreported), self.total))
  end
  self._unreported = 0
end

--- Suggests how to lose fewer events, at the end of a live run with losses.
function Loss:advise()
  local opt = self._opt
  if self.total == 0 or opt.lost ~= 'warn' or opt.quiet then return end
  self._out:warn(('%s: to lose fewer events, use larger ring buffers (-m %d)%s or a filter'):format(self._name,
    opt.mmap_pages * 4, opt.realtime and '' or ', -r 1'))
end

return loss
