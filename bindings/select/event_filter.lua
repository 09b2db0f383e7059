-- SPDX-License-Identifier: GPL-2.0-only
--- The filter of an event: what the kernel evaluates of it, and what the dispatch loop does.
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local probes = require 'bindings.select.probes'
local ranges = require 'bindings.expr.ranges'
local selector = require 'bindings.select.selector'
local trace_flags = require 'bindings.view.trace_flags'

local event_filter = {}

local IN_INTERRUPT = trace_flags.HARDIRQ + trace_flags.SOFTIRQ

--- Divides the event's filter: `kernel` is text for the kernel, `user` what the dispatch loop
--- evaluates. A recording's filters are all ours, as are those of the probe PMUs, whose own fields
--- the kernel's filters do not know.
---@param event Event
---@param all_ours boolean the kernel can evaluate nothing
---@return { kernel?: string, user?: Compiled, user_text?: string }
function event_filter.split(event, all_ours)
  if not event.filter or event.filter == '' then return {} end
  local what = { what = 'filter of ' .. event.name }
  local result, err
  if all_ours or not event.tracepoint then
    local user
    user, err = expr.compile_filter(event.filter, event.fields, what)
    if err and not err.kernel_only then
      user, err = expr.compile(event.filter, event.fields, { form = 'filter', what = what.what })
    end
    result = user and { user = user, user_text = event.filter }
  else
    result, err = expr.split_filter(event.filter, event.fields, what)
    -- What did not go to the kernel may only have been too long for it.
    local folded = result and result.user and ranges.ranges(event.filter)
    if folded then result = expr.split_filter(folded, event.fields, what) end
  end
  if not result then
    err.what = what.what
    if selector.attributes[event.filter] then
      err.hint = ('attributes stand behind the filter: %s//%s/'):format(event.name, event.filter)
    end
    failure.usage('%s', expr.caret(err))
  end
  return result
end

--- The filter that the kernel gets.
---@param event Event
---@param own_pid? integer process to leave out, nil: none
---@return string?
function event_filter.for_kernel(event, own_pid)
  local text = event.kernel_filter
  -- A switch to or from ourselves matters to the others: leaving it out would falsify their
  -- times. What we do ourselves (system calls, page faults) is noise that feeds itself; what an
  -- interrupt does meanwhile is not ours.
  if own_pid and (event.tracepoint or probes.is_probe(event.system)) and event.system ~= 'sched' then
    local own = ('common_pid != %d || common_flags & %d'):format(own_pid, IN_INTERRUPT)
    if text then own = '(' .. own .. ')' end
    text = text and ('(%s) && %s'):format(text, own) or own
  end
  return text
end

return event_filter
