-- SPDX-License-Identifier: GPL-2.0-only
--- Tests scripts on recordings.
local test_script = require 'lib.engines.test_script'

return {
  summary = 'Run scripts on recordings and compare what they print',
  description = [[
The tests of NAME.lua are files beside it. Each recording NAME.CASE.data is one
test, and so is each file NAME.CASE.args: it has arguments, which may name
another recording with --input. The script's output, its warnings and a status
other than 0 are compared with NAME.CASE.expect. Root is not needed.

  profscript ./waits.lua --record waits.pipe.data -- ls | wc   # a recording
  echo '--top 5' >waits.pipe.args                              # arguments, if any
  profscript test --update waits.lua                           # after a look at the output
  profscript test waits.lua]],
  examples = {
    { 'profscript test *.lua', 'run the tests of all scripts here' },
    { 'profscript test --update waits.lua', 'take what waits.lua prints now as expected' },
  },
  events = false,
  unsupported = { 'event', 'attach', 'run', 'ring' },
  options = {
    update = { type = 'flag', help = 'write the expected output' },
  },
  positional = {
    { name = 'file', multiple = true, help = 'scripts to test' },
  },

  start = function(opt, out)
    local failed, n = 0, 0
    for _, file in ipairs(opt.file) do
      local results, message = test_script.run(file, opt.update)
      if not results then return nil, message end
      for _, result in ipairs(results) do
        n = n + 1
        failed = failed + (result.problem and 1 or 0)
        out:write(('%s %d - %s%s\n'):format(result.problem and 'not ok' or 'ok', n, result.case,
          result.is_new and ' # updated' or ''))
        if result.problem then out:write(('# %s\n'):format(result.problem)) end
      end
    end
    out:write(('1..%d\n'):format(n))
    if failed > 0 then error(('%d of %d tests failed'):format(failed, n), 0) end
  end,
}
