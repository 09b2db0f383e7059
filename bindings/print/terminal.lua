-- SPDX-License-Identifier: GPL-2.0-only
--- Terminal: shows pages in the alternate screen buffer and reads single keys. leave() restores the previous screen.
local ffi = require 'ffi'
local libc = require 'bindings.base.libc'

local C = ffi.C
local terminal = {}

local STDIN, STDOUT = 0, 1
local TERMIOS_SIZE = 256 -- larger than struct termios on any architecture
local LFLAG, ICANON_ECHO = 3, 0x2 + 0x8 -- index of c_lflag and two of its bits, except on MIPS and Alpha
local ENTER = '\27[?1049h\27[?25l' -- alternate buffer, no cursor
local LEAVE = '\27[?25h\27[?1049l'
local ARROWS = { A = 'up', B = 'down', C = 'right', D = 'left' }

---@class Terminal
local Terminal = {}
Terminal.__index = Terminal

--- Returns the current size; 24 rows and 80 columns if it is unknown.
---@param fd? integer default: stdout
---@return integer rows, integer columns
function terminal.size(fd)
  local size = ffi.new 'struct winsize'
  libc.ioctl(fd or STDOUT, libc.TIOCGWINSZ, size)
  return size.rows > 0 and size.rows or 24, size.columns > 0 and size.columns or 80
end

Terminal.size = terminal.size

--- Opens the terminal. Returns nil unless stdin and the output are terminals and the output format is text.
---@param out Output
---@return Terminal?
function terminal.new(out)
  if not out.tty or out.format ~= 'text' or libc.isatty(STDIN) == 0 or os.getenv 'TERM' == 'dumb' then return end
  return setmetatable({ _out = out, _saved = ffi.new('uint8_t[?]', TERMIOS_SIZE), _on = false }, Terminal)
end

--- Turns off echo and line mode. Ctrl-C and Ctrl-Z still work.
function Terminal:_enter()
  if self._on or libc.tcgetattr(STDIN, self._saved) ~= 0 then return end
  local keys = ffi.new('uint8_t[?]', TERMIOS_SIZE)
  ffi.copy(keys, self._saved, TERMIOS_SIZE)
  local flags = ffi.cast('uint32_t *', keys)
  flags[LFLAG] = bit.band(flags[LFLAG], bit.bnot(ICANON_ECHO))
  C.quit_set_terminal(self._saved, LEAVE)
  libc.tcsetattr(STDIN, 0, keys)
  self._on, self._out.has_screen = true, true
  self._out:raw(ENTER)
end

--- Shows a page. The lines must be escaped and fit the width.
---@param lines string[]
function Terminal:show(lines)
  self:_enter()
  self._out:raw('\27[H' .. table.concat(lines, '\27[K\r\n') .. '\27[K\27[J')
end

--- Restores the terminal.
function Terminal:leave()
  if not self._on then return end
  self._on = false
  self._out:raw(LEAVE)
  libc.tcsetattr(STDIN, 0, self._saved)
  C.quit_set_terminal(nil, nil)
end

--- Returns the keys pressed since the last call: characters, or 'left', 'right', 'up', 'down'. Does not wait.
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
