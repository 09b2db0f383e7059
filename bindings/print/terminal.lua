-- SPDX-License-Identifier: GPL-2.0-only
--- Terminal: shows pages in the alternate screen buffer, and reads single keys. leave() restores the previous
--- screen.
local ffi = require 'ffi'

-- The layout of struct termios differs between architectures. The buffer for it is larger than any of them.
ffi.cdef [[
struct terminal_winsize { unsigned short rows, columns, x, y; };
int terminal_ioctl(int fd, unsigned long request, struct terminal_winsize *size) __asm__("ioctl");
int terminal_isatty(int fd) __asm__("isatty");
int terminal_get(int fd, void *termios) __asm__("tcgetattr");
int terminal_set(int fd, int when, const void *termios) __asm__("tcsetattr");
struct terminal_pollfd { int fd; short events, revents; };
int terminal_poll(struct terminal_pollfd *fds, unsigned long n, int timeout) __asm__("poll");
intptr_t terminal_read(int fd, void *bytes, size_t size) __asm__("read");
]]

local C = ffi.C
local terminal = {}

local STDIN, STDOUT = 0, 1
local TIOCGWINSZ = 0x5413
local POLLIN = 1
local TERMIOS_SIZE = 256
local LFLAG, ICANON_ECHO = 3, 0x2 + 0x8 -- index of c_lflag and two of its bits, except on MIPS and Alpha
local ENTER = '\27[?1049h\27[?25l' -- alternate buffer, no cursor
local LEAVE = '\27[?25h\27[?1049l'
local ARROWS = { A = 'up', B = 'down', C = 'right', D = 'left' }

---@class Terminal
local Terminal = {}
Terminal.__index = Terminal

--- Opens the terminal. Returns nil unless both stdin and the output are one, and the output format is text.
---@param out Output
---@return Terminal?
function terminal.new(out)
  if not out.tty or out.format ~= 'text' or C.terminal_isatty(STDIN) == 0 or os.getenv 'TERM' == 'dumb' then return end
  return setmetatable({ _out = out, _saved = ffi.new('uint8_t[?]', TERMIOS_SIZE), _on = false }, Terminal)
end

--- Returns the current size.
---@return integer rows, integer columns
function Terminal.size()
  local size = ffi.new 'struct terminal_winsize'
  if C.terminal_ioctl(STDOUT, TIOCGWINSZ, size) ~= 0 or size.rows == 0 then return 24, 80 end
  return size.rows, size.columns
end

--- Switches off echo and line mode. Ctrl-C and Ctrl-Z keep working.
function Terminal:_enter()
  if self._on or C.terminal_get(STDIN, self._saved) ~= 0 then return end
  local keys = ffi.new('uint8_t[?]', TERMIOS_SIZE)
  ffi.copy(keys, self._saved, TERMIOS_SIZE)
  local flags = ffi.cast('uint32_t *', keys)
  flags[LFLAG] = bit.band(flags[LFLAG], bit.bnot(ICANON_ECHO))
  C.terminal_set(STDIN, 0, keys)
  self._on = true
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
  C.terminal_set(STDIN, 0, self._saved)
end

--- Returns the keys pressed since the last call: characters, and 'left', 'right', 'up', 'down'. Does not wait.
---@return string[]
function Terminal:keys()
  local keys = {}
  if not self._on then return keys end
  local fds = ffi.new('struct terminal_pollfd', STDIN, POLLIN)
  if C.terminal_poll(fds, 1, 0) <= 0 then return keys end
  local bytes = ffi.new 'char[64]'
  local n = tonumber(C.terminal_read(STDIN, bytes, 64))
  local text, at = ffi.string(bytes, math.max(n, 0)), 1
  while at <= #text do
    local arrow = text:match('^\27[%[O]([ABCD])', at)
    keys[#keys + 1] = arrow and ARROWS[arrow] or text:sub(at, at)
    at = at + (arrow and 3 or 1)
  end
  return keys
end

return terminal
