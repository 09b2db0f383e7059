-- SPDX-License-Identifier: GPL-2.0-only
--- Filters of tasks by name or priority, as kernel filter text and as a function.
---
---   local filter = task_filter.names(opt.filter)
---   local key = task_filter.select('sched:sched_switch', filter.text 'next_comm')
---   return { [key] = function(ev) ... end }
local glob = require 'lib.glob'
local priorities = require 'bpf.run.priorities'

local task_filter = {}

---@class TaskFilter
---@field text fun(field: string): string returns the kernel filter for a field that is a task's name or priority
---@field has fun(value: string|integer): boolean returns whether a name or priority passes

--- Creates a filter from names: 'java,python*'.
---@param names string separated by commas; may contain *, ? and [...]
---@return TaskFilter? filter nil: see message
---@return string? message
function task_filter.names(names)
  local list, patterns = {}, {}
  for name in names:gmatch '[^,]+' do
    if name:find '["\\]' then
      return nil, ("'%s': task names with quotes or backslashes are not supported"):format(name)
    end
    list[#list + 1], patterns[#patterns + 1] = name, glob.pattern(name)
  end
  if #list == 0 then return nil, '--filter requires task names, such as java,python*' end
  return {
    text = function(field)
      local terms = {}
      for i, name in ipairs(list) do
        terms[i] = ('%s %s "%s"'):format(field, name:find '[*?[]' and '~' or '==', name)
      end
      return table.concat(terms, ' || ')
    end,
    has = function(name)
      for _, pattern in ipairs(patterns) do
        if name:match(pattern) then return true end
      end
      return false
    end,
  }
end

--- Creates a filter from kernel priorities: '0-99,120'.
---@param text string
---@return TaskFilter? filter nil: see message
---@return string? message
function task_filter.priorities(text)
  local list, message = priorities.parse(text)
  if not list then return nil, message end
  local has = list.has
  return {
    text = function(field)
      local terms = {}
      for i, range in ipairs(list.ranges) do
        terms[i] = ('%s >= %d && %s <= %d'):format(field, range.first, field, range.last)
      end
      return table.concat(terms, ' || ')
    end,
    has = function(priority) return has[priority] == true end,
  }
end

--- Combines kernel filters with a logical and.
---@param ... string? may be nil, which passes everything
---@return string?
function task_filter.all(...)
  local terms = {}
  for i = 1, select('#', ...) do terms[#terms + 1] = (select(i, ...)) end
  if #terms < 2 then return terms[1] end
  return '(' .. table.concat(terms, ') && (') .. ')'
end

--- Returns the handler key of an event with filters.
---@param event string
---@param ... string? kernel filters, of which all must pass
---@return string
function task_filter.select(event, ...)
  local filter = task_filter.all(...)
  return filter and ('%s/"%s"/'):format(event, (filter:gsub('["\\]', '\\%0'))) or event
end

return task_filter
