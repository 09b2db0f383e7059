-- SPDX-License-Identifier: GPL-2.0-only
--- Events that also happen in interrupts, in a run of named threads. The kernel gives an event to the task that the
--- interrupt has hit, whomever it is about: a TCP segment of a command may be sent again by a timer in the time of
--- another task, or of none. Such events are missing, and events about others may be among those that are there.
local interrupts = {}

local SYSTEMS = { net = true, napi = true, skb = true, sock = true, tcp = true, udp = true, qdisc = true, irq = true,
  irq_vectors = true, irq_matrix = true, timer = true, xdp = true }
local EVENTS = { ['block:block_rq_complete'] = true, ['block:block_bio_complete'] = true,
  ['block:block_rq_error'] = true }

--- Returns whether an event may happen in interrupts, as far as that is known.
---@param name string
---@return boolean
function interrupts.may_hold(name) return EVENTS[name] or SYSTEMS[name:match '^([^:]*):' or ''] or false end

--- Says which events of a run may be missing.
---@param run Run
function interrupts.warn(run)
  if run.is_recorded or run.everywhere or not run.per_thread then return end
  local found, n = nil, 0
  for _, event in ipairs(run.events:shown()) do
    if interrupts.may_hold(event.name) and not event.machine then
      found, n = found or event.name, n + 1
    end
  end
  if not found then return end
  local others = n > 1 and (' (and %d more)'):format(n - 1) or ''
  run.out:warn(('%s: %s%s also happens in interrupts, which hit any task: those that were in the time of other tasks '
    .. 'are missing, even if they are about the threads selected; without a command, -p or -t all are there'):format(
    run.name, found, others))
end

return interrupts
