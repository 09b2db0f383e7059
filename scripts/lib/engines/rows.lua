-- SPDX-License-Identifier: GPL-2.0-only
--- Rows of reports: what makes a row (--by), which process it is about, and which are printed (--top, --sort).
local failure = require 'bindings.base.failure'
local nearest = require 'lib.nearest'
local tables = require 'lib.table'

local rows = {}

--- Returns which labels make a row.
---@param by string the labels that --by lists
---@param labels string[] all labels
---@return table<string, boolean>
function rows.shown(by, labels)
  local shown = {}
  for _, label in ipairs(labels) do shown[label] = false end
  for word in by:gmatch '[^,]+' do
    if shown[word] == nil then failure.usage("--by: no column '%s'%s", word, nearest.hint(word, labels)) end
    shown[word] = true
  end
  return shown
end

--- Returns a process or thread as rows have it.
---@param session Session
---@param id integer
---@return string text 'cat (12)'
function rows.task(session, id) return ('%s (%d)'):format(session.task_name(id), id) end

--- Returns an average without fractions.
---@param sum number
---@param n number
---@return integer? mean nil: n is 0
function rows.mean(sum, n) return n > 0 and math.floor(sum / n) or nil end

--- Prints the first rows of a table: first in the order of --sort, or else in that of the list.
---@param out Output
---@param spec TableSpec
---@param list table[]
---@param top integer how many
---@param at? number time of the report
---@return table[] first those that are printed
function rows.print(out, spec, list, top, at)
  if out.sort then list = tables.sorted(spec, list, out.sort) end
  local first = {}
  for i = 1, math.min(#list, top) do first[i] = list[i] end
  out:table(spec, first, at)
  return first
end

return rows
