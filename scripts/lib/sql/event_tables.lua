-- SPDX-License-Identifier: GPL-2.0-only
--- EventTables: keeps events, and answers SQL queries on them. It is a consumer. Each event is a table: the kept events
--- themselves, which SQLite reads through virtual tables (runtime/sql/tables.h). Rows are only copied into a database
--- file, to verify the results, or if those of a recording do not fit into memory: then the queries are answered from a
--- temporary file.
local addresses = require 'bindings.print.addresses'
local ffi = require 'ffi'
local columns = require 'lib.sql.columns'
local constants = require 'lib.sql.constants'
local databases = require 'lib.sql.database'
local diagnostic = require 'bindings.base.diagnostic'
local facade = require 'bindings.base.facade'
local failure = require 'bindings.base.failure'
local names = require 'lib.sql.names'
local number_names = require 'bindings.base.number_names'
local public_event = require 'bindings.view.public_event'
local results = require 'lib.sql.results'
local units = require 'bindings.base.units'

local C = ffi.C
local literal, quoted = databases.literal, databases.quoted
local event_tables = {}

local FLUSH_BYTES = 32 * 2 ^ 20 -- kept events that are copied into a file at once
local BATCH_BYTES = 64 * 2 ^ 20 -- the events of a batch take less
local MAX_SYSCALLS = 600
local METADATA = [[
CREATE TABLE IF NOT EXISTS event_metadata (table_name TEXT PRIMARY KEY, event_system TEXT NOT NULL,
  event_name TEXT NOT NULL, event_id INTEGER NOT NULL, filter_expression TEXT, has_stack INTEGER, max_stack INTEGER,
  field_count INTEGER NOT NULL, created_time INTEGER NOT NULL, sample_count INTEGER DEFAULT 0,
  first_sample_time INTEGER, last_sample_time INTEGER, function_list TEXT);
CREATE TABLE IF NOT EXISTS column_units (table_name TEXT, column_name TEXT, unit TEXT);
CREATE TABLE IF NOT EXISTS events_lost (_cpu INTEGER, _tid INTEGER, from_time INTEGER, to_time INTEGER,
  count INTEGER);]]

--- The table of an event.
---@class EventTable
---@field name string
---@field event Event
---@field columns Column[]
---@field indexed? Column that of index=

---@class EventTablesConfig
---@field events Event[]
---@field query? string SQL statements
---@field memory number bytes of kept events
---@field file? string a database file
---@field verify? boolean compare the results with those of copied rows
---@field by_interval boolean there are queries before the end

---@class EventTables
local EventTables = {}
EventTables.__index = EventTables

--- Returns the name of an event's table: its alias, or its name without the system.
local function table_name(event, taken)
  local name = event.alias:gsub('[^%w_]', '_')
  -- A profiler as the source gives all of its events the same alias.
  if taken[name:lower()] and event.attrs.alias then name = name .. '_' .. event.name:match '([^:]*)$' end
  if taken[name:lower()] then
    failure.usage("sql: %s and %s both are the table '%s'; give one of them another name with alias=",
      taken[name:lower()], event.name, name)
  end
  taken[name:lower()] = event.name
  return name
end

--- Returns the number of the machine whose tasks an event names.
local function tasks_member(event)
  return event.machine and not event.machine.vm and event.machine.index or 0
end

--- Adds the table of an event to the C side.
local function add_table(self, event, taken, has_machines)
  local list = columns.of(event, has_machines)
  local number = C.tables_add(self._tables, event.class)
  if number < 0 then failure.raise('sql: %s cannot be a table', event.name) end
  local indexed = columns.indexed(event, list)
  columns.add(self._tables, number, list, indexed, C.session_tasks(self._session, tasks_member(event)))
  return { name = table_name(event, taken), event = event, columns = list, indexed = indexed, number = number }
end

