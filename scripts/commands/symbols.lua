-- SPDX-License-Identifier: GPL-2.0-only
--- Answers on stdout what is asked on stdin: a filter, as pprof wants one.
local symbolize = require 'lib.symbolize'

local UNKNOWN = '??'
local LINES = 256 -- between two looks whether somebody still reads

return {
  summary = 'Give addresses from stdin their symbols',
  description = [[
First on stdin may be what was mapped, as /proc/PID/maps has it; then each line is a question and gets a line:
0xADDRESS the function there, as 'symbol+0xoffset', the name of a function of FILE its place in the file, as
'0xoffset', and what is not known '??'. An address that nothing was mapped at is one of FILE, as nm prints it.

'profscript --symbols FILE' is the same. Files are those that are at their paths now.]],
  examples = {
    { '(cat /proc/PID/maps; echo 0x7f3a12345678) | profscript symbols ./program', 'what is there in a process' },
    { 'echo malloc | profscript symbols libc', 'where a probe would be' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = { { name = 'program', argument = 'FILE', help = 'a path, pid:N, or the name of a library' } },

  start = function(opt, out)
    local symbols = symbolize.new(opt.program)
    local asked = 0
    for line in io.lines() do
      if not symbols:add_mapping(line) then
        local token = line:match '^%s*(.-)%s*$'
        local digits = token:match '^0[xX](%x+)$'
        local answer = digits and symbols:symbol(digits) or not digits and symbols:offset(token)
        out:printf('%s\n', answer or UNKNOWN)
        asked = asked + 1
        if (out.tty or asked % LINES == 0) and not out:flush() then return end
      end
    end
  end,
}
