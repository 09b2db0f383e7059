-- SPDX-License-Identifier: GPL-2.0-only
--- Line reader: lines from standard input, without waiting for them. On a terminal there is a prompt with editing,
--- history and completion (runtime/process/line_editor.h); from a pipe the lines are read as they come.
local ffi = require 'ffi'
local failure = require 'bindings.base.failure'
local libc = require 'bindings.base.libc'
local sys = require 'bindings.base.sys'

local C = ffi.C
local line_reader = {}

local STDIN = 0
line_reader.STDIN = STDIN
local CHUNK = 4096
local PERIOD = 100 -- ms between looks whether the run is to end

---@class LineReader
---@field is_terminal boolean
---@field ended boolean no more lines will come
---@field fd integer readable when a line may come; -1 after the end
local LineReader = {}
LineReader.__index = LineReader

--- Returns the file of the history; nil if there is no place for it.
local function history_file()
  local home = os.getenv 'HOME'
  local folder = os.getenv 'XDG_STATE_HOME' or home and home .. '/.local/state'
  if not folder or folder == '' then return end
  for _, one in ipairs { folder, folder .. '/profscript' } do
    if not sys.mkdir(one) then return end
  end
  return folder .. '/profscript/repl.history'
end

--- Begins to read.
---@param out Output
---@param prompt string
---@param complete fun(text: string): string, string[] returns what to insert after the text, and all candidates
---@return LineReader
function line_reader.new(out, prompt, complete)
  local self = setmetatable({ is_terminal = false, ended = false, fd = STDIN, _rest = '' }, LineReader)
  if out.tty and libc.isatty(STDIN) ~= 0 then
    local err = ffi.new 'struct error'
    local editor = C.line_editor_new(prompt, history_file(), err)
    if editor == nil then failure.of(err) end
    self._editor, self.is_terminal = ffi.gc(editor, C.line_editor_free), true
  end
  self:use(out, complete)
  return self
end

--- Goes on with another output.
---@param out Output
---@param complete fun(text: string): string, string[] see new()
function LineReader:use(out, complete)
  self._out, self._complete = out, complete
  if self._editor then out:on_line(function() self:_hide() end) end
end

--- Makes room for what is printed, such as a warning, until show().
function LineReader:_hide()
  if not self._editor or self._is_hidden then return end
  C.line_editor_hide(self._editor)
  self._is_hidden = true
end

--- Shows the prompt again after something has been printed.
function LineReader:show()
  if not self._is_hidden then return end
  C.line_editor_show(self._editor)
  self._is_hidden = false
end

local function is_ready(ms)
  local fds = ffi.new('struct pollfd', STDIN, libc.POLLIN)
  return libc.poll(fds, 1, ms) > 0
end

function LineReader:_end()
  self.ended, self.fd = true, -1
end

--- Completes the word before the cursor, or shows the candidates.
function LineReader:_tab()
  local text = ffi.string(C.line_editor_text(self._editor), C.line_editor_cursor(self._editor))
  local insert, candidates = self._complete(text)
  if insert ~= '' then
    C.line_editor_insert(self._editor, insert)
  elseif #candidates > 1 then
    self:print(table.concat(candidates, '  ') .. '\n')
  end
end

--- Returns the next line; nil if there is none now.
---@return string?
function LineReader:next()
  while not self.ended do
    if not self._editor then
      local line, rest = self._rest:match '^([^\n]*)\n(.*)$'
      if line then
        self._rest = rest
        return line
      end
    end
    if not is_ready(0) then return end
    if self._editor then
      local what = C.line_editor_read(self._editor)
      if what == C.LINE_COMPLETE then return ffi.string(C.line_editor_text(self._editor)) end
      if what == C.LINE_TAB then self:_tab() end
      if what == C.LINE_END then self:_end() end
    else
      local bytes = ffi.new('char[?]', CHUNK)
      local n = tonumber(libc.read(STDIN, bytes, CHUNK))
      if n > 0 then
        self._rest = self._rest .. ffi.string(bytes, n)
      elseif n == 0 or ffi.errno() ~= libc.EINTR and ffi.errno() ~= libc.EAGAIN then
        local last = self._rest
        self:_end()
        if last ~= '' then return last end
      end
    end
  end
end

--- Waits for the next line; nil if there is none any more, or the run is to end.
---@return string?
function LineReader:wait()
  local line = self:next()
  while not line and not self.ended and not C.signals_must_end() do
    is_ready(PERIOD)
    line = self:next()
  end
  return line
end

--- Prints what is in the output, and text, above the prompt.
---@param text? string
function LineReader:print(text)
  self:_hide()
  if text then self._out:write(text) end
  self._out:flush()
  self:show()
end

--- Gives the terminal back.
function LineReader:close()
  if not self._editor then return end
  self:_hide()
  ffi.gc(self._editor, nil)
  C.line_editor_free(self._editor)
  self._editor = nil
  self:_end()
end

return line_reader
