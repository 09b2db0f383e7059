-- SPDX-License-Identifier: GPL-2.0-only
--- SQL over events.
---
---   return sql.handlers { events = list, query = 'SELECT count(*) FROM sched_switch', memory = 2 ^ 28 }
local event_tables = require 'lib.sql.event_tables'

local sql = {}

--- What is queried, and where its rows are.
---@class SqlTables
---@field events Event[]
---@field query? string SQL statements
---@field memory number bytes that kept events may take; the oldest are dropped beyond
---@field file? string a database file, to which the events are copied
---@field verify? boolean compare each result with that of copied rows
---@field by_interval? boolean answer the queries at each interval, too

--- Returns the handlers of a profiler that keeps events as tables for SQL. Only valid in start().
---@param config SqlTables
---@return table handlers
function sql.handlers(config)
  local kept = event_tables.handler(event_tables.new(config))
  return {
    kept,
    lost = function(gap) kept:lost(gap) end,
    interval = function(at) kept:report(at) end,
    stop = function(at) kept:finish(at) end,
  }
end

return sql
