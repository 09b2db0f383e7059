-- SPDX-License-Identifier: GPL-2.0-only
--- Symbolizes addresses from stdin, with the protocol that pprof uses for its symbolizer.
local symbolize = require 'lib.engines.symbolize'

local UNKNOWN = '??'
local LINES = 256 -- answers between two checks whether the reader is gone

return {
  summary = 'Symbolize addresses from stdin',
  description = [[
stdin may start with mappings as in /proc/PID/maps. Each further line is answered by a line:
- 0xADDRESS by its function, as 'symbol+0xoffset'. Addresses outside of the mappings are addresses of FILE,
  as nm prints them.
- a function of FILE by its file offset, as '0xoffset'.
- anything unknown by '??'.

'profscript --symbols FILE' is the same. Symbols are read from the files that now have the mapped paths.]],
  examples = {
    { '(cat /proc/PID/maps; echo 0x7f3a12345678) | profscript symbols ./program', 'symbolize an address of a process' },
    { 'echo malloc | profscript symbols libc', 'print the file offset of malloc' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = { { name = 'program', argument = 'FILE', help = 'path, pid:N, or name of a library' } },

  start = function(opt, out)
    local symbols = symbolize.new(opt.program)
    local answered = 0
    for line in io.lines() do
      if not symbols:add_mapping(line) then
        local token = line:match '^%s*(.-)%s*$'
        local digits = token:match '^0[xX](%x+)$'
        local answer = digits and symbols:symbol(digits) or not digits and symbols:offset(token)
        out:printf('%s\n', answer or UNKNOWN)
        answered = answered + 1
        if (out.tty or answered % LINES == 0) and not out:flush() then return end
      end
    end
  end,
}
