-- SPDX-License-Identifier: GPL-2.0-only
--- RowQuery: SQL on the rows that a profiler prints (--query). The rows of a report become those of ordinary tables,
--- which are queried and emptied at the end of each interval and of the run. All rows come through the output
--- (Output:collect), whatever prints them.
local ffi = require 'ffi'
local databases = require 'lib.sql.database'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local printer = require 'bindings.print.printer'
local results = require 'lib.sql.results'
local tables = require 'bindings.base.table'
local units = require 'bindings.base.units'

local C = ffi.C
local literal, quoted = databases.literal, databases.quoted
local row_queries = {}

local AT_ONCE = 100 -- rows of an INSERT
local MAX_ROWS = 1e6 -- of a report

--- A table of the database.
---@class RowTable
---@field name string in SQL
---@field columns table<string, string> names in SQL by name
---@field taken table<string, boolean> these names in lower case, because SQL ignores case
---@field order string[] the keys of columns in the order of the table

---@class RowQuery : Follower
local RowQuery = {}
RowQuery.__index = RowQuery

--- Collects the rows of a run.
---@param run Run
---@return RowQuery
function row_queries.new(run)
  local self = setmetatable({ _profiler = run.name, _run = run, _out = run.out, _session = run.session,
    _sql = run.opt.query, _tables = {}, _list = {}, _declared = {}, _rows = 0, _left_out = 0 }, RowQuery)
  run.out:collect(function(name, names, rows, time) self:_add(name, names, rows, time) end)
  self._sees = function(name, columns, spec) self:_declare(name, columns, spec) end
  tables.listen(self._sees)
  return self
end

--- Returns the name of a table in SQL: without the system of an event, and without what SQL would have to quote.
local function sql_name(name)
  name = name:match '^[%w_-]+:([%w_-]+)$' or name
  name = name:gsub('[^%w_]+', '_'):gsub('(.)_+$', '%1')
  return name:match '^%d' and '_' .. name or name
end

