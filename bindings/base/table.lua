-- SPDX-License-Identifier: GPL-2.0-only
--- Columns of tables. out:table() prints a table as aligned text, JSON or CSV.
---
---   local spec = tables.new('wakeups', {
---     { name = 'pid', width = 8 },
---     { name = 'wait_ns', title = 'wait(us)', width = 12, format = '%.3f', scale = 1000 },
---   })
---   out:table(spec, { { pid = 1, wait_ns = 1500 } })
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local tables = {}

---@class TableColumn
---@field name string field of the rows, and key in JSON and CSV
---@field title? string heading in text; default: the name
---@field width? integer minimum width in text
---@field align? 'left'|'right' default: strings left, all others right
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
---@field columns TableColumn[]
---@field histograms TableColumn[] those that are not printed

local RESERVED = { table = true, time = true }

local listener

--- Sets what is called for each new table and for declared records; nil: nothing.
---@param call? fun(name: string, columns: string[], spec?: TableSpec) spec: of a table
---@return function? before what was called until now
---@package
function tables.listen(call)
  local before = listener
  listener = call
  return before
end

--- Declares what out:record or out:row will print, so that --query can check the names before anything is traced.
---@param name string
---@param fields string[] in the order in which they are printed
function tables.record(name, fields)
  if listener then listener(name, fields) end
end

local function make(name, columns, settings)
  local spec = { name = name, stamp = not settings or settings.stamp ~= false, columns = {}, histograms = {} }
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
    end
  end
  return spec
end

--- Checks the columns and returns the spec of a table. Columns with show = false are omitted.
---@param name string of the table in JSON and CSV
---@param columns TableColumn[]
---@param settings? { stamp?: boolean } stamp = false: text has no line with the wall time
---@return TableSpec
function tables.new(name, columns, settings)
  local spec = make(name, columns, settings)
  if listener then
    local names = { 'time' }
    for _, column in ipairs(spec.columns) do names[#names + 1] = column.name end
    listener(name, names, spec)
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

local function cell(column, row)
  if column.text then return text.safe(column.text(row)) end
  local value = row[column.name]
  if value == nil then return '' end
  if type(value) == 'number' and (value ~= value or math.abs(value) == math.huge) then return '-' end
  if column.scale then value = tonumber(value) / column.scale end
  if column.format then return text.safe(column.format:format(value)) end
  if type(value) == 'number' or type(value) == 'cdata' then return units.short(value) end
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

local function is_left(column, rows)
  if column.align then return column.align == 'left' end
  return type(rows[1][column.name]) == 'string' and not column.text
end

local RED, NORMAL = '\27[31m', '\27[m'

--- Formats the table as text.
---@param spec TableSpec
---@param rows table[] at least one
---@param tty? boolean whether alerts may be colored
---@return string
function tables.render(spec, rows, tty)
  local lines, columns = {}, {}
  for i = 1, #rows + 2 do lines[i] = {} end
  for _, column in ipairs(spec.columns) do
    if not column.data_only then columns[#columns + 1] = column end
  end
  for at, column in ipairs(columns) do
    local title = text.safe(column.title or column.name)
    local width = math.max(column.width or 0, display_width(title))
    local cells = {}
    for i, row in ipairs(rows) do
      cells[i] = cell(column, row)
      width = math.max(width, display_width(cells[i]))
    end
    local align = is_left(column, rows) and 'left' or 'right'
    local fill = align == 'left' and at == #columns and 0 or width -- no trailing blanks
    local sep = column.sep or ' '
    if at == 1 then sep = '' end
    lines[1][at] = sep .. pad(title, fill, align)
    lines[2][at] = (' '):rep(#sep) .. ('-'):rep(column.rule or width)
    for i, row in ipairs(rows) do
      local padded = pad(cells[i], fill, align)
      if tty and column.alert and row[column.name] ~= 0 then padded = RED .. padded .. NORMAL end
      lines[i + 2][at] = sep .. padded
    end
  end
  for i, parts in ipairs(lines) do lines[i] = table.concat(parts) end
  return table.concat(lines, '\n') .. '\n'
end

local function us_column(name, width, is_sum)
  return { name = name .. '_ns', title = name .. '(us)', width = width, format = '%.3f', scale = 1000,
    metric = is_sum and 'counter' or 'gauge', of_histogram = is_sum }
end

--- Returns a column with the field `than`, a count, and its percentage of the field `calls`.
---@param than? boolean false or nil: omit the column
---@return TableColumn
function tables.than_column(than)
  return {
    name = 'than',
    title = 'than(reqs)',
    width = 13,
    rule = 14,
    metric = 'counter',
    align = 'right',
    alert = true,
    show = than == true,
    text = function(row)
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
  local stddev, variance = us_column('stddev', 12), us_column('variance', 16)
  variance.name, variance.title, variance.scale = 'variance_ns2', 'variance(us2)', 1e6
  stddev.data_only, variance.data_only = not is_shown, not is_shown
  return { stddev, variance }
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
  local avg, spread = us_column('avg', 12), tables.variance_columns(has_variance)
  avg.data_only = not has_variance
  local columns = { unpack(before or {}) }
  for _, column in ipairs {
    { name = 'calls', width = 8, align = 'right', metric = 'counter', of_histogram = true },
    us_column('total', 16, true),
    us_column('min', 12),
    us_column('p50', 12),
    us_column('p95', 12),
    us_column('p99', 12),
    us_column('max', 12),
    tables.than_column(than),
    avg,
    spread[1],
    spread[2],
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
