-- SPDX-License-Identifier: GPL-2.0-only
--- Progress: a line at the bottom of a terminal (stderr) during work that takes long: reading a recording, looking up
--- symbols, queries, writing files, reading folded stacks. It is erased before anything else is printed, and at the end
--- of the work.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'
local terminal = require 'bindings.print.terminal'
local text = require 'bindings.base.text'
local units = require 'bindings.base.units'

local C = ffi.C
local progress = {}

local STDERR = 2
local FIRST, PERIOD = 1e9, 2e8 -- ns from the begin of the work to the first line, and between lines
local AFTER_OUTPUT = 1e9 -- where the terminal also gets the results

---@class Progress
---@field is_on boolean
local Progress = {}
Progress.__index = Progress

--- Returns a line that shows nothing if stderr is no terminal.
---@param name string of the profiler
---@param out Output
---@param is_quiet? boolean
---@return Progress
function progress.new(name, out, is_quiet)
  local self = setmetatable({ is_on = false, _name = name, _out = out }, Progress)
  if not is_quiet and libc.isatty(STDERR) == 1 and os.getenv 'TERM' ~= 'dumb' then
    self.is_on, self._fd = true, C.output_open(STDERR)
    self._since = sys.now()
    self._next = self._since + FIRST
    out:on_line(function() self:give_way() end)
  end
  return self
end

--- Whether it is time for a line. A terminal with pages has no place for it.
function Progress:_is_due(now) return now >= self._next and not self._out.has_screen end

local function write(self, s) C.output_write(self._fd, s, #s) end

function Progress:_show(line)
  local _, columns = terminal.size(STDERR)
  write(self, ('\r%s\27[K'):format(text.safe(('%s: %s'):format(self._name, line)):sub(1, columns - 1)))
  self._is_shown = true
end

--- Erases the line.
function Progress:erase()
  if not self._is_shown then return end
  write(self, '\r\27[K')
  self._is_shown = false
end

--- Makes room for other output on the terminal.
function Progress:give_way()
  self:erase()
  self._next = sys.now() + AFTER_OUTPUT
end

--- Ends the work. Nothing is shown from now on.
function Progress:finish()
  if not self.is_on then return end
  self:erase()
  self.is_on = false
  if self._fd ~= STDERR then libc.close(self._fd) end
end

--- Returns an amount with three digits: 1234567 events are '1.23 Mevents'.
---@param n number
---@param unit string 'B' for bytes
local function amount_text(n, unit)
  if unit == 'B' then return units.bytes(math.floor(n)) end
  for _, step in ipairs { { 1e9, 'G' }, { 1e6, 'M' }, { 1e3, 'k' } } do
    if n >= step[1] then return ('%.3g %s%s'):format(n / step[1], step[2], unit) end
  end
  return ('%d %s'):format(n, unit)
end

local function duration(sec)
  if sec < 60 then return ('%d s'):format(math.ceil(sec)) end
  return ('%d:%02d min'):format(math.floor(sec / 60), sec % 60)
end

--- Returns how much of a file was read, and the time left if its size is known: the first and the last part of a line.
local function read_of(read, size, sec)
  if size <= 0 then return amount_text(read, 'B') end
  return ('%d%% of %s'):format(math.floor(read / size * 100), amount_text(size, 'B')),
    size > read and read > 0 and duration((size - read) * sec / read) .. ' left' or nil
end

--- Shows how much of a recording was read.
---@param session ffi.cdata*
function Progress:poll(session)
  local now = sys.now()
  if not self:_is_due(now) then return end
  self._next = now + PERIOD
  local stats = ffi.new 'struct session_stats'
  C.session_read_stats(session, stats)
  local read, size, events = tonumber(stats.read), tonumber(stats.size), tonumber(stats.events)
  local sec = (now - self._since) / 1e9
  local first, last = read_of(read, size, sec)
  self:_show(table.concat({ first, amount_text(events, 'events'), amount_text(read / sec, 'B') .. '/s', last }, ', '))
end

--- Begins a kind of work after the events.
---@param what string such as 'writing trace.json'
---@param has_no_steps? boolean it may take long, and is announced
---@param size? integer bytes of the file that is read
function Progress:stage(what, has_no_steps, size)
  if not self.is_on then return end
  local now = sys.now()
  self._stage, self._stage_since, self._done, self._size = what, now, 0, size
  if has_no_steps and self:_is_due(now) then self:_show(what) end
  self._next = math.max(self._next, now + FIRST)
end

--- Makes a step of the current stage, if there is one.
---@param amount integer
---@param unit string 'stacks', or 'B' for bytes
function Progress:step(amount, unit)
  if not self._stage then return end
  self._done = self._done + amount
  local now = sys.now()
  if not self:_is_due(now) then return end
  self._next = now + PERIOD
  local sec = (now - self._stage_since) / 1e9
  local done, last = amount_text(self._done, unit), nil
  if self._size then done, last = read_of(self._done, self._size, sec) end
  local rate = amount_text(self._done / sec, unit) .. '/s'
  self:_show(('%s: %s'):format(self._stage, table.concat({ done, rate, last }, ', ')))
end

return progress
