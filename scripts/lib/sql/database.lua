-- SPDX-License-Identifier: GPL-2.0-only
--- Database: a database of SQLite and the user's queries on it (runtime/sql/database.h).
local ffi = require 'ffi'
local diagnostic = require 'bindings.base.diagnostic'
local failure = require 'bindings.base.failure'
local sys = require 'bindings.base.sys'

local C = ffi.C
local databases = {}

local INTEGER, REAL = tonumber(C.VALUE_INTEGER), tonumber(C.VALUE_REAL)
local TEXT, BLOB = tonumber(C.VALUE_TEXT), tonumber(C.VALUE_BLOB)

---@class Database
local Database = {}
Database.__index = Database

--- One statement of the user's text.
---@class Query
---@field sql string on one line
---@field source string as it was written
---@field names string[] of the columns
---@field is_address table<integer, boolean> the columns that are addresses
local Query = {}
Query.__index = Query

--- Opens a database.
---@param path? string a file; nil: in memory, or with is_file in a temporary one
---@param is_file boolean
---@param tables ffi.cdata* struct tables *
---@param functions ffi.cdata* struct functions *
---@return Database
function databases.open(path, is_file, tables, functions)
  local why = path and sys.why_not_writable(path)
  if why then failure.raise("sql: cannot open the database '%s': %s", path, why) end
  local err = ffi.new 'struct error'
  local db = C.database_open(path, not is_file, tables, functions, err)
  if db == nil then failure.raise('sql: %s', ffi.string(err.text)) end
  local self = setmetatable({ path = path, addresses = {}, _anchors = { tables, functions } }, Database)
  self._db = ffi.gc(db, function(one) C.database_close(one, nil) end)
  return self
end

--- Runs statements of the host.
---@param sql string a format, with quoted() names and values
function Database:exec(sql, ...)
  local err = ffi.new 'struct error'
  if C.database_exec(self._db, select('#', ...) > 0 and sql:format(...) or sql, err) < 0 then
    failure.raise('sql: %s%s', self.path and ("'%s': "):format(self.path) or '', ffi.string(err.text))
  end
end

function Database:close()
  local err = ffi.new 'struct error'
  local status = C.database_close(ffi.gc(self._db, nil), err)
  self._db = nil
  if status < 0 then failure.raise('sql: %s', ffi.string(err.text)) end
end

--- Returns a name as SQL writes it.
---@param name string
---@return string
function databases.quoted(name) return '"' .. name:gsub('"', '""') .. '"' end

--- Returns a value as SQL writes it.
---@param value string|number|ffi.cdata*|nil
---@return string
function databases.literal(value)
  if value == nil or value ~= value or value == math.huge or value == -math.huge then return 'NULL' end
  if type(value) == 'string' then return "'" .. value:gsub("'", "''"):gsub('%z', '') .. "'" end
  if type(value) == 'cdata' then return (tostring(ffi.cast('int64_t', value)):gsub('LL$', '')) end
  return ('%.17g'):format(value)
end

