-- SPDX-License-Identifier: GPL-2.0-only
--- Event filters: split between the kernel and the dispatch loop.
local expr = require 'bindings.expr.compile'
local failure = require 'bindings.base.failure'
local names = require 'bindings.base.number_names'
local probes = require 'bindings.select.probes'
local ranges = require 'bindings.expr.ranges'
local selector = require 'bindings.select.selector'
local trace_flags = require 'bindings.view.trace_flags'

local event_filter = {}

local IN_INTERRUPT = trace_flags.HARDIRQ + trace_flags.SOFTIRQ

--- Replaces names of system calls by their numbers: the kernel compares the field `id` with numbers only.
local function with_numbers(event, machine)
  if event.system ~= 'raw_syscalls' or not event.filter then return event.filter end
  return (event.filter:gsub('%f[%w_](id%s*[!=]=%s*)([%a_][%w_]*)', function(id, name)
    local nr = names.syscall_number(name, machine)
    return nr and id .. nr
  end))
end

--- Splits the event's filter: the kernel evaluates `kernel`, the dispatch loop evaluates `user`. The dispatch loop
--- evaluates all filters of a recording, and those of probe PMUs, whose fields the kernel's filters do not support.
---@param event Event
---@param all_user boolean the kernel evaluates nothing
---@param machine string of the events, as uname(2) spells it
---@return { kernel?: string, user?: Compiled, user_text?: string }
function event_filter.split(event, all_user, machine)
  local text = with_numbers(event, machine)
  if not text or text == '' then return {} end
  local what = { what = 'filter of ' .. event.name }
  local result, err
  if all_user or not event.tracepoint then
    local user
    user, err = expr.compile_filter(text, event.fields, what)
    if err and not err.kernel_only then
      user, err = expr.compile(text, event.fields, { form = 'filter', what = what.what })
    end
    result = user and { user = user, user_text = text }
  else
    result, err = expr.split_filter(text, event.fields, what)
    -- Parts may be left to user space only because the filter is too long for the kernel. Shorten it and try again.
    local folded = result and result.user and ranges.ranges(text)
    if folded then result = expr.split_filter(folded, event.fields, what) end
  end
  if not result then
    err.what = what.what
    if selector.attributes[text] then
      err.hint = ('attributes follow the filter: %s//%s/'):format(event.name, text)
    end
    if event.system == 'raw_syscalls' and not err.hint then
      err.hint = 'id is the number or the name of a system call'
    end
    failure.usage('%s%s', event.place or '', expr.caret(err))
  end
  return result
end

--- Returns the filter for the kernel.
---@param event Event
---@param own? integer[] threads to exclude, nil: none
---@return string?
function event_filter.for_kernel(event, own)
  local text = event.filters.kernel
  -- Exclude our own events, such as system calls and page faults: each would cause more of them. Keep scheduler events,
  -- because without our switches the times of other tasks would be wrong. Keep events in interrupts, which are not
  -- ours.
  local is_filtered = event.tracepoint and not event.strings or probes.is_probe(event.system)
  if own and is_filtered and event.system ~= 'sched' then
    local parts = {}
    for i, tid in ipairs(own) do parts[i] = ('common_pid != %d'):format(tid) end
    local others = table.concat(parts, ' && ')
    if #own > 1 then others = '(' .. others .. ')' end
    local ours = ('%s || common_flags & %d'):format(others, IN_INTERRUPT)
    if text then ours = '(' .. ours .. ')' end
    text = text and ('(%s) && %s'):format(text, ours) or ours
  end
  return text
end

return event_filter
