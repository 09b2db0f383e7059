-- SPDX-License-Identifier: GPL-2.0-only
--- Event filters: split between the kernel and the dispatch loop.
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local probes = require 'bindings.select.probes'
local ranges = require 'bindings.expr.ranges'
local selector = require 'bindings.select.selector'
local trace_flags = require 'bindings.view.trace_flags'

local event_filter = {}

local IN_INTERRUPT = trace_flags.HARDIRQ + trace_flags.SOFTIRQ

--- Splits the event's filter: the kernel evaluates `kernel`, the dispatch loop evaluates `user`. The dispatch loop
--- evaluates all filters of a recording, and those of probe PMUs, whose fields the kernel's filters do not support.
---@param event Event
---@param all_user boolean the kernel evaluates nothing
---@return { kernel?: string, user?: Compiled, user_text?: string }
function event_filter.split(event, all_user)
  if not event.filter or event.filter == '' then return {} end
  local what = { what = 'filter of ' .. event.name }
  local result, err
  if all_user or not event.tracepoint then
    local user
    user, err = expr.compile_filter(event.filter, event.fields, what)
    if err and not err.kernel_only then
      user, err = expr.compile(event.filter, event.fields, { form = 'filter', what = what.what })
    end
    result = user and { user = user, user_text = event.filter }
  else
    result, err = expr.split_filter(event.filter, event.fields, what)
    -- Parts may be left to user space only because the filter is too long for the kernel. Shorten it and try again.
    local folded = result and result.user and ranges.ranges(event.filter)
    if folded then result = expr.split_filter(folded, event.fields, what) end
  end
  if not result then
    err.what = what.what
    if selector.attributes[event.filter] then
      err.hint = ('attributes follow the filter: %s//%s/'):format(event.name, event.filter)
    end
    failure.usage('%s', expr.caret(err))
  end
  return result
end

--- Returns the filter for the kernel.
---@param event Event
---@param own_pid? integer process to exclude, nil: none
---@return string?
function event_filter.for_kernel(event, own_pid)
  local text = event.kernel_filter
  -- Exclude our own events, such as system calls and page faults: each would cause more of them. Keep scheduler events,
  -- because without our switches the times of other tasks would be wrong. Keep events in interrupts, which are not
  -- ours.
  if own_pid and (event.tracepoint or probes.is_probe(event.system)) and event.system ~= 'sched' then
    local own = ('common_pid != %d || common_flags & %d'):format(own_pid, IN_INTERRUPT)
    if text then own = '(' .. own .. ')' end
    text = text and ('(%s) && %s'):format(text, own) or own
  end
  return text
end

return event_filter
