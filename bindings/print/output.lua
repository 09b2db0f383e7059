-- SPDX-License-Identifier: GPL-2.0-only
--- Output: the only writer of stdout. Text is buffered, and written when the driver flushes or when it exceeds 64 KiB:
--- one write(2) per batch instead of one per line.
---
--- Formats: 'text'; 'json' with one object per line; 'csv' with a heading line for each new set of columns (RFC 4180
--- quoting, lines end in LF). CSV fields that start with = + - or @ are not escaped, because most of them are numbers.
--- Import them into a spreadsheet as text.
local buffer = require 'bindings.base.buffer'
local check = require 'bindings.base.check'
local ffi = require 'ffi'
local json = require 'bindings.base.json'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local tables = require 'bindings.base.table'
local terminal = require 'bindings.print.terminal'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'
local views = require 'bindings.view.views'

local C = ffi.C
local output = { safe = text.safe }

local STDOUT, STDERR, FLUSH_SIZE = 1, 2, 65536
local MUCH = 50000 -- events to print after a signal: half a second
local APPEND = libc.O_CLOEXEC + libc.O_APPEND + libc.O_CREAT + libc.O_WRONLY

--- The output of a run: the only way to stdout, so that -o, --format json and --format csv work. Control characters
--- are escaped.
---@class Output
---@field format 'text'|'json'|'csv'
---@field tty boolean whether stdout is a terminal
---@field clock fun(at?: number): number, number, boolean? converts a time (ns, as in `ev._time`; default: now) to
--- seconds and ns, and returns false as the third result if it is not wall time
local shown_events, before_signal = 0, ffi.new 'uint64_t[1]' -- see is_overdue()
local Output = {}
Output.__index = Output

local function open(path)
  local fd, message = sys.open(path, APPEND)
  if not fd then return nil, ("cannot open '%s': %s"):format(path, message) end
  return fd
end

--- Opens an output. The process must ignore SIGPIPE, or else a closed pipe kills it.
---@param settings? { format?: string, file?: string, clock?: function } file: append to this file instead of stdout
---@return Output? out nil if the file cannot be opened
---@return string? message
function output.new(settings)
  settings = settings or {}
  local fd = C.output_open(STDOUT)
  if settings.file then
    local message
    fd, message = open(settings.file)
    if not fd then return nil, message end
  end
  return setmetatable({
    format = settings.format or 'text',
    clock = settings.clock or sys.wall,
    tty = libc.isatty(fd) == 1,
    _fd = fd,
    _file = settings.file,
    _buffer = buffer.new(FLUSH_SIZE),
    has_screen = false, -- whether something else than lines is on the terminal
    has_prompt = false, -- whether lines are read from the terminal, so that reports must not take its place
    report_page = nil, -- a ReportPage that shows the reports of intervals that have pictures
    _escaped = 0, -- bytes at the head of _buffer that are ready to be written
    _headings = {},
  }, Output)
end

--- Opens another output of the same format, which appends to a file.
---@param path string
---@return Output? out nil if the file cannot be opened
---@return string? message
function Output:open(path) return output.new { format = self.format, clock = self.clock, file = path } end

--- Returns the current width of the terminal in characters; nil if stdout is not a terminal.
---@return integer?
function Output:columns()
  return self.tty and (select(2, terminal.size(self._fd))) or nil
end

--- Escapes control characters in the text that was appended since the last call. All output passes through here, so
--- no caller can forget to escape untrusted text. Costs about 0.1 ns per byte of clean text.
local function escape_appended(self)
  local pending, n = self._buffer, self._escaped
  local bytes, size = buffer.bytes(pending)
  if size > n and C.text_clean(bytes + n, size - n, C.TEXT_LINES) == 0 then
    local head, tail = ffi.string(bytes, n), text.lines(ffi.string(bytes + n, size - n))
    pending:reset():put(head, tail)
  end
  self._escaped = #pending
