-- SPDX-License-Identifier: GPL-2.0-only
--- Output: the only writer of stdout. Text is buffered and written when the driver flushes, or above 64 KiB:
--- one write(2) per batch, not per line.
---
--- Formats: 'text' for people; 'json', one object per line; 'csv' with a heading line for each new set of
--- columns (RFC 4180 quoting, lines end in LF). CSV fields that start with = + - or @ are not escaped: most of
--- them are numbers. Import them as text into a spreadsheet.
local buffer = require 'string.buffer'
local ffi = require 'ffi'
local tables = require 'bindings.base.table'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'
local C = ffi.C

-- Private names, because another module may declare these functions with other types.
ffi.cdef [[
intptr_t output_write(int fd, const void *bytes, size_t size) __asm__("write");
int output_open(const char *path, int flags, ...) __asm__("open");
int output_close(int fd) __asm__("close");
int output_isatty(int fd) __asm__("isatty");
int output_ioctl(int fd, unsigned long request, ...) __asm__("ioctl");
int output_poll(void *fds, unsigned long n, int timeout) __asm__("poll");
int output_clock_gettime(int clock, int64_t *sec_ns) __asm__("clock_gettime");
const char *output_strerror(int code) __asm__("strerror");
]]

local output = { safe = text.safe }

local STDOUT, STDERR = 1, 2
local FLUSH_SIZE = 65536
local EINTR, EAGAIN, EPIPE = 4, 11, 32
local APPEND = 0x80000 + 0x400 + 0x40 + 0x1 -- O_CLOEXEC, O_APPEND, O_CREAT, O_WRONLY
local POLLOUT = 4
local TIOCGWINSZ = 0x5413

---@class Output
---@field format 'text'|'json'|'csv'
---@field tty boolean whether stdout is a terminal
---@field clock fun(at?: number): number, number, boolean? the time now, or of an event's time: seconds, ns, false if
--- it is not wall time
local Output = {}
Output.__index = Output

local function system_clock()
  local now = ffi.new 'int64_t[2]'
  C.output_clock_gettime(0, now)
  return tonumber(now[0]), tonumber(now[1])
end

local function error_text(code) return ffi.string(C.output_strerror(code)) end

local function open(path)
  local fd = C.output_open(path, APPEND, ffi.new('int', 420)) -- 0644
  if fd < 0 then return nil, ("cannot open '%s': %s"):format(path, error_text(ffi.errno())) end
  return fd
end

--- Opens an output. The process must ignore SIGPIPE, otherwise a closed pipe ends it.
---@param settings? { format?: string, file?: string, clock?: function } file: append to it instead of stdout
---@return Output? out nil if the file cannot be opened
---@return string? message
function output.new(settings)
  settings = settings or {}
  local fd = STDOUT
  if settings.file then
    local message
    fd, message = open(settings.file)
    if not fd then return nil, message end
  end
  return setmetatable({
    format = settings.format or 'text',
    clock = settings.clock or system_clock,
    tty = C.output_isatty(fd) == 1,
    _fd = fd,
    _file = settings.file,
    _buffer = buffer.new(FLUSH_SIZE),
    _headings = {},
  }, Output)
end

--- Returns the current width of the terminal in characters; nil if stdout is not a terminal.
---@return integer?
function Output:columns()
  if not self.tty then return nil end
  local size = ffi.new 'uint16_t[4]' -- rows, columns, and both in pixels
  if C.output_ioctl(self._fd, TIOCGWINSZ, size) < 0 or size[1] == 0 then return 80 end
  return size[1]
end

--- Waits until a descriptor is writable: another process may have made it non-blocking.
local function wait_writable(fd)
  local pollfd = ffi.new('struct { int fd; short events, revents; }', fd, POLLOUT)
  C.output_poll(pollfd, 1, -1)
end

--- Writes the buffered text. After a failure all further output is dropped.
---@return boolean? ok nil: see message
---@return string? message 'EPIPE' if the reader has closed the pipe, which is not an error; else a line for the user
function Output:flush()
  local pending = self._buffer
  while #pending > 0 and not self._failed do
    local bytes, size = pending:ref()
    local written = tonumber(C.output_write(self._fd, bytes, size))
    local code = written < 0 and ffi.errno()
    if not code then
      pending:skip(written)
    elseif code == EAGAIN then
      wait_writable(self._fd)
    elseif code == EPIPE then
      self._failed = 'EPIPE'
    elseif code ~= EINTR then
      local where = self._file and ("'%s'"):format(self._file) or 'the output'
      self._failed = ('cannot write %s: %s'):format(where, error_text(code))
    end
  end
  pending:reset()
  if self._failed then return nil, self._failed end
  return true
end

--- Appends bytes unchanged. The caller has escaped them.
---@param bytes string
function Output:raw(bytes)
  self._buffer:put(bytes)
  if #self._buffer >= FLUSH_SIZE then self:flush() end
end

--- Returns the buffer itself, for generated printers of text, which escape what they append.
---@return string.buffer
function Output:text_buffer() return self._buffer end

