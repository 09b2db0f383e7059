-- SPDX-License-Identifier: GPL-2.0-only
--- SQL over events.
---
---   local kept = sql.tables { events = list, query = 'SELECT count(*) FROM sched_switch', memory = 2 ^ 28 }
---   return { kept, interval = function(at) kept:report(at) end, stop = function(at) kept:finish(at) end,
---     lost = function(gap) kept:lost(gap) end }
local event_tables = require 'bindings.sql.event_tables'

local sql = {}

--- What is queried, and where its rows are.
---@class SqlTables
---@field events Event[]
---@field query? string SQL statements
---@field memory number bytes that kept events may take; the oldest are dropped beyond
---@field file? string a database file, to which the events are copied
---@field verify? boolean compare each result with that of copied rows
---@field by_interval boolean `report` is called during the run

--- Keeps events as tables for SQL. Only valid in start(). Put the result among the handlers.
---@param config SqlTables
---@return SqlTablesHandler
function sql.tables(config) return event_tables.handler(event_tables.new(config)) end

--- Kept events.
---@class SqlTablesHandler
---@field report fun(self: SqlTablesHandler, at: number) answers the queries and forgets the events
---@field finish fun(self: SqlTablesHandler, at: number) the same, for the last time
---@field lost fun(self: SqlTablesHandler, gap: table) notes what the handler `lost` gets

return sql