--- Returns the table of rows with these columns, which get a place in it.
---@param spec? TableSpec which may say the units of columns
---@return RowTable
function RowQuery:_table(name, names, has_time, spec)
  local key = sql_name(name):lower()
  local one = self._tables[key]
  if not one then
    one = { name = sql_name(name), columns = {}, taken = {}, order = {} }
    self._tables[key], self._list[#self._list + 1] = one, one
  end
  local function add(column)
    if one.columns[column] then return end
    local unique, n = column, 1
    while one.taken[unique:lower()] do
      n = n + 1
      unique = ('%s_%d'):format(column, n)
    end
    one.taken[unique:lower()], one.columns[column], one.order[#one.order + 1] = true, unique, column
    self._db:exec(#one.order == 1 and 'CREATE TABLE %s (%s)' or 'ALTER TABLE %s ADD COLUMN %s', quoted(one.name),
      quoted(unique))
    local unit = units.of(spec and tables.column(spec, column) or { name = column })
    if unit then
      self._db:exec('INSERT INTO column_units VALUES (%s, %s, %s)', literal(one.name), literal(unique), literal(unit))
    end
  end
  if has_time then add 'time' end
  for _, column in ipairs(names) do add(column) end
  return one
end

--- Notes a table that is not printed yet, so that queries on it can be checked.
function RowQuery:_declare(name, columns, spec)
  if self._db then return self:_table(name, columns, false, spec) end
  self._declared[#self._declared + 1] = { name, columns, spec }
end

--- Opens the database and checks the queries, before anything is traced. Shipped profilers declare all that they print;
--- a user's script may print other tables later.
function RowQuery:prepare()
  local session = self._session
  local formats = C.session_formats(session, 0, ffi.new 'struct error')
  self._no_events = ffi.gc(C.rows_new(0), C.rows_free)
  local no_tables = ffi.gc(C.tables_new(self._no_events), C.tables_free)
  local functions = ffi.gc(C.functions_new(formats, C.session_tasks(session, 0)), C.functions_free)
  self._db = databases.open(nil, false, no_tables, functions)
  self._db:exec 'CREATE TABLE column_units (table_name TEXT, column_name TEXT, unit TEXT)'
  for _, one in ipairs(self._declared) do self:_declare(one[1], one[2], one[3]) end
  for _, event in ipairs(self._run.printed_events()) do self:_declare(event.name, (printer.columns(event))) end
  self:_prepare(self._run.is_shipped)
end

--- Prepares the queries. Those on tables that may still come are left for later.
---@param knows_all boolean no other table comes any more
function RowQuery:_prepare(knows_all)
  local list, err = self._db:queries(self._sql)
  if list then
    if #list == 0 then failure.usage('%s: --query has no statement', self._profiler) end
    self._queries = list
    return
  end
  if not knows_all and err.message:find '^no such table' and not err.hint then return end
  local column = err.message:match '^no such column: .-([%w_]+)$'
  if not self._is_last and printer.extra[column] then return end
  if not err.hint and err.message:find '^no such table' then
    local names = {}
    for i, one in ipairs(self._list) do names[i] = one.name end
    err.hint = #names > 0 and 'there are ' .. table.concat(names, ', ') or 'the profiler has printed no rows'
  end
  failure.usage('%s: %s', self._profiler, diagnostic.caret(err))
end

--- Returns a value as SQL writes it. Lists are text, as in CSV.
local function value_of(value)
  local kind = type(value)
  if kind == 'boolean' then return value and '1' or '0' end
  if kind == 'table' then
    local parts = {}
    for i, item in ipairs(value) do parts[i] = tostring(item) end
    return literal(table.concat(parts, ';'))
  elseif kind == 'cdata' and not tonumber(value) then
    return literal(tostring(value))
  end
  return literal(value)
end

--- Adds rows to a table.
function RowQuery:_add(name, names, rows, time)
  local one = self:_table(name, names, time ~= nil)
  local prefix, lines = time and ('%.6f,'):format(time) or '', {}
  local into = {}
  for i, column in ipairs(names) do into[i] = quoted(one.columns[column]) end
  local insert = ('INSERT INTO %s (%s%s) VALUES '):format(quoted(one.name), time and 'time,' or '',
    table.concat(into, ','))
  for i, row in ipairs(rows) do
    if self._rows >= MAX_ROWS then
      self._left_out = self._left_out + #rows - i + 1
      break
    end
    self._rows = self._rows + 1
    local cells = {}
    for j, column in ipairs(names) do cells[j] = value_of(row[column]) end
    lines[#lines + 1] = ('(%s%s)'):format(prefix, table.concat(cells, ','))
    if #lines == AT_ONCE then
      self._db:exec('%s', insert .. table.concat(lines, ','))
      lines = {}
    end
  end
  if #lines > 0 then self._db:exec('%s', insert .. table.concat(lines, ',')) end
end

--- Prints the results of the queries on the rows of the report that ended, if there are any, and forgets the rows.
---@param at number ns: the time of the report
function RowQuery:interval(at)
  if self._rows == 0 then return end
  if not self._queries then self:_prepare(self._is_last) end
  local message
  if self._queries then
    self._out:results(function(out)
      for i, query in ipairs(self._queries) do
        message = message or results.print(out, query, results.name(self._queries, i), i == 1 and at)
      end
    end)
  end
  for _, one in ipairs(self._list) do self._db:exec('DELETE FROM %s', quoted(one.name)) end
  if self._left_out > 0 then
    self._out:warn(('%s: --query: %d rows were left out: a report has more than %d'):format(self._profiler,
      self._left_out, MAX_ROWS))
  end
  self._rows, self._left_out, self._has_answered = 0, 0, true
  if message then failure.raise('%s: the query failed: %s', self._profiler, message) end
end

--- Answers for the rows that there are before another session begins.
RowQuery.leave = RowQuery.interval

--- Answers the queries for the last time.
---@param at number
function RowQuery:stop(at)
  self._is_last = true
  self:interval(at)
  if not self._queries then self:_prepare(true) end
  if not self._has_answered then self._out:warn(('%s: --query: there were no rows'):format(self._profiler)) end
  for _, query in ipairs(self._queries) do query:close() end
  self._db:close()
  tables.unlisten(self._sees)
end

return row_queries