--- Passes the lists of names in an event's print format to the functions. Returns the event's function_list.
local function add_names(self, one)
  local lists, functions = names.of(one.event)
  local all = {}
  for i, list in ipairs(lists) do
    local key = ('%s.%s'):format(one.name, list.field)
    local number = C.functions_add_list(self._functions, key, list.separator, ffi.cast('uint64_t', list.mask))
    for _, entry in ipairs(list.entries) do C.functions_add_name(self._functions, number, entry[1], entry[2]) end
    all[i] = ("symbolic('%s', %s)"):format(key, list.field)
  end
  for _, text in ipairs(functions) do all[#all + 1] = text end
  return #all > 0 and table.concat(all, ', ') or nil
end

local function add_syscalls(self)
  local arch = ffi.string(C.session_arch(self._session, 0))
  local list = C.functions_add_list(self._functions, '', nil, -1ULL)
  for _, first in ipairs { 0, number_names.I386, number_names.X32 } do
    for nr = first, first + MAX_SYSCALLS - 1 do
      local name = number_names.syscall(nr, arch)
      if not name:find '^%d' then C.functions_add_name(self._functions, list, nr, name) end
    end
  end
end

--- Returns the unit of a column; nil if it is not known.
local function unit_of(column, is_address)
  if column.kind == tonumber(C.COLUMN_TIME) then return 'ns' end
  if column.type ~= tonumber(C.COLUMN_INTEGER) or not column.field then return end
  return is_address[column.name] and 'address' or units.of_field(column.name)
end

--- Creates the tables event_metadata and column_units.
local function add_metadata(self, db)
  db:exec(METADATA)
  for _, one in ipairs(self.tables) do
    local event = one.event
    db:exec('INSERT OR REPLACE INTO event_metadata VALUES (%s, %s, %s, %d, %s, %d, %d, %d, %d, 0, NULL, NULL, %s)',
      literal(one.name), literal(event.name:match '^(.-):' or event.kind or ''),
      literal(event.name:match ':(.*)$' or event.name),
      event.tracepoint and C.tracepoint_id(event.tracepoint) or tonumber(event.request.attr.config),
      literal(event.filter), event.attrs.stack and 1 or 0, event.attrs['max-stack'] or 0, #one.columns,
      self._created, literal(one.functions))
    for _, column in ipairs(one.columns) do
      local unit = unit_of(column, self._addresses[one.name])
      if unit then
        db:exec('INSERT INTO column_units VALUES (%s, %s, %s)', literal(one.name), literal(column.name), literal(unit))
      end
    end
  end
end

--- Opens a database whose tables have copies of the rows. Its own tables of a former run are replaced.
local function open_copies(self, path)
  local db = databases.open(path, true, self._tables, self._functions)
  db.addresses = self._addresses
  db:exec 'BEGIN'
  for _, one in ipairs(self.tables) do
    local list = {}
    for i, column in ipairs(one.columns) do list[i] = columns.definition(column, quoted) end
    db:exec('DROP TABLE IF EXISTS %s; CREATE TABLE %s (%s)', quoted(one.name), quoted(one.name),
      table.concat(list, ', '))
  end
  db:exec 'DROP TABLE IF EXISTS event_metadata; DROP TABLE IF EXISTS column_units; DROP TABLE IF EXISTS events_lost'
  db:exec 'DROP TABLE IF EXISTS partial'
  db:exec 'CREATE TABLE partial (reason TEXT)'
  add_metadata(self, db)
  db:exec 'COMMIT'
  for i, one in ipairs(self.tables) do
    db:exec('CREATE VIRTUAL TABLE temp.%s USING events(%d)', quoted('kept ' .. i), one.number)
  end
  return db
end

local function open_kept(self)
  local db = databases.open(nil, false, self._tables, self._functions)
  db.addresses = self._addresses
  for _, one in ipairs(self.tables) do
    db:exec('CREATE VIRTUAL TABLE %s USING events(%d)', quoted(one.name), one.number)
  end
  add_metadata(self, db)
  return db
end

--- Prepares the queries on a database; a bad one is refused.
local function prepare(db, text)
  local list, err = db:queries(text)
  if not list then failure.usage('sql: %s', diagnostic.caret(err)) end
  if #list == 0 then failure.usage('sql: --query has no statement') end
  return list
end

local function close_all(queries)
  for _, query in ipairs(queries or {}) do query:close() end
end

--- Adds what all queries want of an event to its filter, so that the kernel need not deliver the others: comparisons of
--- fields with constants. Only where nothing else sees the events.
local function narrow(self, query)
  local run, text = self._run, query:lower()
  for _, need in ipairs { 'each_event', 'event_counts', 'stored' } do
    if run:needs(need) then return end
  end
  for _, word in ipairs { 'left', 'right', 'full', 'event_metadata' } do
    if text:find('%f[%w_]' .. word .. '%f[^%w_]') then return end -- outer joins; counts of all events
  end
  local plans = {}
  for _, one in ipairs(self.tables) do plans[one.number] = {} end
  for _, one in ipairs(self._queries) do
    local found = self._kept:plans(one)
    if not found then return end
    for _, plan in ipairs(found) do
      local number = C.tables_of_plan(self._tables, plan)
      if number < 0 then return end
      table.insert(plans[number], plan)
    end
  end
  for _, one in ipairs(self.tables) do
    local event = one.event
    local added = not (event.machine or event.attrs.push or event.owner.parent) and event.tracepoint
      and constants.filter(self._tables, plans[one.number], one.columns)
    if added then event:add_filter(added) end
  end
end

---@param config EventTablesConfig
---@return EventTables
function event_tables.new(config)
  local events = public_event.real(config.events)
  local run = events[1].owner.run
  -- The queries on a file need no memory for all events.
  local spills = run.is_recorded and config.query and not (config.file and not config.by_interval)
  local rows = ffi.gc(C.rows_new(config.memory + (spills and BATCH_BYTES or 0)), C.rows_free)
  local self = setmetatable({
    _sinks = {}, _gaps = {}, _spills = spills, _flush_at = spills and config.memory or math.huge,
    tables = {}, _addresses = {}, _config = config, _run = run, _session = run.session, _rows = rows, _out = run.out,
    _lost = 0, _dropped = 0, _created = os.time(), _stats = ffi.new 'struct rows_stats',
  }, EventTables)
  local err = ffi.new 'struct error'
  local formats = C.session_formats(run.session, 0, err)
  self._tables = ffi.gc(C.tables_new(rows), C.tables_free)
  self._functions = ffi.gc(C.functions_new(formats, C.session_tasks(run.session, 0)), C.functions_free)
  local taken, has_machines = {}, false
  for _, name in ipairs { 'event_metadata', 'column_units', 'events_lost' } do taken[name] = name end
  for _, event in ipairs(events) do has_machines = has_machines or event.machine ~= nil end
  for i, event in ipairs(events) do
    self.tables[i] = add_table(self, event, taken, has_machines)
    self.tables[i].functions = add_names(self, self.tables[i])
    self._addresses[self.tables[i].name] = addresses.of(event)
  end
  if config.query and config.query:lower():find 'syscall' then add_syscalls(self) end
  self._kept = open_kept(self)
  if config.query then self._queries = prepare(self._kept, config.query) end
  results.declare(self._queries or {})
  if config.query and not config.file and not config.verify then narrow(self, config.query) end
  if run.opt.dry_run then return self end -- the file stays as it is
  if config.file or config.verify then
    self._copies = open_copies(self, config.file)
    self._sinks[1] = self._copies
  end
  -- A file has room for more events than the memory.
  if config.file and config.query and not config.by_interval then
    close_all(self._queries)
    self._queries = prepare(self._copies, config.query)
  end
  if config.verify then self._verifying = prepare(self._copies, config.query) end
  if config.file and not (config.query and config.by_interval) then self._flush_at = FLUSH_BYTES end
  return self
end

--- Returns the time of the events' clock at a time in ns since the base.
local function clock_time(self, time) return C.session_exact_time(self._session, time) end

--- Returns the columns of a table that a database with copies needs: all, or what the queries can see.
local function copied_columns(self, db, one)
  if db == self._copies then return one.columns end
  local query = self._config.query
  return query:lower():find(one.name:lower(), 1, true) and columns.mentioned(one.columns, query) or {}
end

--- Copies the kept rows into the tables of another database.
local function copy(self, db)
  db:exec 'BEGIN'
  for i, one in ipairs(self.tables) do
    local copied = {}
    for j, column in ipairs(copied_columns(self, db, one)) do copied[j] = quoted(column.name) end
    if #copied > 0 and C.rows_count(self._rows, one.number) > 0 then
      local list = table.concat(copied, ', ')
      db:exec('INSERT INTO %s (%s) SELECT %s FROM temp.%s', quoted(one.name), list, list, quoted('kept ' .. i))
    end
  end
  db:exec 'COMMIT'
end

--- Counts the kept rows in a database's event_metadata.
local function count(self, db)
  for _, one in ipairs(self.tables) do
    local n = C.rows_count(self._rows, one.number)
    if n > 0 then
      local rows = C.rows_of(self._rows, one.number)
      db:exec('UPDATE event_metadata SET sample_count = sample_count + %d, first_sample_time = '
        .. 'ifnull(first_sample_time, %s), last_sample_time = %s WHERE table_name = %s', n,
        literal(clock_time(self, rows[0].time)), literal(clock_time(self, rows[n - 1].time)), literal(one.name))
    end
  end
end

--- Forgets the rows.
local function clear(self)
  C.tables_forget(self._tables)
  C.rows_clear(self._rows)
end

--- Makes the rows readable.
local function begin(self) C.tables_set_base(self._tables, clock_time(self, 0)) end

--- Copies the rows into all databases that have copies.
local function copy_to_sinks(self)
  for _, db in ipairs(self._sinks) do
    copy(self, db)
    count(self, db)
  end
end

--- Lets the queries be answered from a file from now on, as memory cannot hold the rows.
local function spill(self)
  self._is_spilled = true
  if self._verifying then
    self._out:warn 'sql: --verify has no effect: there are more events than --memory holds'
    return
  end
  self._spill = self._spill or open_copies(self, nil)
  for _, gap in ipairs(self._gaps) do self._spill:exec(gap) end
  table.insert(self._sinks, self._spill)
end

--- Returns the queries on the database that has all rows since the last report.
local function prepared(self)
  if not self._is_spilled then return self._queries end
  if self._verifying then return self._verifying end
  for _, one in ipairs(self.tables) do
    local name = one.indexed and quoted(one.indexed.name)
    if name then
      self._spill:exec('CREATE INDEX IF NOT EXISTS %s ON %s (%s, _time)', quoted('index ' .. one.name),
        quoted(one.name), name)
    end
  end
  self._spilled = self._spilled or prepare(self._spill, self._config.query)
  return self._spilled
end

--- Makes room for more rows in memory.
local function flush(self)
  if self._spills and not self._is_spilled then spill(self) end
  begin(self)
  copy_to_sinks(self)
  clear(self)
end

--- Keeps the events of a batch.
function EventTables:feed(list, n)
  C.rows_add(self._rows, list, n)
  if C.rows_bytes(self._rows) > self._flush_at then flush(self) end
end

--- Notes that events are missing.
---@param gap { lost: integer, from: number, to: number, cpu?: integer, tid?: integer }
function EventTables:lost(gap)
  self._lost = self._lost + gap.lost
  self._lost_from = math.min(self._lost_from or math.huge, gap.from)
  self._lost_to = math.max(self._lost_to or 0, gap.to)
  local row = ('INSERT INTO events_lost VALUES (%s, %s, %s, %s, %d)'):format(literal(gap.cpu), literal(gap.tid),
    literal(clock_time(self, gap.from)), literal(clock_time(self, gap.to)), gap.lost)
  table.insert(self._gaps, row)
  self._kept:exec(row)
  for _, db in ipairs(self._sinks) do db:exec(row) end
end

local function events_text(n) return ('%d event%s'):format(n, n == 1 and '' or 's') end

--- Says what the results lack.
local function report_missing(self)
  local value, unit, out = self._run.axis.value, self._run.axis.unit, self._out
  if self._lost > 0 then
    out:warn(('sql: the result lacks %s, lost between %s and %s %s'):format(events_text(self._lost),
      tostring(value(self._lost_from)), tostring(value(self._lost_to)), unit))
  end
  C.rows_read_stats(self._rows, self._stats)
  local dropped = tonumber(self._stats.dropped)
  if dropped > self._dropped then
    out:warn(('sql: the result lacks the oldest %s, up to %s %s: more than --memory %d MiB'):format(
      events_text(dropped - self._dropped), tostring(value(self._stats.dropped_until)), unit,
      self._config.memory / 2 ^ 20))
  end
  self._lost, self._lost_from, self._lost_to, self._dropped = 0, nil, nil, dropped
end

--- Runs the queries and prints their results. After a failure they do not run again.
---@return string? message what went wrong
local function answer(self, at)
  local queries = prepared(self)
  for i, query in ipairs(queries) do
    if self._is_last then self._run.progress:stage(('query %d of %d'):format(i, #queries), true) end
    local message, interrupted = results.print(self._out, query, results.name(queries, i), i == 1 and at)
    if not message and self._verifying and not self._is_spilled then
      message = results.compare(query, self._verifying[i], self._out)
    end
    if interrupted then
      self._out:warn 'sql: the query was interrupted'
      self._failed = true
      return
    elseif message then
      self._failed = true
      return message
    end
  end
end

--- Answers the queries about the events since the last report, and forgets these.
---@param at number ns
function EventTables:report(at)
  self._reported_at = at
  begin(self)
  self._kept:exec 'UPDATE event_metadata SET sample_count = 0, first_sample_time = NULL, last_sample_time = NULL'
  count(self, self._kept)
  copy_to_sinks(self)
  local message
  if self._queries and not self._failed then message = answer(self, at) end
  report_missing(self)
  clear(self)
  self._kept:exec 'DELETE FROM events_lost'
  self._gaps = {}
  if self._verifying then self:_empty(self._copies) end
  if self._spill and self._is_spilled then
    self:_empty(self._spill)
    table.remove(self._sinks)
  end
  self._is_spilled = false
  if message then failure.raise('sql: the query failed: %s', message) end
end

--- Empties the tables of a database with copies.
function EventTables:_empty(db)
  for _, one in ipairs(self.tables) do db:exec('DELETE FROM %s', quoted(one.name)) end
  db:exec 'DELETE FROM events_lost; UPDATE event_metadata SET sample_count = 0, first_sample_time = NULL'
end

--- Answers the queries for the last time and closes the databases.
---@param at number ns
function EventTables:finish(at)
  self._is_last = true
  -- If the run ended with an interval, nothing has happened since.
  local is_empty = self._reported_at == at
  for _, one in ipairs(self.tables) do is_empty = is_empty and C.rows_count(self._rows, one.number) == 0 end
  if not is_empty then self:report(at) end
  close_all(self._queries)
  close_all(self._verifying)
  close_all(self._spilled)
  if self._spill then self._spill:close() end
  if self._copies then
    local partial = self._run.partial
    if partial then self._copies:exec('INSERT INTO partial VALUES (%s)', literal(partial)) end
    self._copies:close()
  end
  self._kept:close()
end

--- Returns what a profiler puts among its handlers.
---@type fun(tables: EventTables): any
event_tables.handler = facade.class('tables', EventTables, { 'report', 'finish', 'lost' })

return event_tables
