-- SPDX-License-Identifier: GPL-2.0-only
--- Columns of tables. out:table() prints a table as aligned text, JSON or CSV.
---
---   local spec = tables.new('wakeups', {
---     { name = 'pid', width = 8 },
---     { name = 'wait_ns', width = 12, unit = 'ns' },
---   })
---   out:table(spec, { { pid = 1, wait_ns = 1500 } }) -- 1.50 us; JSON and CSV have the number
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local tables = {}

---@class TableColumn
---@field name string field of the rows, and key in JSON and CSV
---@field title? string heading in text; default: the name
---@field width? integer minimum width in text
---@field align? 'left'|'right' default: strings left, all others right
---@field unit? string of the values: 'ns', 'bytes' ... (lib.units). Text has them as '1.08 s' or '64 KiB', unless
--- there is a format; JSON and CSV have the number, or the text of an 'address'. Metrics, the page and SQL also know
--- the unit of a name that ends with it, such as `wait_ns`
---@field unit_of? fun(row: table): string? returns the unit of a row's value, instead of unit
---@field format? string printf format of the value in text
---@field scale? number text shows value / scale
---@field text? fun(row: table): string returns the cell in text, instead of format
---@field sep? string separator before the column in text; default: one space
---@field rule? integer number of dashes below the heading; default: the width
---@field alert? boolean red on a terminal if the value is not 0
---@field show? boolean false: omit the column
---@field data_only? boolean omit the column from text
---@field metric? 'label'|'counter'|'gauge'|'histogram'|'none' what the column is to --prometheus, --otlp and --serve:
--- what the row is about; what was counted since the last report; any other number; a Hist, which is not printed;
--- nothing. Default: text and ids such as `pid` are labels, other numbers are gauges
---@field adds_up? boolean a gauge is the sum of the rows of a report with the same labels, such as those of stacks
---@field of_histogram? boolean the count or the sum of the row's histogram

--- Rows with the field `is_total` are sums of others, and no metrics.
---@class TableSpec
---@field name string
---@field stamp boolean whether text starts with a line with the wall time
---@field is_ordered? boolean --sort leaves the rows as they are
---@field columns TableColumn[]
---@field histograms TableColumn[] those that are not printed
---@field addresses? string[] names of the columns of addresses

local MIN_CUT = 12 -- characters of a text that is cut
local SPARED = { 'min', 'p95', 'p99', 'p50' } -- columns that a narrow terminal may lack, the first first
local RESERVED = { table = true, time = true }

local listeners = {}

