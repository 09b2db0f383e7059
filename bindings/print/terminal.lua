-- SPDX-License-Identifier: GPL-2.0-only
--- The terminal as a screen: its size, keys one by one, and the alternate buffer, which leaves what was
--- there before as it was.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local terminal = {}

local STDIN, STDOUT = 0, 1
local TERMIOS_SIZE = 256 -- more than struct termios has on any Linux
local LFLAG, ICANON_ECHO = 3, 0x2 + 0x8 -- c_lflag is the fourth flag word; its bits, as on all but MIPS and Alpha
local ENTER = '\27[?1049h\27[?25l' -- alternate buffer, no cursor
local LEAVE = '\27[?25h\27[?1049l'
local ARROWS = { A = 'up', B = 'down', C = 'right', D = 'left' }

---@class Terminal
local Terminal = {}
Terminal.__index = Terminal

--- Rows and columns, now.
---@param fd? integer stdout by default
---@return integer rows, integer columns
function terminal.size(fd)
  local size = ffi.new 'struct winsize' -- 0 where it is not known
  libc.ioctl(fd or STDOUT, libc.TIOCGWINSZ, size)
  return size.rows > 0 and size.rows or 24, size.columns > 0 and size.columns or 80
end

Terminal.size = terminal.size

--- A terminal that shows pages, or nil where keys and pages have no terminal to come from and go to.
---@param out Output
---@return Terminal?
function terminal.new(out)
  if not out.tty or out.format ~= 'text' or libc.isatty(STDIN) == 0 or os.getenv 'TERM' == 'dumb' then return end
  return setmetatable({ _out = out, _saved = ffi.new('uint8_t[?]', TERMIOS_SIZE), _on = false }, Terminal)
end

--- Ctrl-C and Ctrl-Z stay what they are: only echo and lines are switched off.
function Terminal:_enter()
  if self._on or libc.tcgetattr(STDIN, self._saved) ~= 0 then return end
  local keys = ffi.new('uint8_t[?]', TERMIOS_SIZE)
  ffi.copy(keys, self._saved, TERMIOS_SIZE)
  local flags = ffi.cast('uint32_t *', keys)
  flags[LFLAG] = bit.band(flags[LFLAG], bit.bnot(ICANON_ECHO))
  libc.tcsetattr(STDIN, 0, keys)
  self._on = true
  self._out:raw(ENTER)
end

--- Shows a page: lines that are escaped and short enough.
---@param lines string[]
function Terminal:show(lines)
  self:_enter()
  self._out:raw('\27[H' .. table.concat(lines, '\27[K\r\n') .. '\27[K\27[J')
end

--- Gives the terminal back.
function Terminal:leave()
  if not self._on then return end
  self._on = false
  self._out:raw(LEAVE)
  libc.tcsetattr(STDIN, 0, self._saved)
end

--- The keys pressed since the last call: characters, and 'left', 'right', 'up', 'down'. Does not wait.
---@return string[]
function Terminal:keys()
  local keys = {}
  if not self._on then return keys end
  local fds = ffi.new('struct pollfd', STDIN, libc.POLLIN)
  if libc.poll(fds, 1, 0) <= 0 then return keys end
  local bytes = ffi.new 'char[64]'
  local n = tonumber(libc.read(STDIN, bytes, 64))
  local text, at = ffi.string(bytes, math.max(n, 0)), 1
  while at <= #text do
    local arrow = text:match('^\27[%[O]([ABCD])', at)
    keys[#keys + 1] = arrow and ARROWS[arrow] or text:sub(at, at)
    at = at + (arrow and 3 or 1)
  end
  return keys
end

return terminal
