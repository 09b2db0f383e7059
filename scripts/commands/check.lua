-- SPDX-License-Identifier: GPL-2.0-only
--- Checks scripts without starting them.
local check_script = require 'lib.engines.check_script'

return {
  summary = 'Check scripts without running them',
  description = [[
Finds mistakes in the syntax, undeclared globals and options, also in branches
that may never run, and a wrong table or wrong declarations of options. Warns of
sums that are keys and may exceed 2^53, from where numbers are not exact.
Nothing is traced, and root is not needed.

Where the formats of events may be read, which takes root, handlers are checked,
too: events, filters, fields, and comparisons of numbers with text. A handler
whose event is computed is checked by a dry run of the script.]],
  examples = {
    { 'profscript check wakeups.lua', 'check one script' },
    { 'profscript check *.lua', 'check all scripts here' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  positional = {
    { name = 'file', multiple = true, help = 'scripts to check' },
  },

  start = function(opt, out)
    local wrong = 0
    for _, file in ipairs(opt.file) do
      local problem = check_script.problem(file)
      for _, line in ipairs(check_script.warnings(file)) do out:write(line .. '\n') end
      out:write(problem and problem .. '\n' or file .. ': ok\n')
      wrong = wrong + (problem and 1 or 0)
    end
    if wrong > 0 then error(('%d of %d scripts have mistakes'):format(wrong, #opt.file), 0) end
  end,
}