--- Returns the names of the tables or functions, or those of all columns.
---@param kind 'table'|'column'|'function'
---@return string[]
function Database:names(kind)
  local sql = ({
    table = "SELECT name FROM pragma_table_list WHERE name NOT LIKE 'sqlite_%'",
    column = "SELECT DISTINCT c.name FROM pragma_table_list t, pragma_table_info(t.name) c "
      .. "WHERE t.name NOT LIKE 'sqlite_%'",
    ['function'] = 'SELECT DISTINCT name FROM pragma_function_list',
  })[kind]
  local names, query = {}, assert(self:query(sql, 1))
  query:each(function(row) names[#names + 1] = row[1] end)
  query:close()
  return names
end

--- What SQLite says about names that do not exist.
local UNKNOWN = {
  { 'no such column: (.*)', 'column' },
  { 'no such table: (.*)', 'table' },
  { 'no such function: (.*)', 'function' },
}

--- Returns where a statement names a table, of which SQLite does not know the place.
local function place_of_table(sql, name, from)
  local lower, word, at = sql:lower(), name:lower(), from
  while true do
    local first, last = lower:find(word, at, true)
    if not first then return lower:find(word, from, true) end
    local before = lower:sub(1, first - 1)
    if before:find '%f[%w]from%s+["%[`]?$' or before:find '%f[%w]join%s+["%[`]?$' or before:find ',%s*["%[`]?$' then
      if not lower:find('^[%w_]', last + 1) then return first end
    end
    at = last + 1
  end
end

--- Returns what is wrong with a statement, and where.
local function explain(self, err, sql, from)
  local message, at, hint = ffi.string(err.text), err.offset, nil
  local denied = ffi.string(err.denied)
  sql = sql:gsub('%c', ' ') -- it is shown as one line
  if denied ~= '' then
    return diagnostic.new('query', sql, from, ('%s is not allowed'):format(denied), 'queries only read')
  end
  for _, case in ipairs(UNKNOWN) do
    local name = message:match('^' .. case[1] .. '$')
    if name then
      local found = at < 0 and place_of_table(sql, name, from)
      if found then at = found - from end
      hint = diagnostic.suggest(name:match '[^.]*$', self:names(case[2]))
    end
  end
  return diagnostic.new('query', sql, at >= 0 and from + at or from, message, hint)
end

--- Returns whether a column of results is the least or greatest address of a column.
local function is_extreme(self, source, name)
  local plain = name:gsub('%p', '%%%0')
  local as = source:match('(%a+%s*%b())%s+[Aa][Ss]%s+"?' .. plain) or source:match('(%a+%s*%b())%s+"?' .. plain)
  local kind, column = (as or name):match '^(%a+)%s*%(%s*"?([%w_.]+)"?%s*%)$'
  column = kind and (kind:lower() == 'max' or kind:lower() == 'min') and column:match '[%w_]+$'
  for table_name, known in pairs(column and self.addresses or {}) do
    if known[column] and source:find(table_name, 1, true) then return true end
  end
  return false
end

--- Prepares the first statement of sql from a column on.
---@param sql string
---@param from integer
---@return Query|false|nil query false: there are only blanks and comments; nil: an error
---@return integer|Diagnostic next column after the statement, or the error
function Database:query(sql, from)
  local length, err = ffi.new 'int[1]', ffi.new 'struct query_error'
  local query = C.query_new(self._db, sql:sub(from), length, err)
  if query == nil then
    if err.text[0] == 0 and err.denied[0] == 0 then return false, from + length[0] end
    return nil, explain(self, err, sql, from)
  end
  local names, is_address, table_name, column = {}, {}, ffi.new 'const char *[1]', ffi.new 'const char *[1]'
  local source = sql:sub(from, from + length[0] - 1)
  for i = 1, C.query_columns(query) do
    names[i] = ffi.string(C.query_name(query, i - 1))
    local known = C.query_origin(query, i - 1, table_name, column) and self.addresses[ffi.string(table_name[0])]
    is_address[i] = known and known[ffi.string(column[0])] or is_extreme(self, source, names[i])
  end
  local text = source:gsub('%s+', ' '):match '^ ?(.-)[ ;]*$'
  return setmetatable({ sql = text, source = source,
    names = names, is_address = is_address, _query = ffi.gc(query, C.query_free), _db = self }, Query),
    from + length[0]
end

--- Prepares all statements of a text.
---@param sql string
---@return Query[]? queries
---@return Diagnostic? err
function Database:queries(sql)
  local list, from = {}, 1
  while from <= #sql do
    local query, after = self:query(sql, from)
    if query == nil then return nil, after end
    if query then list[#list + 1] = query end
    if after <= from then break end
    from = after
  end
  return list
end

--- Returns the numbers of the plans of tables of events by which a query reads them; nil if that is not known.
---@param query Query
---@return integer[]?
function Database:plans(query)
  local explained, list = self:query('EXPLAIN QUERY PLAN ' .. query.source, 1), {}
  if not explained then return end
  local is_known = not explained:each(function(row)
    local number = row[4]:match '.*VIRTUAL TABLE INDEX (%d+):.' -- other modules show no text
    if number then list[#list + 1] = tonumber(number) end
  end)
  explained:close()
  return is_known and list or nil
end

local value = ffi.new 'struct value'

--- Returns a value of the current row: a number, an integer64 beyond 2^53, a string, { bytes = }, or nil for NULL.
local function read(query, column)
  C.query_read(query, column, value)
  local kind = value.type
  if kind == INTEGER then
    local n = value.integer
    return n >= -9007199254740992LL and n <= 9007199254740992LL and tonumber(n) or n
  elseif kind == REAL then
    return value.real
  elseif kind == TEXT then
    return ffi.string(value.text, value.size)
  elseif kind == BLOB then
    return { bytes = value.size > 0 and ffi.string(value.text, value.size) or '' }
  end
end

--- Returns whether a value is a real number.
---@return boolean
function Query:is_real(column)
  C.query_read(self._query, column - 1, value)
  return value.type == REAL
end

--- Calls a function with each row: the list of its values, in the order of the columns.
---@param call fun(row: table, query: Query)
---@return string? message what went wrong
---@return boolean? interrupted the user wants the run to end
function Query:each(call)
  local err, n = ffi.new 'struct query_error', #self.names
  local status = C.query_step(self._query, err)
  while status == 1 do
    local row = {}
    for i = 1, n do row[i] = read(self._query, i - 1) end
    call(row, self)
    status = C.query_step(self._query, err)
  end
  if status == 0 then return end
  local message = ffi.string(err.text)
  if message == 'out of memory' then message = 'it needs more than 1 GiB of memory' end
  return message, err.interrupted
end

function Query:close()
  C.query_free(ffi.gc(self._query, nil))
  self._query = nil
end

return databases