end

--- Writes the buffered text. The run does this after each batch of events. After a failure all further output is
--- dropped.
---@return boolean? ok nil after a failure
---@return string? message 'EPIPE' if the reader has closed the pipe, which is not an error; otherwise a line for the
--- user
function Output:flush()
  local pending = self._buffer
  escape_appended(self)
  if self._on_line and self.tty and #pending > 0 then self._on_line() end
  if #pending > 0 and not (self.report_page and self.report_page.is_drawing) then
    self._is_empty, self._has_text = false, true
    if self.report_page then self.report_page:stop() end
  end
  while #pending > 0 and not self._failed do
    local bytes, size = buffer.bytes(pending)
    local written = tonumber(C.output_write(self._fd, bytes, size))
    if written >= 0 then
      pending:skip(written)
    elseif written == -libc.EAGAIN then
      if self._on_wait then self._on_wait() end
      if C.signals_must_end() then
        self._failed = ('dropped %d bytes of output: its reader does not read'):format(size)
      end
    elseif written == -libc.EPIPE then
      self._failed = 'EPIPE'
    else
      local where = self._file and ("'%s'"):format(self._file) or 'the output'
      self._failed = ('cannot write %s: %s'):format(where, sys.strerror(-written))
    end
  end
  pending:reset()
  self._escaped = 0
  if self._failed then return nil, self._failed end
  return true
end

--- Sets what sees the rows of all tables and reports, whatever the format is.
---@param observer RowObserver
---@package
function Output:observe(observer) self._observer = observer end

---@class RowObserver
---@field table fun(self, spec: TableSpec, rows: table[], at?: number) at: see Output:table
---@field record fun(self, name: string, fields: table<string, any>, order: string[])

--- Returns whether somebody sees the rows. Nobody does while they are collected: then the results are seen.
---@return boolean
---@package
function Output:is_observed() return self._observer ~= nil and not self._take end

--- Sorts the rows of all tables by a column, where they have it (--sort).
---@param column string
---@package
function Output:sort_by(column) self.sort = column end

--- Shows rows to the observer, without printing them.
---@param spec TableSpec
---@param rows table[]
---@package
function Output:offer(spec, rows, at)
  if self:is_observed() then self._observer:table(spec, tables.data(spec, rows), at) end
end

--- Returns whether rows are needed for more than text: for JSON, CSV, metrics or the page of --serve.
---@return boolean
function Output:takes_rows() return self.format ~= 'text' or self._observer ~= nil end

--- Returns whether there is text that flush() would write.
---@return boolean
---@package
function Output:has_pending() return #self._buffer > 0 end

--- Returns whether there were reports, but none of them had a row and nothing else was printed.
---@return boolean
---@package
function Output:is_empty() return self._is_empty == true and #self._buffer == 0 end

--- Sets what to do now and then while the reader of the output does not read.
---@param action fun()
---@package
function Output:on_wait(action) self._on_wait = action end

--- Passes the rows of all tables and records to a function instead of printing them. Until results() is called, the
--- output looks like one of data, so that nothing else is printed.
---@param take fun(name: string, names: string[], rows: table[], time?: number) names of the columns; time in seconds
---@package
function Output:collect(take)
  self._take, self._shown = take, { format = self.format, tty = self.tty }
  self.format, self.tty = 'json', false
end

--- Calls a function that prints, instead of collecting what it prints.
---@param print fun(out: Output)
---@package
function Output:results(print)
  local take, format, tty = self._take, self.format, self.tty
  self._take, self.format, self.tty = nil, self._shown.format, self._shown.tty
  print(self)
  self._take, self.format, self.tty = take, format, tty
end

--- Returns whether the run was asked to end so long ago that what is still to be printed is left, but for reports.
---@param n integer how many events were printed since the last call
---@return boolean
---@package
function Output.is_overdue(_, n)
  shown_events = shown_events + n
  return C.signals_overdue(before_signal, shown_events, MUCH)
