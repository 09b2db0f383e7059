-- SPDX-License-Identifier: GPL-2.0-only
--- Results: prints the rows of queries as tables, and compares them with those of another database.
local addresses = require 'bindings.print.addresses'
local tables = require 'bindings.base.table'
local units = require 'bindings.base.units'

local results = {}

-- Rows of a table in text that are formatted together. The widths of the columns are those of the first ones, so that
-- the rows of a large result need not all be kept.
local BLOCK = 1000
local RESERVED = { table = true, time = true }
local MAX_SHOWN = 200 -- characters of a statement above its result
local MAX_DIFFERENCES = 4
local MAX_OBSERVED = 10000 -- rows that are shown to metrics and the page of --serve: as many as there are series

--- Returns unique names for the columns of a result.
local function unique(names)
  local list, seen = {}, {}
  for i, name in ipairs(names) do
    local candidate, n = RESERVED[name] and name .. '_' or name, 1
    while seen[candidate] do
      n = n + 1
      candidate = name .. '_' .. n
    end
    seen[candidate], list[i] = true, candidate
  end
  return list
end

--- Returns a value as text.
local function text_of(value, is_real)
  local kind = type(value)
  if kind == 'nil' then return 'NULL' end
  if kind == 'table' then return ('[BLOB:%d]'):format(#value.bytes) end
  if kind == 'string' then return value end
  return is_real and ('%.6f'):format(value) or units.number(value)
end

--- Returns a value for JSON and CSV: bytes are in hexadecimal.
local function data_of(value, is_address)
  if is_address then return addresses.text(value) end
  if type(value) ~= 'table' then return value end
  return (value.bytes:gsub('.', function(byte) return ('%02x'):format(byte:byte()) end))
end

--- Writes the table in blocks.
local function text_printer(out, names, titles)
  local rows, columns, is_first = {}, {}, true
  local function flush()
    if #rows == 0 then return end
    if is_first then
      for i, name in ipairs(names) do
        local is_left = false
        for _, row in ipairs(rows) do is_left = is_left or row.is_left[i] end
        columns[i] = { name = name, title = titles[i], align = is_left and 'left' or 'right' }
      end
    end
    local shown = tables.render({ name = 'query', stamp = false, columns = columns }, rows, false)
    if is_first then
      for i, rule in ipairs(results.rules(shown)) do columns[i].width = rule end
    else
      shown = shown:match '^[^\n]*\n[^\n]*\n(.*)$'
    end
    out:append(shown)
    rows, is_first = {}, false
  end
  local function add(row, query)
    local one = { is_left = {} }
    for i, name in ipairs(names) do
      local value = row[i]
      if query.is_address[i] then value = addresses.text(value) end
      one[name] = text_of(value, type(value) == 'number' and query:is_real(i))
      one.is_left[i] = type(value) == 'string' or type(value) == 'table'
    end
    rows[#rows + 1] = one
    if #rows == BLOCK then flush() end
  end
  return add, flush
end

--- Returns the widths of the rules below the heading of a table.
---@param shown string
---@return integer[]
function results.rules(shown)
  local widths = {}
  for rule in shown:match '^[^\n]*\n([^\n]*)\n':gmatch '%-+' do widths[#widths + 1] = #rule end
  return widths
end

--- Returns the name of the table of a query in JSON, CSV and metrics.
---@param queries Query[]
---@param i integer
---@return string
function results.name(queries, i) return #queries > 1 and 'query' .. i or 'query' end

--- Declares the rows that queries will print.
---@param queries Query[]
function results.declare(queries)
  for i, query in ipairs(queries) do
    local columns = {}
    for at, column in ipairs(unique(query.names)) do columns[at] = { name = column } end
    tables.new(results.name(queries, i), columns)
  end
end

--- Runs a query and prints its rows.
---@param out Output
---@param query Query
---@param name string of the table in JSON, CSV and metrics
---@param at number|false ns: the time of the report, printed before the table; false: it was printed
---@return string? message what went wrong
---@return boolean? interrupted
function results.print(out, query, name, at)
  local names, columns, observed, n = unique(query.names), {}, out:is_observed() and {} or nil, 0
  for i, column in ipairs(names) do columns[i] = { name = column } end
  local spec, is_text = { name = name, columns = columns }, out.format == 'text'
  local add, flush
  if is_text then
    if at then out:stamp(at) end
    local sql = #query.sql > MAX_SHOWN and query.sql:sub(1, MAX_SHOWN) .. '...' or query.sql
    out:append(('=== %s ===\n'):format(sql))
    add, flush = text_printer(out, names, query.names)
  end
  local message, interrupted = query:each(function(row)
    n = n + 1
    if is_text then add(row, query) end
    if is_text and not (observed and n <= MAX_OBSERVED) then return end
    local one = {}
    for i, column in ipairs(names) do one[column] = data_of(row[i], query.is_address[i]) end
    if not is_text then out:put_table(spec, { one }) end
    if observed and n <= MAX_OBSERVED then observed[n] = one end
  end)
  if is_text then
    flush()
    if not message and n == 0 then out:append '(no rows)\n' end
    out:append '\n'
  end
  if observed then out:offer(spec, observed) end
  return message, interrupted
end

--- Returns the rows of a query as lines.
local function lines_of(query)
  local lines = {}
  local message = query:each(function(row)
    local parts = {}
    for i = 1, #query.names do
      local value = row[i]
      parts[i] = type(value) == 'table' and 'blob ' .. data_of(value) or type(value) .. ' ' .. tostring(value)
    end
    lines[#lines + 1] = table.concat(parts, ' | ')
  end)
  return lines, message
end

--- Compares the rows of two queries, whose order may differ where the statement does not say it. Prints the
--- differences.
---@param query Query on the kept events
---@param other Query the same one on copies
---@param out Output
---@return string? message what went wrong
function results.compare(query, other, out)
  local ours, message = lines_of(query)
  local theirs, other_message = lines_of(other)
  if message or other_message then return message or other_message end
  table.sort(ours)
  table.sort(theirs)
  local differences = 0
  for i = 1, math.max(#ours, #theirs) do
    if ours[i] ~= theirs[i] then
      differences = differences + 1
      if differences <= MAX_DIFFERENCES then
        out:tell(('sql: verify: %s instead of %s'):format(ours[i] or 'no row', theirs[i] or 'no row'))
      end
    end
  end
  if differences > 0 then
    return ('the rows of the kept events and those of their copies differ (%d): %s'):format(differences, query.sql)
  end
end

return results
