-- SPDX-License-Identifier: GPL-2.0-only
--- Filters that select tasks, by name or by priority, as text for the kernel and as a question about one task.
local glob = require 'lib.glob'
local priorities = require 'bindings.base.priorities'

local task_filter = {}

---@class TaskFilter
---@field text fun(field: string): string the filter of an event whose field is the name, or the priority
---@field has fun(value: string|integer): boolean whether a task of this name, or priority, passes

--- Tasks by name, as --filter takes them: "java,python*".
---@param names string separated by commas; each may have *, ? and [...]
---@return TaskFilter? filter
---@return string? message
function task_filter.names(names)
  local list, patterns = {}, {}
  for name in names:gmatch '[^,]+' do
    if name:find '["\\]' then return nil, ('a name with a quote or a backslash: %s'):format(name) end
    list[#list + 1], patterns[#patterns + 1] = name, glob.pattern(name)
  end
  if #list == 0 then return nil, '--filter needs names of tasks, such as java,python*' end
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

--- Tasks by the kernel's priorities, as --prio takes them: "0-99,120".
---@param text string
---@return TaskFilter? filter
---@return string? message
function task_filter.priorities(text)
  local list, message = priorities.parse(text)
  if not list then return nil, message end
  local has = list.has
  return {
    text = function(field)
      local terms = {}
      for i, range in ipairs(list.ranges) do
        terms[i] = ('%s >= %d && %s <= %d'):format(field, range[1], field, range[2])
      end
      return table.concat(terms, ' || ')
    end,
    has = function(priority) return has[priority] == true end,
  }
end

--- The filter that lets through what passes all of the filters, of which each may be nil.
---@param ... string?
---@return string?
function task_filter.all(...)
  local terms = {}
  for i = 1, select('#', ...) do terms[#terms + 1] = (select(i, ...)) end
  if #terms < 2 then return terms[1] end
  return '(' .. table.concat(terms, ') && (') .. ')'
end

--- The key of a handler for the events that pass all of the filters.
---@param event string
---@param ... string?
---@return string
function task_filter.select(event, ...)
  local filter = task_filter.all(...)
  return filter and ('%s/"%s"/'):format(event, (filter:gsub('["\\]', '\\%0'))) or event
end

return task_filter