end

--- Returns whether text was printed, in reports or otherwise.
---@return boolean
---@package
function Output:has_printed() return self._has_text or #self._buffer > 0 end

--- Returns the text that flush() would write, and forgets it.
---@return string
---@package
function Output:take_text()
  escape_appended(self)
  local taken = self._buffer:get()
  self._escaped = 0
  return taken
end

--- Adds what to do before lines are written to the terminal.
---@param action fun()
---@package
function Output:on_line(action)
  local before = self._on_line
  self._on_line = before and function()
    before()
    action()
  end or action
end

--- Writes a line to stderr. Gives up if the run must end and the reader does not read.
---@param line string
function output.complain(line)
  local fd, at = C.output_open(STDERR), ffi.cast('const char *', line)
  local left = #line
  while left > 0 do
    local written = tonumber(C.output_write(fd, at, left))
    if written < 0 and (written ~= -libc.EAGAIN or C.signals_must_end()) then break end
    written = math.max(written, 0)
    at, left = at + written, left - written
  end
  if fd ~= STDERR then libc.close(fd) end
end

--- Writes much text at once. That of a report that is drawn waits for its end.
local function flush_if_full(self)
  if #self._buffer >= FLUSH_SIZE and not (self.report_page and self.report_page:is_open()) then self:flush() end
end

--- Appends text, in all formats.
---@param s string
---@package
function Output:append(s)
  self._buffer:put(s)
  flush_if_full(self)
end

--- Appends bytes unchanged, in all formats: control sequences for the terminal.
---@param bytes string
---@package
function Output:raw(bytes)
  escape_appended(self)
  self._buffer:put(bytes)
  self._escaped = #self._buffer
  flush_if_full(self)
end

--- Returns the buffer for generated printers of text.
---@return string.buffer
---@package
function Output:text_buffer() return self._buffer end

--- Writes text, which must include newlines. Only in text format.
---@param s string
function Output:write(s)
  check.is(s, 'string', 'out:write takes text')
  if self.format == 'text' then self:append(s) end
end

--- Formats text in which 64-bit integers have no suffix, %d keeps the sign that they have, and %p is an address.
local function format_plain(format, ...)
  local list, i = { ... }, 0
  format = format:gsub('%%([-+ #0]*)([%d.]*)([%a%%])', function(flags, width, kind)
    i = kind == '%' and i or i + 1
    local value = list[i]
    if not (kind == 'p' or kind:find '[dis]' and type(value) == 'cdata') or not tonumber(value) then return end
    list[i] = kind == 'p' and units.address(value) or units.number(value)
    return '%' .. flags:gsub('[^-]', '') .. width .. 's'
  end)
  return string.format(format, unpack(list, 1, select('#', ...)))
end

--- Writes text formatted with string.format, with addresses for %p. Only in text format.
---@param format string
---@param ... any
function Output:printf(format, ...)
  if type(self) ~= 'table' or not self.append then error('out:printf is a method: call it with a colon', 2) end
  check.is(format, 'string', 'out:printf takes a format')
  if self.format ~= 'text' then return end
  local ok, line = pcall(string.format, format, ...)
  if not ok then
    local is_wide = line:find('number expected, got cdata', 1, true)
    error((line:gsub("^bad argument (#%d+) to '%?'", 'out:printf: bad argument %1'))
      .. (is_wide and '; a 64-bit integer is printed with %s, in hexadecimal with bit.tohex()' or ''), 2)
  end
  if line:find 'LL' or line:find '-' or format:find '%%[^%a]*p' then line = format_plain(format, ...) end
  self:append(line)
end

