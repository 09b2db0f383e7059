-- SPDX-License-Identifier: GPL-2.0-only
--- SQL over events.
---
---   return sql.handlers { events = list, query = 'SELECT count(*) FROM sched_switch', memory = 2 ^ 28 }
local events = require 'lib.events'
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

--- Returns the handlers of the profiler sql; as a source of events, it only passes them on.
---@param opt table options of the profiler
---@param out Output
---@param session Session
---@return table? handlers nil: see message
---@return string? message
function sql.run(opt, out, session)
  if session.is_source then return { [opt.event] = function() end } end
  if not opt.query and not opt.output2 then
    return nil, '--query SQL says what to print, --output2 FILE keeps the events; give at least one of them'
  end
  local list = events.list(opt.event)
  if #list == 0 then return nil, 'no events; select some with -e' end
  if opt.verify and not opt.query then return nil, '--verify compares the results of --query' end
  if opt.verify and opt.output2 then out:warn 'sql: --verify has no effect with --output2' end
  return sql.handlers { events = list, query = opt.query, file = opt.output2, memory = opt.memory,
    verify = opt.verify and not opt.output2, by_interval = opt.interval ~= nil }
end

return sql