--- Writes text for people; nothing in JSON and CSV. Control bytes other than newline and tab are escaped.
---@param s string
function Output:write(s)
  if self.format == 'text' then self:raw(text.lines(s)) end
end

---@param format string
function Output:printf(format, ...)
  if self.format == 'text' then self:raw(text.lines(format:format(...))) end
end

local json_value

local function json_list(list)
  local parts = {}
  for i, value in ipairs(list) do parts[i] = json_value(value) end
  return '[' .. table.concat(parts, ',') .. ']'
end

--- Encodes a value in JSON. 64-bit integers keep all digits; infinities and NaN become null.
function json_value(value)
  local kind = type(value)
  if kind == 'string' then return text.json(value) end
  if kind == 'number' then return math.abs(value) < math.huge and units.number(value) or 'null' end
  if kind == 'cdata' and tonumber(value) then return units.number(value) end
  if kind == 'boolean' then return tostring(value) end
  if kind == 'table' then return json_list(value) end
  return kind == 'nil' and 'null' or text.json(tostring(value))
end

--- Encodes a value as text, also for the inside of a CSV field. No value becomes an empty string.
local function plain_value(value)
  if type(value) == 'table' then
    local parts = {}
    for i, item in ipairs(value) do parts[i] = plain_value(item) end
    return table.concat(parts, ';')
  end
  if type(value) == 'string' then return text.safe(value) end
  local s = json_value(value)
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
  for _, name in ipairs(names) do put(name, csv and csv_value(row[name]) or json_value(row[name])) end
  local line = table.concat(parts, ',')
  self:raw(csv and line .. '\n' or '{' .. line .. '}\n')
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
  self:raw(line .. '\n')
end

local function encode(self, value) return self.format == 'csv' and csv_value(value) or json_value(value) end

--- Writes the timestamp line of a text report: wall time, or seconds if the wall time is unknown.
---@param at? number time as in handlers; default: now
---@param title? string text after the timestamp
function Output:stamp(at, title)
  if self.format ~= 'text' then return end
  local sec, ns, is_wall = self.clock(at)
  local time = is_wall == false and units.seconds(sec, ns) or units.wall(sec, ns)
  self:raw(('%s %s\n'):format(time, text.safe(title or '')))
end

--- Writes a line of text after a timestamp.
---@param line string
function Output:stamp_line(line)
  if self.format ~= 'text' then return end
  local sec, ns, is_wall = self.clock()
  self:raw(('%s %s\n'):format(is_wall == false and units.seconds(sec, ns) or units.wall(sec, ns), text.safe(line)))
end

--- Prints the rows of a report. An empty report prints nothing.
---@param spec table.Spec
---@param rows table[]
---@param at? number time as in handlers; default: now
function Output:table(spec, rows, at)
  if #rows == 0 then return end
  if self.format == 'text' then
    if spec.stamp then self:stamp(at) end
    self:raw(tables.render(spec, rows, self.tty))
    return
  end
  local sec, ns = self.clock(at)
  local names = {}
  for i, column in ipairs(spec.columns) do names[i] = column.name end
  -- time: seconds since the epoch, to the microsecond like the stamp
  local fixed = { 'table', encode(self, spec.name), 'time', ('%.6f'):format(sec + math.floor(ns / 1000) / 1e6) }
  put_heading(self, fixed, names)
  for _, row in ipairs(rows) do put_object(self, fixed, names, row) end
end

--- Prints one object, such as an event. The hot path of `trace` uses generated printers instead.
---@param name string
---@param fields table<string, any>
---@param order? string[] field names; default: all, sorted
function Output:record(name, fields, order)
  if not order then
    order = {}
    for field in pairs(fields) do order[#order + 1] = field end
    table.sort(order)
  end
  if self.format == 'text' then
    local parts = { text.safe(name) }
    for _, field in ipairs(order) do
      parts[#parts + 1] = field .. '=' .. plain_value(fields[field])
    end
    self:raw(table.concat(parts, ' ') .. '\n')
    return
  end
  local fixed = { 'event', encode(self, name) }
  put_heading(self, fixed, order)
  put_object(self, fixed, order, fields)
end

--- Prints its arguments like Lua's print; as a record named 'print' in JSON and CSV.
function Output:print(...)
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

--- Writes a line to stderr immediately; if the output is a text file, to that file.
---@param message any converted by tostring
function Output:warn(message) self:tell(message) end

--- Like warn(), for lines that the user asked for and that -q does not suppress.
---@param message any
function Output:tell(message)
  local line = text.lines(tostring(message)) .. '\n'
  if self._file and self.format == 'text' then
    self:raw(line)
    self:flush()
    return
  end
  if self.tty then self:flush() end
  C.output_write(STDERR, line, #line)
end

--- Reopens the file, for log rotation; does nothing for stdout.
---@return boolean? ok nil: the old file stays in use, see message
---@return string? message
function Output:reopen()
  if not self._file then return true end
  local ok, message = self:flush()
  local fd, why = open(self._file)
  if not fd then return nil, why end
  C.output_close(self._fd)
  self._fd, self._failed, self._headings = fd, nil, {}
  return ok, message
end

return output