--- Encodes a value as text, also for the contents of a CSV field. nil, NaN and infinities become an empty string.
local function plain_value(value)
  if type(value) == 'table' then
    local parts = {}
    for i, item in ipairs(value) do parts[i] = plain_value(item) end
    return table.concat(parts, ';')
  end
  if type(value) == 'string' then return text.safe(value) end
  if type(value) == 'cdata' and tonumber(value) then return units.number(value) end
  local s = json.value(value)
  return s == 'null' and '' or s
end

local function csv_value(value)
  local s = plain_value(value)
  return s:find '[,"]' and '"' .. s:gsub('"', '""') .. '"' or s
end

--- Writes the fixed fields { name, encoded value, name, ... }, then the fields of the row by names.
local function put_object(self, fixed, names, row)
  local csv, parts = self.format == 'csv', {}
  local function put(name, encoded)
    parts[#parts + 1] = csv and encoded or text.json(name) .. ':' .. encoded
  end
  for i = 1, #fixed, 2 do put(fixed[i], fixed[i + 1]) end
  for _, name in ipairs(names) do put(name, csv and csv_value(row[name]) or json.value(row[name])) end
  local line = table.concat(parts, ',')
  self:append(csv and line .. '\n' or '{' .. line .. '}\n')
end

--- Writes the CSV heading line, once for each set of columns of each table.
local function put_heading(self, fixed, names)
  if self.format ~= 'csv' then return end
  local parts = {}
  for i = 1, #fixed, 2 do parts[#parts + 1] = fixed[i] end
  for _, name in ipairs(names) do parts[#parts + 1] = csv_value(name) end
  local line = table.concat(parts, ',')
  local key = fixed[2] .. '\n' .. line
  if self._headings[key] then return end
  self._headings[key] = true
  self:append(line .. '\n')
end

--- Writes the timestamp line of a text report: wall time, or seconds if the wall time is unknown.
---@param at? number time in ns, as in `ev._time`; default: now
---@param title? string text after the timestamp
function Output:stamp(at, title)
  if self.format ~= 'text' then return end
  local sec, ns, is_wall = self.clock(at)
  local time = is_wall == false and units.seconds(sec, ns) or units.wall(sec, ns)
  self:append(('%s %s\n'):format(time, text.safe(title or '')))
end

--- Writes a line of text after a timestamp.
---@param line string
function Output:stamp_line(line)
  check.is(line, 'string', 'out:stamp_line takes a line')
  self:stamp(nil, line)
end

--- Returns a time as JSON and CSV have it in the field `time`, for `out:record`: seconds since the epoch, in
--- microseconds. If the wall time is unknown, the seconds of the events' own clock.
---@param at? number time in ns, as in `ev._time`; default: now
---@return number seconds
function Output:seconds(at)
  local sec, ns = self.clock(at)
  return sec + math.floor(ns / 1000) / 1e6
end

--- Prints the rows of a report. Prints nothing if there are no rows. In JSON and CSV each row is an object or a line.
---
---   local spec = tables.new('wakeups', { { name = 'comm' }, { name = 'count', width = 8 } })
---   out:table(spec, { { comm = 'bash', count = 3 } })
---@param spec TableSpec from lib.table
---@param rows table[] values by column name
---@param at? number time in ns, as in `ev._time`; default: now
---@param shown? fun(columns?: integer): string returns the text to print instead of a table; columns of a terminal
---@param drawn? fun(columns: integer): string[] returns the lines of a picture, which a terminal shows at each interval
--- in place of the one before; they may have colors, and must have no other control characters
function Output:table(spec, rows, at, shown, drawn)
  if type(spec) ~= 'table' or not spec.columns then
    error('out:table takes a spec from lib.table.new(), not ' .. check.shown(spec), 2)
  end
  check.is(rows, 'table', 'out:table takes a list of rows')
  self:offer(spec, rows, at)
  self:put_table(spec, rows, at, shown, drawn)
end

--- Prints rows that the observer does not see.
---@param spec TableSpec
---@param rows table[]
---@param at? number
---@param shown? fun(columns?: integer): string
---@param drawn? fun(columns: integer): string[]
---@package
function Output:put_table(spec, rows, at, shown, drawn)
  local page = self.format == 'text' and self.report_page
  page = page and (drawn or page.draws) and page:is_open() and page or nil
  if #rows == 0 and self._is_empty == nil then self._is_empty = true end
  if #rows == 0 and not page then return end
  if self.sort and not shown then rows = tables.sorted(spec, rows, self.sort) end
  if self.format == 'text' then
    if spec.stamp then self:stamp(at) end
    if page then
      if #rows > 0 then self._is_empty = false end
      return page:add(drawn or function(columns)
        return text.split(shown and shown(columns) or tables.render(spec, rows, true, columns))
      end)
    end
    if shown then return self:append(shown(self:columns())) end
    local rendered = tables.render(spec, rows, self.tty, self:columns())
    if self.tty then self:raw(rendered) else self:append(rendered) end -- with colors on a terminal
    return
  end
  local names = {}
  rows = tables.data(spec, rows)
  for i, column in ipairs(spec.columns) do names[i] = column.name end
  if self._take then return self._take(spec.name, names, rows, self:seconds(at)) end
  local encode = self.format == 'csv' and csv_value or json.value
  local fixed = { 'table', encode(spec.name), 'time', ('%.6f'):format(self:seconds(at)) }
  put_heading(self, fixed, names)
  for _, row in ipairs(rows) do put_object(self, fixed, names, row) end
end

--- Prints one object. In text its fields are printed as `name=value`.
---@param name string
---@param fields table<string, any>
---@param order? string[] field names; default: all, sorted
---@param shown? string what text has instead: lines
function Output:record(name, fields, order, shown)
  check.is(name, 'string', 'out:record takes a name')
  check.is(fields, 'table', 'out:record takes a table of fields')
  if not order then
    order = {}
    for field in pairs(fields) do order[#order + 1] = field end
    table.sort(order)
  end
  if self:is_observed() then self._observer:record(name, fields, order) end
  if shown and self.format == 'text' then return self:append(shown) end
  self:put_record(name, fields, order)
end

--- Prints the same for an event, which is no report.
---@param name string
---@param fields table<string, any>
---@param order string[]
---@package
function Output:put_record(name, fields, order)
  if self._take then return self._take(name, order, { fields }) end
  if self.format == 'text' then
    local parts = { text.safe(name) }
    for _, field in ipairs(order) do
      parts[#parts + 1] = field .. '=' .. plain_value(fields[field])
    end
    self:append(table.concat(parts, ' ') .. '\n')
    return
  end
  local fixed = { 'event', (self.format == 'csv' and csv_value or json.value)(name) }
  put_heading(self, fixed, order)
  put_object(self, fixed, order, fields)
end

local NO_VALUES = { ['function'] = true, thread = true, userdata = true }

--- Prints one line of columns, below a heading if the names differ from those of the last line. In JSON and CSV it is
--- an object or a line of the same fields.
---
---   out:row { 'pid', ev._pid, 'comm', ev._comm, 'us', ns / 1000 }
---@param fields any[] names and values in turn
---@param name? string of the object in JSON and CSV; default: 'row'
function Output:row(fields, name)
  check.is(fields, 'table', 'out:row takes a list of names and values')
  local names, row, i = {}, {}, 1
  while fields[i] ~= nil do
    if type(fields[i]) ~= 'string' then
      error(('out:row takes names and values in turn: name %d is %s'):format((i + 1) / 2, check.shown(fields[i])), 2)
    end
    local value = fields[i + 1]
    if NO_VALUES[type(value)] or type(value) == 'cdata' and not tonumber(value) then
      error(("out:row: '%s' is %s, not a number or a text"):format(fields[i], check.shown(value)), 2)
    end
    names[#names + 1] = fields[i]
    row[fields[i]] = value
    i = i + 2
  end
  if #names == 0 then error("out:row takes names and values in turn: { 'pid', ev._pid }", 2) end
  if self.format ~= 'text' then return self:record(name or 'row', row, names) end
  if self:is_observed() then self._observer:record(name or 'row', row, names) end
  self._rows = self._rows or {}
  local key = table.concat(names, '\n')
  local widths, cells, heading = self._rows[key], {}, {}
  if not widths then
    widths = { is_text = {} }
    self._rows[key] = widths
  end
  for j, column in ipairs(names) do
    local value = row[column]
    local cell = type(value) == 'number' and value % 1 ~= 0 and ('%.3f'):format(value) or plain_value(value)
    if value ~= nil and widths.is_text[j] == nil then
      widths.is_text[j] = type(value) ~= 'number' and type(value) ~= 'cdata'
    end
    local is_text = widths.is_text[j]
    local width = math.max(widths[j] or (is_text and 12 or 8), #column, #cell)
    local format = is_text and (j == #names and '%s' or '%-' .. width .. 's') or '%' .. width .. 's'
    widths[j], cells[j], heading[j] = width, format:format(cell), format:format(column)
  end
  if self._row_key ~= key then self:append(table.concat(heading, ' ') .. '\n') end
  self._row_key = key
  self:append(table.concat(cells, ' ') .. '\n')
end

--- Prints its arguments like Lua's print. In JSON and CSV prints a record named 'print' with the field `text`.
---@param ... any
function Output:print(...)
  if type(self) ~= 'table' or not self.append then error('out:print is a method: call it with a colon', 2) end
  local parts = { ... }
  for i = 1, select('#', ...) do
    local value = parts[i]
    local is_long = type(value) == 'number' and math.abs(value) >= 1e14 and math.abs(value) < math.huge
    parts[i] = (is_long or type(value) == 'cdata' and tonumber(value)) and units.number(value) or tostring(value)
  end
  local line = table.concat(parts, '\t')
  if self.format == 'text' then return self:write(line .. '\n') end
  self:record('print', { text = line })
end

--- Sets the printer that print_event() uses.
---@param events Printer
---@package
function Output:print_events_with(events)
  self._print = function(e, bare, prefix, part) events:print(e, bare, prefix, part) end
end

--- Prints an event as a line, or as an object in JSON and CSV. The profiler that requested the event describes it.
---@param ev Ev
---@param bare? boolean omit the stack
---@param prefix? string|true text instead of the wall time and the spaces after it; true: spaces
---@param part? table<string, any> JSON and CSV: additional values from lib.detail. `uncertain`: the order of this event
--- and the one printed before it is unknown; marks the line with ~
function Output:print_event(ev, bare, prefix, part)
  self._print(views.event(ev, 'out:print_event'), bare, prefix, part)
end

--- Writes a line to stderr immediately, or to the output file if it is text. Suppressed by -q.
---@param message string
function Output:warn(message)
  check.is(message, 'string', 'out:warn takes a line')
  self:tell(message)
end

--- Like warn(), but not suppressed by -q, for lines that the user requested.
---@param message string
function Output:tell(message)
  check.is(message, 'string', 'out:tell takes a line')
  local line = text.lines(message) .. '\n'
  if self._file and (self._shown or self).format == 'text' then
    self:flush()
    local was_empty = self._is_empty
    self:append(line)
    self:flush()
    self._is_empty = was_empty
    return
  end
  if self.tty then self:flush() end
  if self._on_line then self._on_line() end
  output.complain(line)
end

--- Reopens the file, for log rotation; does nothing for stdout.
---@return boolean? ok nil after a failure: the old file stays in use
---@return string? message
---@package
function Output:reopen()
  if not self._file then return true end
  local ok, message = self:flush()
  local fd, why = open(self._file)
  if not fd then return nil, why end
  libc.close(self._fd)
  self._fd, self._failed, self._headings = fd, nil, {}
  return ok, message
end

return output