--- Adds what sees each new table, and declared records, which have no spec.
---@param call fun(name: string, columns: string[], spec?: TableSpec)
---@package
function tables.listen(call) listeners[#listeners + 1] = call end

--- Removes it.
---@param call fun(name: string, columns: string[], spec?: TableSpec)
---@package
function tables.unlisten(call)
  for i, listener in ipairs(listeners) do
    if listener == call then return table.remove(listeners, i) end
  end
end

--- Declares what out:record or out:row will print, so that --query can check the names before anything is traced.
---@param name string
---@param fields string[] in the order in which they are printed
function tables.record(name, fields)
  for _, listener in ipairs(listeners) do listener(name, fields) end
end

local function make(name, columns, settings)
  local spec = { name = name, stamp = not settings or settings.stamp ~= false, columns = {}, histograms = {},
    is_ordered = settings and settings.is_ordered }
  local seen = {}
  if type(columns) ~= 'table' then error(('tables.new takes a list of columns, not a %s'):format(type(columns)), 3) end
  for i, column in ipairs(columns) do
    if type(column) ~= 'table' or type(column.name) ~= 'string' then
      error(("table '%s': column %d is not a table with a name, such as { name = 'pid' }"):format(name, i), 3)
    end
    if column.show ~= false then
      if RESERVED[column.name] or seen[column.name] then
        error(("table '%s' already has a column '%s'"):format(name, column.name), 3)
      end
      seen[column.name] = true
      local list = column.metric == 'histogram' and spec.histograms or spec.columns
      list[#list + 1] = column
      if units.of(column) == 'address' then
        spec.addresses = spec.addresses or {}
        table.insert(spec.addresses, column.name)
      end
    end
  end
  return spec
end

--- Returns rows as JSON, CSV, metrics and the page have them: with addresses in hexadecimal.
---@param spec TableSpec
---@param rows table[]
---@return table[]
---@package
function tables.data(spec, rows)
  if not spec.addresses then return rows end
  local list = {}
  for i, row in ipairs(rows) do
    list[i] = setmetatable({}, { __index = row })
    for _, name in ipairs(spec.addresses) do list[i][name] = row[name] and units.address(row[name]) end
  end
  return list
end

--- Checks the columns and returns the spec of a table. Columns with show = false are omitted.
---@param name string of the table in JSON and CSV
---@param columns TableColumn[]
---@param settings? { stamp?: boolean, is_ordered?: boolean } stamp = false: text has no line with the wall time;
--- is_ordered: the order of the rows has a meaning, so --sort leaves them as they are
---@return TableSpec
function tables.new(name, columns, settings)
  local spec = make(name, columns, settings)
  if #listeners > 0 then
    local names = { 'time' }
    for _, column in ipairs(spec.columns) do names[#names + 1] = column.name end
    for _, listener in ipairs(listeners) do listener(name, names, spec) end
  end
  return spec
end

--- Returns the spec of a table that is not printed, only shown to --prometheus, --otlp and --serve (Output:offer).
--- --query does not know it.
---@param name string
---@param columns TableColumn[]
---@return TableSpec
---@package
function tables.offered(name, columns) return (make(name, columns)) end

--- Returns the column of a name, a title, or a name without its unit.
---@param spec TableSpec
---@param wanted string in any case
---@return TableColumn?
function tables.column(spec, wanted)
  wanted = wanted:lower()
  for _, column in ipairs(spec.columns) do
    local title = (column.title or column.name):lower()
    if column.name:lower() == wanted or title == wanted or select(2, units.of(column)) == wanted then return column end
  end
end

--- Returns the rows sorted by a column: values from the largest, keys and texts in their order, sums of others last.
---@param spec TableSpec
---@param rows table[]
---@param wanted string see tables.column(); rows without it are returned as they are
---@return table[]
function tables.sorted(spec, rows, wanted)
  local column = not spec.is_ordered and tables.column(spec, wanted)
  if not column then return rows end
  local name, list, place, is_key = column.name, { sorted_by = column, unpack(rows) }, {}, column.metric == 'label'
  for i, row in ipairs(rows) do place[row] = i end
  local function is_number(value) return type(value) == 'number' or type(value) == 'cdata' end
  local function rank(row) return row.is_total and 4 or row[name] == nil and 3 or is_number(row[name]) and 1 or 2 end
  table.sort(list, function(a, b)
    local x, y = rank(a), rank(b)
    if x ~= y then return x < y end
    local v, w = a[name], b[name]
    if x == 1 and tonumber(v) ~= tonumber(w) then return (tonumber(v) > tonumber(w)) ~= is_key end
    if x == 2 and tostring(v) ~= tostring(w) then return tostring(v) < tostring(w) end
    return place[a] < place[b]
  end)
  return list
end

local function cell(column, row)
  if column.text then return text.safe(column.text(row)) end
  local value = row[column.name]
  if value == nil then return '' end
  if type(value) == 'number' and (value ~= value or math.abs(value) == math.huge) then return '-' end
  if column.scale then value = tonumber(value) / column.scale end
  if column.format then return text.safe(column.format:format(value)) end
  if type(value) == 'number' or type(value) == 'cdata' then
    return units.text(value, column.unit_of and column.unit_of(row) or column.unit)
  end
  return text.safe(tostring(value))
end

--- Returns the columns that a string takes on a terminal: one per UTF-8 character.
local function display_width(s)
  local _, continuation_bytes = s:gsub('[\128-\191]', '')
  return #s - continuation_bytes
end

local function pad(s, width, align)
  local blanks = (' '):rep(width - display_width(s))
  return align == 'left' and s .. blanks or blanks .. s
end

--- Puts the units of numbers below each other, and the decimal points of numbers without a unit: those of 2.87 s and
--- 80.2 ms are not to be compared. Returns whether there are any.
local function align_numbers(cells)
  local parts, fraction_width, unit_width = {}, 0, 0
  for i, cell_text in ipairs(cells) do
    local whole, fraction, unit = cell_text:match '^(%-?%d+)(%.?%d*)(.*)$'
    if whole then
      parts[i] = { whole, fraction, unit }
      fraction_width, unit_width = math.max(fraction_width, #fraction), math.max(unit_width, #unit)
    end
  end
  if fraction_width + unit_width == 0 then return false end
  if unit_width > 0 then fraction_width = 0 end
  for i, part in pairs(parts) do
    cells[i] = part[1] .. pad(part[2], fraction_width, 'left') .. pad(part[3], unit_width, 'left')
  end
  return true
end

--- Cuts a text to so many columns of a terminal, with an ellipsis.
local function cut(s, width)
  if display_width(s) <= width then return s end
  local at = 1
  for _ = 2, width do at = s:find('[^\128-\191]', at + 1) or #s + 1 end
  return s:sub(1, at - 1) .. '…'
end

--- Makes a table that is wider than the terminal narrower: first its columns, as far as nothing is lost, then the
--- widest texts. If it cannot be narrow enough, it has fewer columns, but the one that its rows are sorted by.
local function fit(laid, columns, sorted_by)
  local function total(field)
    local sum = 0
    for _, one in ipairs(laid) do sum = sum + one.sep + one[field] end
    return sum
  end
  if total 'width' <= columns then return end
  for _, title in ipairs(SPARED) do
    for i = total 'shortest' > columns and #laid or 0, 1, -1 do
      if laid[i].title == title and laid[i].column ~= sorted_by then table.remove(laid, i) end
    end
  end
  for _, one in ipairs(laid) do one.width, one.is_narrow = one.least, true end
  for _ = columns + 1, total 'least' do
    local widest
    for _, one in ipairs(laid) do
      if one.is_text and one.width > MIN_CUT and (not widest or one.width > widest.width) then widest = one end
    end
    if not widest then return end
    widest.width = widest.width - 1
  end
end

local function has_texts(column, rows)
  for _, row in ipairs(rows) do -- the first ones may have no value
    if row[column.name] ~= nil then return type(row[column.name]) == 'string' and not column.text end
  end
end

local RED, NORMAL = '\27[31m', '\27[m'

--- Returns the cells of a column, its alignment and its width.
local function lay_out(column, rows)
  local title, cells = text.safe(column.title or column.name), {}
  for i, row in ipairs(rows) do cells[i] = cell(column, row) end
  local is_text = has_texts(column, rows)
  local align = column.align or is_text and 'left' or 'right'
  local has_parts = align == 'right' and not column.text and not column.format and align_numbers(cells)
  local least = display_width(title)
  for _, s in ipairs(cells) do least = math.max(least, display_width(s)) end
  is_text = is_text or align == 'left'
  return { column = column, title = title, cells = cells, align = align, width = math.max(column.width or 0, least),
    least = least, shortest = is_text and math.min(least, MIN_CUT) or least, sep = #(column.sep or ' '),
    has_parts = has_parts, is_text = is_text }
end

--- Formats the table as text.
---@param spec TableSpec
---@param rows table[] at least one
---@param tty? boolean whether alerts may be colored
---@param width? integer columns of the terminal: longer texts are cut
---@return string
function tables.render(spec, rows, tty, width)
  local lines, laid = {}, {}
  for i = 1, #rows + 2 do lines[i] = {} end
  for _, column in ipairs(spec.columns) do
    if not column.data_only then laid[#laid + 1] = lay_out(column, rows) end
  end
  if laid[1] then laid[1].sep = 0 end
  if width then fit(laid, width, rows.sorted_by) end
  for at, one in ipairs(laid) do
    local column, align = one.column, one.align
    local fill = align == 'left' and at == #laid and 0 or one.width -- no trailing blanks
    local sep = at == 1 and '' or column.sep or ' '
    local function put(line, s)
      if one.is_narrow then s = cut(s, one.width) end
      lines[line][at] = sep .. pad(s, fill, align)
    end
    put(1, one.title)
    lines[2][at] = (' '):rep(#sep) .. ('-'):rep(one.is_narrow and one.width or column.rule or one.width)
    for i, row in ipairs(rows) do
      put(i + 2, one.cells[i])
      if tty and column.alert and row[column.name] ~= 0 then
        lines[i + 2][at] = sep .. RED .. lines[i + 2][at]:sub(#sep + 1) .. NORMAL
      end
    end
  end
  local is_ragged = laid[#laid] and laid[#laid].has_parts
  for i, parts in ipairs(lines) do
    local line = table.concat(parts)
    lines[i] = is_ragged and line:gsub(' +$', '') or line
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Returns a column of times in ns: `max_ns`, below the heading max. Text has them as '1.08 s'.
---@param name string without its unit
---@param is_sum? boolean it is the total of the row's histogram
---@return TableColumn
function tables.time_column(name, is_sum)
  return { name = name .. '_ns', title = name, width = 8, unit = 'ns', metric = is_sum and 'counter' or 'gauge',
    of_histogram = is_sum }
end

--- Returns a column with the field `than`, a count, and its percentage of the field `calls`.
---@param than? boolean false or nil: omit the column
---@return TableColumn
function tables.than_column(than)
  return {
    name = 'than', title = 'than(reqs)', width = 13, rule = 14, metric = 'counter', align = 'right', alert = true,
    show = than == true, text = function(row)
      return ('%6d (%3d%%)'):format(row.than, row.than > 0 and math.floor(100 * row.than / row.calls) or 0)
    end,
  }
end

--- The option `variance` of profilers with such columns.
tables.variance_option = { type = 'flag', help = 'also print the mean, the standard deviation and the variance' }

--- Returns columns of how much latencies differ. They are always in JSON and CSV. variance_fields() sets their fields.
---@param is_shown? boolean text has them, too (--variance)
---@return TableColumn[]
function tables.variance_columns(is_shown)
  local stddev = tables.time_column 'stddev'
  stddev.data_only = not is_shown
  return { stddev, { name = 'variance_ns2', title = 'variance(us2)', width = 16, format = '%.3f', scale = 1e6,
    metric = 'gauge', data_only = not is_shown } }
end

--- Sets the fields of variance_columns() in a row.
---@param row table
---@param stats table of Hist:stats(), of ns
function tables.variance_fields(row, stats) row.stddev_ns, row.variance_ns2 = stats.stddev, stats.variance end

--- Returns the columns that every latency table ends with. latency_row() sets their fields.
---@param than? boolean whether to include than_column()
---@param before? TableColumn[] columns before them
---@param has_variance? boolean text has the mean, the standard deviation and the variance
---@return TableColumn[]
function tables.latency_columns(than, before, has_variance)
  local avg, spread = tables.time_column 'avg', tables.variance_columns(has_variance)
  avg.data_only = not has_variance
  local columns = { unpack(before or {}) }
  for _, column in ipairs {
    { name = 'calls', width = 8, align = 'right', metric = 'counter', of_histogram = true },
    tables.time_column('total', true), tables.time_column 'min', tables.time_column 'p50', tables.time_column 'p95',
    tables.time_column 'p99', tables.time_column 'max', tables.than_column(than), avg, spread[1], spread[2],
    { name = 'latency_ns', metric = 'histogram' },
  } do
    columns[#columns + 1] = column
  end
  return columns
end

--- Sets the fields of latency_columns() in a row.
---@param row table
---@param hist Hist of ns
---@return table row
function tables.latency_row(row, hist)
  local s = hist:stats()
  row.calls, row.total_ns, row.min_ns, row.max_ns, row.than = s.count, s.sum, s.min, s.max, s.over
  row.avg_ns = s.avg
  tables.variance_fields(row, s)
  row.p50_ns, row.p95_ns, row.p99_ns = hist:quantile(0.50), hist:quantile(0.95), hist:quantile(0.99)
  row.latency_ns = hist
  return row
end

return tables
